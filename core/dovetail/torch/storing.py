"""`torch.save` and `torch.load`: files of nested dicts and lists of tensors and numbers.

The files are dovetail's checkpoints, which hold no code.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import dovetail as dt

from .adoption import adopt

CONTENT, SUFFIX = "content", ".safetensors"


def save(obj: Any, f: Any, *settings: Any, **options: Any) -> None:
    """Write a state to a file: tensors, numbers, strings, and lists, tuples and dicts of them.

    - `obj`: the state, such as `model.state_dict()`.
    - `f`: a path, or a file that is open for writing bytes.
    - `settings`, `options`: PyTorch's `pickle_module` and others; nothing is pickled.

    Raises: ArgumentTypeError for objects of other classes, such as a module; OSError.

    >>> import io
    >>> import dovetail.torch as torch
    >>> file = io.BytesIO()
    >>> torch.save({"step": 3, "w": torch.ones(2)}, file)
    >>> torch.load(io.BytesIO(file.getvalue()))
    {'step': 3, 'w': tensor([1., 1.])}
    """
    if hasattr(obj, "state_dict"):
        raise dt.ArgumentTypeError(
            f"torch.save: expected a state of tensors and numbers, got {type(obj).__name__}; save "
            "its state_dict()"
        )
    with tempfile.TemporaryDirectory() as folder:
        part = dt.checkpoint.save(Path(folder, f"part{SUFFIX}"), random=False, **{CONTENT: obj})
        if hasattr(f, "write"):
            f.write(part.read_bytes())
        else:
            target = Path(os.fspath(f))
            beside = target.with_name(f".{target.name}.{os.getpid()}.part")
            shutil.copyfile(part, beside)
            beside.replace(target)


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool = True,
    mmap: bool | None = None,
    **options: Any,
) -> Any:
    """Return the state that `torch.save` wrote.

    - `f`: a path, or a file that is open for reading bytes.
    - `map_location`: the device of the tensors, or a dict from one device to another.
    - `pickle_module`, `weights_only`, `mmap`, `options`: have no effect: nothing is unpickled.

    Raises: dt.checkpoint.CheckpointError for other files, such as PyTorch's own; OSError.
    """
    device = map_location
    if isinstance(device, dict):
        device = next(iter(device.values()), None)
    elif callable(device):  # of storages
        device = None
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder, f"part{SUFFIX}")
        if hasattr(f, "read"):
            part.write_bytes(f.read())
        else:
            shutil.copyfile(f, part)
        with part.open("rb") as file:
            if file.read(2) == b"PK":
                raise dt.checkpoint.CheckpointError(
                    "torch.load: the file is a pickle of PyTorch, which can hold code; convert it "
                    "with safetensors.torch.save_file(state, name), and use dt.load(name)"
                )
        return adopt(dt.checkpoint.load(part, random=False, device=device)[CONTENT])

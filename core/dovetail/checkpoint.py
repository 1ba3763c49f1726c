"""Checkpoints: files from which a training run resumes.

A checkpoint is a safetensors file. It holds tensors by name ("model.layers.0.weight") and two byte
tensors: the structure that contains them, as JSON, and a digest of everything. Reading a checkpoint
runs no code.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random as python_random
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import dovetail as dt
from dovetail.extend import arguments, publish_all

from .nn.call_errors import explain_all
from .nn.missing_names import make_module_getattr

__all__ = ["CheckpointError", "latest", "load", "save"]

File: TypeAlias = "str | os.PathLike[str]"
Json: TypeAlias = Any
SUFFIX, VERSION = ".safetensors", 1
STRUCTURE, DIGEST = "checkpoint.structure", "checkpoint.digest"
PART_FILE_PATTERN = re.compile(r"\.(?P<stem>.+)\.(?P<pid>\d+)\.part\.safetensors")


class CheckpointError(dt.ArgumentError, OSError):
    """A file that is not a checkpoint, is damaged, or lacks a requested state."""


def save(
    path: File,
    *,
    model: Any = None,
    optimizer: Any = None,
    scheduler: Any = None,
    step: int | None = None,
    random: bool = True,
    keep: int | None = None,
    group: Any = None,
    **more: Any,
) -> Path:
    """Write a checkpoint atomically and return its path.

    - `path`: the file. "{step}" or "{step:06}" in it is replaced by the step.
    - `model`, `optimizer`, `scheduler`: objects with a `state_dict`.
    - `step`: the number of steps so far, which `load` returns.
    - `random`: include the random states of `dt.random`, Python and NumPy.
    - `keep`: the number of latest checkpoints to keep in the folder, among those whose names differ
      only in digits. None keeps all.
    - `group`: the workers, a `dt.parallel.ProcessGroup`. Worker 0 writes the file; all workers call
      `save`, which returns when the file is on the disk.
    - `more`: other objects with a `state_dict`, random generators, tensors, arrays, numbers,
      strings, and lists, tuples and dicts of them, by name.

    An earlier file of the same name stays until the new one is on the disk.
    Raises: ArgumentTypeError for other values; ArgumentError for other braces beside "{step}", a
    path without a name, or `keep` below 1, before a file is written; OSError.
    See also: `load`, `latest`, `dt.save`.

    >>> import os, tempfile
    >>> import dovetail as dt
    >>> folder = tempfile.mkdtemp()
    >>> w = dt.ones(2).requires_grad_()
    >>> opt = dt.optim.SGD([w], lr=0.5, momentum=0.9)
    >>> file = dt.checkpoint.save(folder + "/{step:04}", optimizer=opt, step=7, note="first")
    >>> file.name, dt.checkpoint.load(file, optimizer=opt)["note"]
    ('0007.safetensors', 'first')
    """
    target = _file_path(path, step)
    if keep is not None:
        keep = _check_keep(keep)
    states: dict[str, Any] = {
        name: x
        for name, x in (("model", model), ("optimizer", optimizer), ("scheduler", scheduler))
        if x is not None
    }
    if step is not None:
        states["step"] = step
    if random:
        states["random"] = _RandomStates().state_dict()
    encoder = _Encoder()
    content = {name: encoder.encode_object(name, x) for name, x in {**states, **more}.items()}
    if group is not None and group.rank:  # after state_dict(), which may be a collective call
        group.barrier()
        return target
    text = json.dumps({"version": VERSION, "content": content}).encode()
    tensors = encoder.tensors
    tensors[STRUCTURE] = _from_bytes(text)
    tensors[DIGEST] = _from_bytes(_digest(tensors))
    target.parent.mkdir(parents=True, exist_ok=True)
    _write_atomically(target, tensors)
    if keep is not None:
        _remove_old(target, keep)
    if group is not None:
        group.barrier()
    return target


def load(
    path: File,
    *,
    model: Any = None,
    optimizer: Any = None,
    scheduler: Any = None,
    random: bool = True,
    device: Any = None,
    **more: Any,
) -> dict[str, Any]:
    """Load a checkpoint: restore the states of the given objects and return the other values.

    - `path`: a file, or a folder, of which the latest undamaged checkpoint is loaded.
    - `model`, `optimizer`, `scheduler`: objects that receive the states saved under these names.
    - `random`: restore the random states.
    - `device`: the device of returned tensors.
    - `more`: other such objects by name.

    If a state does not fit its object, all objects keep the states they had before.
    Raises: CheckpointError for a damaged file, or one without a requested state; errors of
    `load_state_dict`; OSError for a file that cannot be opened.
    See also: `save`, `latest`, `dt.load`.

    >>> import tempfile
    >>> import dovetail as dt
    >>> seen = dt.ones(2)
    >>> file = dt.checkpoint.save(tempfile.mkdtemp() + "/run", step=3, seen=seen)
    >>> values = dt.checkpoint.load(file)
    >>> values["step"], values["seen"].tolist()
    (3, [1.0, 1.0])
    """
    file = Path(arguments.path("checkpoint.load", path))
    if file.is_dir():
        newest = latest(file)
        if newest is None:
            raise FileNotFoundError(errno.ENOENT, "There is no undamaged checkpoint in", str(file))
        file = newest
    content = _read(file, device)
    named = (("model", model), ("optimizer", optimizer), ("scheduler", scheduler), *more.items())
    objects = {name: x for name, x in named if x is not None}
    missing = [name for name in objects if name not in content]
    if missing:
        raise CheckpointError(
            f"checkpoint.load: {file} has no {', '.join(missing)}; it has {', '.join(content)}"
        )
    pairs = {name: (x, content.pop(name)) for name, x in objects.items()}
    random_states = content.pop("random", None)
    if random and random_states is not None:
        pairs["random"] = _RandomStates(), random_states
    _set_states_or_revert(pairs)
    return content


def latest(folder: File, pattern: str = f"*{SUFFIX}") -> Path | None:
    """Return the path of the newest undamaged checkpoint in a folder, or None if there is none.

    - `folder`: the folder to search.
    - `pattern`: a glob pattern of file names.

    Damaged files are skipped with a DovetailWarning.
    Raises: ArgumentError for another pattern, OSError for files that cannot be read.

    >>> import tempfile
    >>> import dovetail as dt
    >>> dt.checkpoint.latest(tempfile.mkdtemp()) is None
    True
    """
    path = Path(arguments.path("checkpoint.latest", folder, "folder"))
    try:
        files = _list_newest_first(path, pattern)
    except (ValueError, NotImplementedError) as error:  # of Path.glob
        raise dt.ArgumentError(
            f"checkpoint.latest: pattern must be a glob pattern of file names, got {pattern!r}: "
            f"{error}"
        ) from None
    for file in files:
        try:
            _read(file, "reference")
        except CheckpointError as error:
            warnings.warn(f"checkpoint.latest: {error}", dt.DovetailWarning, stacklevel=2)
        else:
            return file
    return None


# --- files ----------------------------------------------------------------------------------------


def _file_path(path: File, step: int | None) -> Path:
    """Return `path`, step filled in, suffix added. Raises: ArgumentError if it needs a step."""
    text = os.fspath(arguments.path("checkpoint.save", path))
    if "{step" in text:
        if step is None:
            raise dt.ArgumentError(f"checkpoint.save: {text!r} contains a step; pass step=")
        text = _fill_in_step(text, step)
    file = Path(text)
    if not file.name:
        raise dt.ArgumentError(f"checkpoint.save: path must have the name of a file, got {text!r}")
    return file if file.suffix == SUFFIX else file.with_name(file.name + SUFFIX)


def _fill_in_step(text: str, step: int) -> str:
    """Return a path with the step in place of "{step}". Raises: ArgumentError for other braces."""
    try:
        return text.format(step=step)
    except (ValueError, LookupError, AttributeError, TypeError, OverflowError) as error:
        arguments.integer("checkpoint.save", step, "step")
        raise dt.ArgumentError(
            f"checkpoint.save: the braces of a path must be {{step}}, or {{step:06}} with a format "
            f"of ints, got {text!r}: {type(error).__name__}: {error}; write other braces twice"
        ) from None


def _check_keep(keep: object) -> int:
    """Return `keep`. Raises: ArgumentError below 1, ArgumentTypeError unless it is an int."""
    count = arguments.integer("checkpoint.save", keep, "keep")
    if count < 1:
        raise dt.ArgumentError(f"checkpoint.save: keep must be at least 1, got {count}")
    return count


def _write_atomically(target: Path, tensors: dict[str, dt.Tensor]) -> None:
    """Write a temporary file, flush it to disk, rename it to `target`; remove stale parts first."""
    _remove_stale_parts(target.parent)
    part = target.with_name(f".{target.stem}.{os.getpid()}.part{SUFFIX}")
    try:
        dt.save(part, tensors)
        _fsync(part)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    _fsync(target.parent)


def _fsync(path: Path) -> None:
    """Flush a file or folder to the disk; do nothing if it may not be opened."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:  # some systems cannot open a folder
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_stale_parts(folder: Path) -> None:
    """Remove temporary files of processes that were killed while they wrote."""
    for file in folder.glob(f".*.part{SUFFIX}"):
        match = PART_FILE_PATTERN.fullmatch(file.name)
        if match is not None and not _is_running(int(match["pid"])):
            file.unlink(missing_ok=True)


def _is_running(pid: int) -> bool:
    """Return True if a process of this id exists, also of another user."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _list_newest_first(folder: Path, pattern: str) -> list[Path]:
    """Return the files of a folder that match a glob pattern, newest first, without hidden ones."""
    files = [p for p in folder.glob(pattern) if not p.name.startswith(".") and p.is_file()]
    return sorted(files, key=lambda p: (p.stat().st_mtime_ns, p.name), reverse=True)


def _remove_old(target: Path, keep: int) -> None:
    """Delete all but `target` and the newest `keep - 1` files whose names differ only in digits."""
    pattern = re.compile(re.sub(r"\d+", r"\\d+", re.escape(target.name)))
    series = [
        p for p in _list_newest_first(target.parent, f"*{SUFFIX}") if pattern.fullmatch(p.name)
    ]
    others = [p for p in series if p != target]
    for old in others[keep - 1 :]:
        old.unlink(missing_ok=True)


def _read(file: Path, device: Any) -> dict[str, Any]:
    """Return a checkpoint's values by name, on `device`.

    Raises: OSError if the file cannot be opened, CheckpointError if it is no intact checkpoint.
    """
    file.open("rb").close()  # a file that cannot be opened raises OSError, not CheckpointError
    try:
        tensors = dt.load(file, device=device, copy=True)
    except dt.ArgumentError as error:
        raise CheckpointError(f"checkpoint.load: {error}") from error
    try:
        digest = _raw(tensors.pop(DIGEST)).tobytes()
        text = _raw(tensors[STRUCTURE]).tobytes()
    except KeyError as error:
        raise CheckpointError(
            f"checkpoint.load: {file} holds tensors and is not a checkpoint ({error} is missing); "
            "use dt.load"
        ) from None
    if _digest(tensors) != digest:
        raise CheckpointError(
            f"checkpoint.load: {file} is damaged: its digest does not match its contents; "
            "checkpoint.latest(folder) finds the newest intact checkpoint"
        )
    try:
        structure = json.loads(text)
        version = structure["version"]
        if version == VERSION:
            decoder = _Decoder(tensors)
            return {name: decoder.decode(x) for name, x in structure["content"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(
            f"checkpoint.load: the structure of {file} is damaged: {type(error).__name__}: {error}"
        ) from error
    raise CheckpointError(f"checkpoint.load: {file} must have version {VERSION}, got {version!r}")


def _from_bytes(values: bytes) -> dt.Tensor:
    """Return bytes as a new uint8 tensor on "reference"."""
    return dt.asarray(np.frombuffer(values, np.uint8).copy(), device="reference")


def _raw(x: dt.Tensor) -> np.ndarray:
    """Return the bytes of a tensor's elements, in row-major order, as a uint8 array."""
    flat = x.detach().reshape(-1)
    if flat.size and flat.dtype is not dt.bool:
        flat = flat.view(dt.uint8)
    return np.ascontiguousarray(flat.numpy()).view(np.uint8)


def _digest(tensors: Mapping[str, dt.Tensor]) -> bytes:
    """Return a BLAKE2b digest of the tensors' names, dtypes, shapes and elements."""
    digest = hashlib.blake2b(digest_size=32)
    for name in sorted(tensors):
        x = tensors[name]
        digest.update(f"{name}\0{x.dtype.name}\0{tuple(x.shape)}\0".encode())
        digest.update(_raw(x).data)
    return digest.digest()


# --- structure ------------------------------------------------------------------------------------


class _Encoder:
    """An encoder of values as JSON, which collects their tensors by name."""

    def __init__(self) -> None:
        self.tensors: dict[str, dt.Tensor] = {}

    def encode_object(self, name: str, x: Any) -> Json:
        """Encode a top-level object, by its state if it has a `state_dict`."""
        if isinstance(x, dt.random.Generator):
            return {"generator": [*x.state]}
        state_dict = getattr(x, "state_dict", None)
        return self.encode(name, x if state_dict is None else state_dict())

    def encode(self, name: str, x: Any) -> Json:
        """Encode a value as JSON; store its tensors under `name`.

        Raises: ArgumentTypeError for a type that a checkpoint cannot hold, LayoutError for a tensor
        that is not strided.
        """
        if x is None or isinstance(x, (bool, int, float, str)):
            return x
        if isinstance(x, dt.Tensor):
            return {"tensor": self.add_tensor(name, x)}
        if isinstance(x, np.ndarray) and x.dtype.kind in "biufc":
            return {"array": self.add_tensor(name, dt.asarray(np.array(x), device="reference"))}
        if isinstance(x, np.generic):
            return self.encode(name, x.item())
        if isinstance(x, complex):
            return {"complex": [x.real, x.imag]}
        if isinstance(x, Mapping):
            pairs = [
                [self.encode_key(name, k), self.encode(f"{name}.{k}", v)] for k, v in x.items()
            ]
            return {"dict": pairs}
        if isinstance(x, (list, tuple)):
            kind = "tuple" if isinstance(x, tuple) else "list"
            return {kind: [self.encode(f"{name}.{i}", v) for i, v in enumerate(x)]}
        if isinstance(x, dt.random.Generator):
            return {"generator": [*x.state]}
        raise dt.ArgumentTypeError(
            f"checkpoint.save: {name} must be a tensor, an array, a number, a str, a list, tuple "
            f"or dict of them, or an object with state_dict(), got {type(x).__name__}"
        )

    def encode_key(self, name: str, k: object) -> Json:
        """Return a dict key unchanged. Raises: ArgumentTypeError unless JSON can store it."""
        if k is None or isinstance(k, (bool, int, float, str)):
            return k
        raise dt.ArgumentTypeError(
            f"checkpoint.save: keys of {name} must be strs or numbers, got {type(k).__name__}"
        )

    def add_tensor(self, name: str, x: dt.Tensor) -> str:
        """Store `x`, detached; return `name` or a free name.

        Raises: LayoutError if it is not strided.
        """
        if x.layout is not dt.strided:
            raise dt.LayoutError(
                f"checkpoint.save: {name} must be dense, got layout {x.layout.name}; save its "
                "parts, or use x.to_dense()"
            )
        while name in self.tensors or name in (STRUCTURE, DIGEST):
            name += "_"
        self.tensors[name] = x.detach()
        return name


class _Decoder:
    """A decoder of the JSON that `_Encoder` returns."""

    def __init__(self, tensors: Mapping[str, dt.Tensor]) -> None:
        self.tensors = tensors

    def decode(self, x: Json) -> Any:
        """Return the value that `x` encodes; a damaged code raises a built-in exception."""
        if not isinstance(x, dict):
            return x
        ((kind, content),) = x.items()
        if kind == "tensor":
            return self.tensors[content]
        if kind == "array":
            return self.tensors[content].numpy()
        if kind == "dict":
            return {k: self.decode(v) for k, v in content}
        if kind == "list":
            return [self.decode(v) for v in content]
        if kind == "tuple":
            return tuple(self.decode(v) for v in content)
        if kind == "complex":
            return complex(*content)
        generator = dt.random.Generator(0)
        generator.state = tuple(content)
        return generator


# --- states of objects ----------------------------------------------------------------------------


def _set_states_or_revert(states: dict[str, tuple[Any, Any]]) -> None:
    """Set the state of each object; if one does not fit, set all back and raise its error.

    `states`: pairs of an object and its new state, by name.
    """
    previous: list[tuple[Any, Any]] = []
    try:
        for name, (x, state) in states.items():
            previous.append((x, _copy_state(name, x)))
            _set_state(x, state)
    except BaseException:
        for x, state in reversed(previous):
            _set_state(x, state)
        raise


def _set_state(x: Any, state: Any) -> None:
    """Set a state by `load_state_dict`. Raises: CheckpointError for a generator's wrong state."""
    if isinstance(x, dt.random.Generator):
        if not isinstance(state, dt.random.Generator):
            raise CheckpointError(
                f"checkpoint.load: a generator must have its own state, got {type(state).__name__}"
            )
        x.state = state.state
    else:
        x.load_state_dict(state)


def _copy_state(name: str, x: Any) -> Any:
    """Return a copy of an object's state. Raises: ArgumentTypeError for an object without one."""
    if isinstance(x, dt.random.Generator):
        generator = dt.random.Generator(0)
        generator.state = x.state
        return generator
    if not hasattr(x, "load_state_dict"):
        raise dt.ArgumentTypeError(
            f"checkpoint.load: {name} must have load_state_dict(), got {type(x).__name__}; other "
            "values are returned in a dict"
        )
    return _deep_copy(x.state_dict())


def _deep_copy(x: Any) -> Any:
    """Return a copy of nested mappings and sequences, with tensors copied and detached."""
    if isinstance(x, dt.Tensor):
        return dt.copy(x.detach())
    if isinstance(x, Mapping):
        return {k: _deep_copy(v) for k, v in x.items()}
    return type(x)(map(_deep_copy, x)) if isinstance(x, (list, tuple)) else x


class _RandomStates:
    """The states of the default generators of dovetail, Python and NumPy, as one object."""

    def state_dict(self) -> dict[str, Any]:
        """Return the current states of the three generators, by library."""
        return {
            "dovetail": dt.random.get_state(),
            "python": python_random.getstate(),
            "numpy": tuple(np.random.get_state()),
        }

    def load_state_dict(self, states: Mapping[str, Any]) -> None:
        """Set the three generators in turn; an error leaves some set.

        Raises: CheckpointError for damaged states.
        """
        try:
            dt.random.set_state(states["dovetail"])
            python_random.setstate(states["python"])
            np.random.set_state(states["numpy"])
        except Exception as error:  # the three libraries raise a dozen types of errors
            raise CheckpointError(
                "checkpoint.load: the states of the random generators are damaged: "
                f"{error!r:.200}; pass random=False to skip them"
            ) from error


explain_all(globals(), __all__)
publish_all(globals())


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    __getattr__ = make_module_getattr("checkpoint")

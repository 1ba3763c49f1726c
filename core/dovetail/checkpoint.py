"""Checkpoints: the state of a training run in a file.

A checkpoint is a safetensors file. It holds tensors by their names ("model.layers.0.weight"), and
two more: the structure that they lie in, as JSON, and a digest of it all. Reading one runs no code.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random as random_of_python
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import dovetail as dt

from .nn.blame import explain_all
from .nn.missing_names import refused

__all__ = ["CheckpointError", "latest", "load", "save"]

File: TypeAlias = "str | os.PathLike[str]"
Json: TypeAlias = Any
SUFFIX, VERSION = ".safetensors", 1
STRUCTURE, DIGEST = "checkpoint.structure", "checkpoint.digest"
PART = re.compile(r"\.(?P<stem>.+)\.(?P<pid>\d+)\.part\.safetensors")


class CheckpointError(dt.ArgumentError, OSError):
    """A file is no checkpoint, is damaged, or is the checkpoint of something else."""


def save(
    path: File,
    *,
    model: Any = None,
    optimizer: Any = None,
    scheduler: Any = None,
    step: int | None = None,
    random: bool = True,
    keep: int | None = None,
    **more: Any,
) -> Path:
    """Write a checkpoint, whole or not at all, and return its path.

    An older file of this name stays until the new one is on the disk. `path`: "{step}" and
    "{step:06}" in it stand for the step. `model`, `optimizer`, `scheduler`: objects with a
    `state_dict`. `step`: the number of steps so far; `load` returns it. `random`: True adds the
    states of random numbers (`dt.random`, Python's and NumPy's). `keep`: the number of checkpoints
    of such a name that stay in the folder, the latest. `more`: other things with a `state_dict`,
    generators of random numbers, tensors, arrays, numbers, texts, and lists, tuples and dicts of
    them.
    Raises: ArgumentTypeError for other things, OSError.

    >>> import os, tempfile
    >>> import dovetail as dt
    >>> folder = tempfile.mkdtemp()
    >>> w = dt.ones(2, device="reference").requires_grad_()
    >>> opt = dt.optim.SGD([w], lr=0.5, momentum=0.9)
    >>> made = dt.checkpoint.save(folder + "/{step:04}", optimizer=opt, step=7, note="first")
    >>> made.name, dt.checkpoint.load(made, optimizer=opt)["note"]
    ('0007.safetensors', 'first')
    """
    target = _target_path(path, step)
    standard: dict[str, Any] = {
        name: x
        for name, x in (("model", model), ("optimizer", optimizer), ("scheduler", scheduler))
        if x is not None
    }
    if step is not None:
        standard["step"] = step
    if random:
        standard["random"] = _Randomness().state_dict()
    writer = _Writer()
    content = {name: writer.top(name, x) for name, x in {**standard, **more}.items()}
    text = json.dumps({"version": VERSION, "content": content}).encode()
    tensors = writer.tensors
    tensors[STRUCTURE] = _bytes(text)
    tensors[DIGEST] = _bytes(_digest(tensors))
    target.parent.mkdir(parents=True, exist_ok=True)
    _write_atomically(target, tensors)
    if keep is not None:
        _forget(target, keep)
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
    """Restore the states of a checkpoint, and return its other contents.

    `path`: a file, or a folder, whose latest whole checkpoint is read. `model`, `optimizer`,
    `scheduler`, `more`: objects that get the states that were saved under these names. `random`:
    True restores the states of random numbers. `device`: the device of tensors that are returned.
    If one state does not fit, no object is changed.
    Raises: CheckpointError for a damaged file, or one without what is asked for; what
    `load_state_dict` raises; OSError for one that cannot be opened.

    >>> import tempfile
    >>> import dovetail as dt
    >>> seen = dt.ones(2, device="reference")
    >>> made = dt.checkpoint.save(tempfile.mkdtemp() + "/run", step=3, seen=seen)
    >>> found = dt.checkpoint.load(made, device="reference")
    >>> found["step"], found["seen"].tolist()
    (3, [1.0, 1.0])
    """
    file = Path(path)
    if file.is_dir():
        newest = latest(file)
        if newest is None:
            raise FileNotFoundError(errno.ENOENT, "There is no whole checkpoint in", str(file))
        file = newest
    content = _read(file, device)
    named = (("model", model), ("optimizer", optimizer), ("scheduler", scheduler), *more.items())
    objects = {name: x for name, x in named if x is not None}
    lacking = [name for name in objects if name not in content]
    if lacking:
        raise CheckpointError(
            f"checkpoint.load: {file} has no {', '.join(lacking)}; it has {', '.join(content)}"
        )
    targets = {name: (x, content.pop(name)) for name, x in objects.items()}
    states = content.pop("random", None)
    if random and states is not None:
        targets["random"] = _Randomness(), states
    _restore_all(targets)
    return content


def latest(folder: File, pattern: str = f"*{SUFFIX}") -> Path | None:
    """Return the newest whole checkpoint in a folder, or None if there is none.

    Damaged ones are skipped with a DovetailWarning. `folder`: the folder to search. `pattern`: the
    names to consider.
    Raises: OSError for files that cannot be read.

    >>> import tempfile
    >>> import dovetail as dt
    >>> dt.checkpoint.latest(tempfile.mkdtemp()) is None
    True
    """
    for file in _by_age(Path(folder), pattern):
        try:
            _read(file, "reference")
        except CheckpointError as error:
            warnings.warn(f"checkpoint.latest: {error}", dt.DovetailWarning, stacklevel=2)
        else:
            return file
    return None


# --- files ----------------------------------------------------------------------------------------


def _target_path(path: File, step: int | None) -> Path:
    """Return the path of a checkpoint, with the step and the suffix filled in."""
    text = os.fspath(path)
    if "{step" in text:
        if step is None:
            raise dt.ArgumentError(f"checkpoint.save: {text!r} names a step; give step=")
        text = text.format(step=step)
    target = Path(text)
    return target if target.suffix == SUFFIX else target.with_name(target.name + SUFFIX)


def _write_atomically(target: Path, tensors: dict[str, dt.Tensor]) -> None:
    """Write a temporary file, flush it to the disk, and only then rename it."""
    _clear(target.parent)
    part = target.with_name(f".{target.stem}.{os.getpid()}.part{SUFFIX}")
    try:
        dt.save(part, tensors)
        _sync(part)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    _sync(target.parent)


def _sync(path: Path) -> None:
    """Flush a file, or a folder, to the disk."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:  # a folder, on systems that do not open them
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _clear(folder: Path) -> None:
    """Remove the temporary files of processes that were killed while they wrote."""
    for file in folder.glob(f".*.part{SUFFIX}"):
        match = PART.fullmatch(file.name)
        if match is not None and not _is_running(int(match["pid"])):
            file.unlink(missing_ok=True)


def _is_running(pid: int) -> bool:
    """Return True if a process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _by_age(folder: Path, pattern: str) -> list[Path]:
    """Return the files of a folder, the newest first."""
    files = [p for p in folder.glob(pattern) if not p.name.startswith(".") and p.is_file()]
    return sorted(files, key=lambda p: (p.stat().st_mtime_ns, p.name), reverse=True)


def _forget(target: Path, keep: int) -> None:
    """Remove older checkpoints whose names differ in digits alone."""
    if keep < 1:
        raise dt.ArgumentError(f"checkpoint.save: keep is {keep}; it is 1 or more")
    like = re.compile(re.sub(r"\d+", r"\\d+", re.escape(target.name)))
    alike = [p for p in _by_age(target.parent, f"*{SUFFIX}") if like.fullmatch(p.name)]
    others = [p for p in alike if p != target]
    for old in others[keep - 1 :]:
        old.unlink(missing_ok=True)


def _read(file: Path, device: Any) -> dict[str, Any]:
    """Return the contents of a checkpoint. Raises: CheckpointError, OSError."""
    file.open("rb").close()  # raises OSError if the file cannot be opened
    try:
        tensors = dt.load(file, device=device, copy=True)
    except dt.ArgumentError as error:
        raise CheckpointError(f"checkpoint.load: {error}") from error
    try:
        digest = _raw(tensors.pop(DIGEST)).tobytes()
        text = _raw(tensors[STRUCTURE]).tobytes()
    except KeyError as error:
        raise CheckpointError(
            f"checkpoint.load: {file} holds tensors and is no checkpoint: {error} is missing; see "
            "dt.load"
        ) from None
    if _digest(tensors) != digest:
        raise CheckpointError(
            f"checkpoint.load: {file} is damaged: its digest is that of other contents; an earlier "
            "one may be whole: checkpoint.latest(folder)"
        )
    try:
        structure = json.loads(text)
        version = structure["version"]
        if version == VERSION:
            reader = _Reader(tensors)
            return {name: reader.build(x) for name, x in structure["content"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(
            f"checkpoint.load: the structure of {file} makes no sense: {type(error).__name__}: "
            f"{error}"
        ) from error
    raise CheckpointError(
        f"checkpoint.load: {file} is of version {version!r}, and this dovetail reads {VERSION}"
    )


def _bytes(values: bytes) -> dt.Tensor:
    return dt.asarray(np.frombuffer(values, np.uint8).copy(), device="reference")


def _raw(x: dt.Tensor) -> np.ndarray:
    """Return the bytes of a tensor's elements, in order."""
    flat = x.detach().reshape(-1)
    if flat.size and flat.dtype is not dt.bool:
        flat = flat.view(dt.uint8)
    return np.ascontiguousarray(flat.numpy()).view(np.uint8)


def _digest(tensors: Mapping[str, dt.Tensor]) -> bytes:
    """Return a digest of names, dtypes, shapes and elements."""
    digest = hashlib.blake2b(digest_size=32)
    for name in sorted(tensors):
        x = tensors[name]
        digest.update(f"{name}\0{x.dtype.name}\0{x.shape}\0".encode())
        digest.update(_raw(x).data)
    return digest.digest()


# --- structure ------------------------------------------------------------------------------------


class _Writer:
    """A converter of values to JSON; it collects their tensors by name."""

    def __init__(self) -> None:
        self.tensors: dict[str, dt.Tensor] = {}

    def top(self, name: str, x: Any) -> Json:
        """Return the JSON of a named object: of its state, if it has one."""
        if isinstance(x, dt.random.Generator):
            return {"generator": [*x.state]}
        state = getattr(x, "state_dict", None)
        return self.value(name, x if state is None else state())

    def value(self, name: str, x: Any) -> Json:
        """Return the JSON of a value at a position with this name."""
        if x is None or isinstance(x, (bool, int, float, str)):
            return x
        if isinstance(x, dt.Tensor):
            return {"tensor": self.collect(name, x)}
        if isinstance(x, np.ndarray) and x.dtype.kind in "biufc":
            return {"array": self.collect(name, dt.asarray(np.array(x), device="reference"))}
        if isinstance(x, np.generic):
            return self.value(name, x.item())
        if isinstance(x, complex):
            return {"complex": [x.real, x.imag]}
        if isinstance(x, Mapping):
            pairs = [[self.key(name, k), self.value(f"{name}.{k}", v)] for k, v in x.items()]
            return {"dict": pairs}
        if isinstance(x, (list, tuple)):
            kind = "tuple" if isinstance(x, tuple) else "list"
            return {kind: [self.value(f"{name}.{i}", v) for i, v in enumerate(x)]}
        if isinstance(x, dt.random.Generator):
            return {"generator": [*x.state]}
        raise dt.ArgumentTypeError(
            f"checkpoint.save: {name} is a {type(x).__name__}; a checkpoint keeps tensors, arrays, "
            "numbers, texts, and lists, tuples and dicts of them, and what has a state_dict()"
        )

    def key(self, name: str, k: object) -> Json:
        """Return the key of a dict. Raises: ArgumentTypeError."""
        if k is None or isinstance(k, (bool, int, float, str)):
            return k
        raise dt.ArgumentTypeError(
            f"checkpoint.save: a key of {name} is a {type(k).__name__}; keys are texts or numbers"
        )

    def collect(self, name: str, x: dt.Tensor) -> str:
        """Collect a tensor, and return its unique name."""
        if x.layout is not dt.strided:
            raise dt.LayoutError(
                f"checkpoint.save: {name} has the layout {x.layout.name}; keep its parts, or "
                "x.to_dense()"
            )
        own = name
        while own in self.tensors or own in (STRUCTURE, DIGEST):
            own += "_"
        self.tensors[own] = x.detach()
        return own


class _Reader:
    """A converter of JSON and tensors to values."""

    def __init__(self, tensors: Mapping[str, dt.Tensor]) -> None:
        self.tensors = tensors

    def build(self, x: Json) -> Any:
        """Return the value of a piece of JSON."""
        if not isinstance(x, dict):
            return x
        ((kind, content),) = x.items()
        if kind == "tensor":
            return self.tensors[content]
        if kind == "array":
            return self.tensors[content].numpy()
        if kind == "dict":
            return {k: self.build(v) for k, v in content}
        if kind == "list":
            return [self.build(v) for v in content]
        if kind == "tuple":
            return tuple(self.build(v) for v in content)
        if kind == "complex":
            return complex(*content)
        generator = dt.random.Generator(0)
        generator.state = tuple(content)
        return generator


# --- objects with a state -------------------------------------------------------------------------


def _restore_all(states: dict[str, tuple[Any, Any]]) -> None:
    """Load states into their objects; if one does not fit, restore them all."""
    done: list[tuple[Any, Any]] = []
    try:
        for name, (x, state) in states.items():
            done.append((x, _before(name, x)))
            _put(x, state)
    except BaseException:
        for x, before in reversed(done):
            _put(x, before)
        raise


def _put(x: Any, state: Any) -> None:
    """Load a state into an object."""
    if isinstance(x, dt.random.Generator):
        if not isinstance(state, dt.random.Generator):
            raise CheckpointError(
                f"checkpoint.load: a generator must have its own state, got {type(state).__name__}"
            )
        x.state = state.state
    else:
        x.load_state_dict(state)


def _before(name: str, x: Any) -> Any:
    """Return the current state of an object, in memory of its own."""
    if isinstance(x, dt.random.Generator):
        generator = dt.random.Generator(0)
        generator.state = x.state
        return generator
    if not hasattr(x, "load_state_dict"):
        raise dt.ArgumentTypeError(
            f"checkpoint.load: {name} is a {type(x).__name__}, which has no load_state_dict(); "
            "what is no such object comes back in a dict"
        )
    return _copy_state(x.state_dict())


def _copy_state(x: Any) -> Any:
    """Return a copy of a state with new tensors."""
    if isinstance(x, dt.Tensor):
        return dt.copy(x.detach())
    if isinstance(x, Mapping):
        return {k: _copy_state(v) for k, v in x.items()}
    return type(x)(map(_copy_state, x)) if isinstance(x, (list, tuple)) else x


class _Randomness:
    """The states of the default generators of dovetail, Python and NumPy, as one object."""

    def state_dict(self) -> dict[str, Any]:
        kind, *words = np.random.get_state()
        return {
            "dovetail": dt.random.get_state(),
            "python": random_of_python.getstate(),
            "numpy": (kind, *words),
        }

    def load_state_dict(self, states: Mapping[str, Any]) -> None:
        try:
            dt.random.set_state(states["dovetail"])
            random_of_python.setstate(states["python"])
            np.random.set_state(states["numpy"])
        except Exception as error:  # three libraries raise a dozen kinds of errors here
            raise CheckpointError(
                f"checkpoint.load: the states of random numbers are damaged: {error!r:.200}; "
                "random=False leaves them out"
            ) from error


explain_all(globals(), __all__)

if not TYPE_CHECKING:
    __getattr__ = refused("checkpoint")

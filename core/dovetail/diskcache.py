"""Compiled kernels on disk: one file each, written atomically, checked when read, bounded in total.

A file is a SHA-256 of its key and its content, then the content. Anything else (truncated by a
kill, corrupted, of another kernel or version) reads as absent, goes, and is made anew. Two
processes may write the same file: the last rename wins, and both were right.
DOVETAIL_CACHE_DIR moves the cache; DOVETAIL_CACHE_MIB bounds it (0 turns it off).
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

SHA = 32  # bytes
LIMIT_MIB = 256
VERSION = "2"  # part of every key: the meaning of kernels and binaries
_written = 0


@cache
def directory() -> Path | None:
    """Where compiled kernels are kept; None where they cannot be."""
    if limit() == 0:
        return None
    chosen = os.environ.get("DOVETAIL_CACHE_DIR")
    if chosen is None:
        from platformdirs import user_cache_dir

        chosen = user_cache_dir("dovetail")
    folder = Path(chosen) / "kernels"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder


def limit() -> int:
    """The bound on all files together, in bytes."""
    return int(float(os.environ.get("DOVETAIL_CACHE_MIB", LIMIT_MIB)) * (1 << 20))


def ready() -> None:
    """Imports what this module needs, and finds the folder."""
    directory(), _hashing()


@cache
def _hashing() -> Any:
    import hashlib  # 5 ms, which `import dovetail` need not pay

    return hashlib


def _sha256(content: bytes) -> Any:
    return _hashing().sha256(content)


def _path(fingerprint: str, text: str) -> Path | None:
    folder = directory()
    name = _sha256(f"{VERSION}\0{fingerprint}\0{text}".encode()).hexdigest()
    return None if folder is None else folder / name[:2] / name[2:40]


def _check(path: Path, binary: bytes) -> bytes:
    """What stands before a binary: it is of this kernel, and whole."""
    digest: bytes = _sha256(path.name.encode() + b"\0" + binary).digest()
    return digest


def read(fingerprint: str, text: str) -> bytes | None:
    """The binary of a kernel's text for a device, or None."""
    path = _path(fingerprint, text)
    if path is None:
        return None
    try:
        content = path.read_bytes()
    except OSError:
        return None
    binary = content[SHA:]
    if _check(path, binary) != content[:SHA]:
        forget(fingerprint, text)
        return None
    return binary


def write(fingerprint: str, text: str, binary: bytes) -> None:
    """Keeps a binary. A disk that refuses is no error: the next process compiles again."""
    global _written
    path = _path(fingerprint, text)
    if path is None:
        return
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        temporary = path.with_name(f".{os.getpid()}.{threading.get_ident()}.{path.name}")
        try:
            temporary.write_bytes(_check(path, binary) + binary)
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
    if _written % 64 == 0:
        prune()
    _written += 1


def forget(fingerprint: str, text: str) -> None:
    """Removes a binary that turned out to be no good."""
    path = _path(fingerprint, text)
    if path is not None:
        with suppress(OSError):
            path.unlink()


def source_digest(folder: Path) -> str:
    """A digest of the Python sources in a folder, for fingerprints: binaries depend on them."""
    sources = [path.read_bytes() for path in sorted(folder.glob("*.py"))]
    return str(_sha256(b"\0".join(sources)).hexdigest()[:16])


def prune() -> None:
    """Removes the files not written for longest until the rest fits three quarters of the bound."""
    folder, bound = directory(), limit()
    if folder is None:
        return
    files = []
    with suppress(OSError):
        for path in folder.glob("*/*"):
            with suppress(OSError):
                found = path.stat()
                files.append((found.st_mtime, found.st_size, path))
    total = sum(size for _, size, _ in files)
    if total <= bound:
        return
    for _, size, path in sorted(files):
        if total <= bound * 3 // 4:
            return
        with suppress(OSError):
            path.unlink()
            total -= size

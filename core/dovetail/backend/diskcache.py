"""Compiled kernels on disk: one file each, written atomically, checked when read, bounded in total.

What lies there is run, so it has to be the user's own. The folder is of mode 0700, and is left
unused (one warning says why) where others could write to it or to what leads there. A file is a
digest of its name and content, then the content; the digest's key is made with the folder, and is
in no other: what was copied from elsewhere, or put there by another program, is not run.

Anything that is not whole (truncated by a kill, corrupted, of another kernel or version) reads as
absent, goes, and is made anew. Two processes may write the same file: the last rename wins, and
both were right. `environment` says which variables move, bound and turn off the cache.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from io import FileIO
from pathlib import Path
from types import ModuleType

from .. import environment

SHA = 32  # bytes, of a digest and of its key
LIMIT_MIB = 256
MOST_MIB = 1 << 30
VERSION = "3"  # part of every key: the meaning of kernels and binaries
KEY = "key"  # the name of the key's file
STALE = 600  # seconds after which a temporary file has been left by a process that was killed
LINKS = 40  # followed on the way to the folder, as the system does
CHOSEN = "DOVETAIL_CACHE_DIR"
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_written = 0


class _Untrusted(OSError):
    """Why a file or a folder is not the user's alone."""


@cache
def directory() -> Path | None:
    """Where compiled kernels are kept; None where they cannot be."""
    if limit() == 0:
        return None
    chosen = environment.text(CHOSEN)
    try:
        folder = _trusted(Path(chosen or _default(), "kernels").absolute())
        _key(folder)
    except _Untrusted as why:
        mend = f"or name another folder by {CHOSEN}"
        environment.say_once(f"compiled kernels are not kept on disk: {why}, {mend}")
    except (OSError, ValueError) as error:
        if chosen is not None:  # without a home, as in some containers, there is nothing to say
            said = getattr(error, "strerror", None) or str(error)
            wanted = f"a folder that can be used ({said[:80]})"
            environment.nonsense(CHOSEN, chosen, wanted, "compiled kernels are not kept on disk")
    else:
        return folder
    return None


def _default() -> str:
    """The user's cache folder. Raises: OSError where there is no home for it."""
    from platformdirs import user_cache_dir

    found = user_cache_dir("dovetail")
    if not os.path.isabs(found):
        raise FileNotFoundError(f"the user has no home: {found}")
    return found


def limit() -> int:
    """The bound on all files together, in bytes."""
    return int(environment.number("DOVETAIL_CACHE_MIB", LIMIT_MIB, 0, MOST_MIB) * (1 << 20))


# --- whose a folder or file is


def _trusted(folder: Path) -> Path:
    """The folder, made if need be, with all links followed.

    Raises: _Untrusted, with the mend, where others could change what lies there.
    """
    for path in _way(folder):
        if not os.path.lexists(path):
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)
        found = path.lstat()
        _require_owner(path, found)
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(f"this is no folder: {path}")
    if hasattr(os, "geteuid"):
        _require_own(path, found)
    return path


def _way(path: Path) -> Iterator[Path]:
    """Every step on the way to an absolute path: folders, links, and what links lead to."""
    here, rest, links = Path(path.anchor), [*reversed(path.parts[1:])], 0
    yield here
    while rest:
        here = Path(os.path.normpath(here / rest.pop()))  # .. is the parent: here is no link
        yield here
        if here.is_symlink():
            links += 1
            if links > LINKS:
                raise OSError(f"too many links lead to {path}")
            target = Path(os.readlink(here))
            here = Path(target.anchor) if target.is_absolute() else here.parent
            rest += reversed(target.parts[target.is_absolute() :])


def _require_owner(path: Path, found: os.stat_result) -> None:
    """Raises: _Untrusted where somebody else than the user and root can put other things here."""
    if not hasattr(os, "geteuid"):
        return
    if found.st_uid not in (0, os.geteuid()):
        raise _Untrusted(f"{path} is another user's (number {found.st_uid})")
    sticky = found.st_mode & stat.S_ISVTX
    if not stat.S_ISLNK(found.st_mode) and not sticky and _others_write(found):
        raise _Untrusted(f"others can write to {path}: chmod go-w {path}")


def _require_own(folder: Path, found: os.stat_result) -> None:
    """Closes the user's own folder to others, who could only read it so far. Raises: _Untrusted."""
    if found.st_uid != os.geteuid():
        raise _Untrusted(f"{folder} is another user's (number {found.st_uid})")
    if _others_write(found):
        raise _Untrusted(f"others can write to {folder}: chmod go-w {folder}")
    if stat.S_IMODE(found.st_mode) & 0o077:
        folder.chmod(0o700)


def _others_write(found: os.stat_result) -> bool:
    open_to = found.st_mode & _OTHERS
    return bool(open_to) and not (open_to == stat.S_IWGRP and _alone(found.st_gid))


def _alone(group: int) -> bool:
    """Whether a group is the user's own, with nobody else in it.

    Many systems make one for each user, and open to it whatever that user makes.
    """
    import grp
    import pwd

    try:
        user, named = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    own = user.pw_gid == group and named.gr_name == user.pw_name
    return own and {*named.gr_mem} <= {user.pw_name}


def _content(path: Path, most: int, names: int = 1) -> bytes:
    """What a file holds that has up to `names` names.

    Raises: _Untrusted where it is not the user's alone, no plain file, or too long; OSError where
    it is a link, or is not there.
    """
    file = os.open(path, os.O_RDONLY | _NO_LINK)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_size > most or found.st_nlink > names:
            raise _Untrusted(f"{path} is no file of this cache")
        if hasattr(os, "geteuid") and (found.st_uid != os.geteuid() or found.st_mode & _OTHERS):
            raise _Untrusted(f"{path} is not the user's alone")
        with FileIO(file, "rb", closefd=False) as f:
            return f.readall()
    finally:
        os.close(file)


def _temporary(folder: Path, content: bytes) -> Path:
    """A new file of a name that nobody can know beforehand. Raises: OSError, and leaves none."""
    path = folder / f".{os.urandom(16).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK
    file = os.open(path, flags, 0o600)
    try:
        with FileIO(file, "wb") as f:  # `open` has gone when Python ends
            if f.write(content) < len(content):
                raise OSError(f"{path} could not be written whole")
    except BaseException:
        _remove(path)
        raise
    return path


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


# --- the key


@cache
def _key(folder: Path) -> bytes:
    """The secret of a folder, made with it. Raises: OSError where it cannot be had."""
    try:
        return _kept_key(folder)
    except _Untrusted:
        _remove(folder / KEY)
    except FileNotFoundError:
        pass
    return _new_key(folder)


def _kept_key(folder: Path) -> bytes:
    found = _content(folder / KEY, SHA, names=2)  # the second one goes when the key has been made
    if len(found) < SHA:
        raise _Untrusted(f"{folder / KEY} is no key")
    return found


def _new_key(folder: Path) -> bytes:
    """Writes a key. Of two processes that do at a time, both get that of the first."""
    path = _temporary(folder, os.urandom(SHA))
    try:
        os.link(path, folder / KEY)
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        os.replace(path, folder / KEY)
    finally:
        _remove(path)
    return _kept_key(folder)


# --- files


def ready() -> None:
    """Imports what this module needs, and finds the folder."""
    directory(), _hashing()


@cache
def _hashing() -> ModuleType:
    import hashlib  # 5 ms, which `import dovetail` need not pay

    return hashlib


def digest(content: bytes) -> bytes:
    """SHA bytes that no other content has."""
    found: bytes = _hashing().sha256(content).digest()
    return found


def _path(fingerprint: str, text: str) -> Path | None:
    folder = directory()
    name = digest(f"{VERSION}\0{fingerprint}\0{text}".encode()).hex()
    return None if folder is None else folder / name[:2] / name[2:40]


def _check(path: Path, binary: bytes) -> bytes:
    """What stands before a binary: it is of this kernel, whole, and written by this cache."""
    key, content = _key(path.parent.parent), path.name.encode() + b"\0" + binary
    found: bytes = _hashing().blake2b(content, key=key, digest_size=SHA).digest()
    return found


def read(fingerprint: str, text: str) -> bytes | None:
    """The binary of a kernel's text for a device, or None."""
    path = _path(fingerprint, text)
    if path is None:
        return None
    try:
        content = _content(path, limit())
    except _Untrusted:
        _remove(path)
        return None
    except OSError:
        return None
    binary = content[SHA:]
    if _check(path, binary) != content[:SHA]:
        _remove(path)
        return None
    return binary


def write(fingerprint: str, text: str, binary: bytes) -> None:
    """Keeps a binary. A disk that refuses is no error: the next process compiles again."""
    global _written
    path = _path(fingerprint, text)
    if path is None or SHA + len(binary) > limit():
        return
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        temporary = _temporary(path.parent, _check(path, binary) + binary)
        try:
            os.replace(temporary, path)
        except BaseException:
            _remove(temporary)
            raise
    if _written % 64 == 0:
        prune()
    _written += 1


def forget(fingerprint: str, text: str) -> None:
    """Removes a binary that turned out to be no good."""
    path = _path(fingerprint, text)
    if path is not None:
        _remove(path)


def source_digest(folder: Path) -> str:
    """A digest of the Python sources in a folder, for fingerprints: binaries depend on them."""
    sources = [path.read_bytes() for path in sorted(folder.glob("*.py"))]
    return digest(b"\0".join(sources)).hex()[:16]


def prune() -> None:
    """Removes what killed processes have left, and the files written longest ago.

    It stops where the rest fits three quarters of the bound.
    """
    folder, bound = directory(), limit()
    if folder is None:
        return
    files = []
    with suppress(OSError):
        for path in (*folder.glob(".*"), *folder.glob("*/*")):
            with suppress(OSError):
                found = path.lstat()
                if path.name.startswith(".") and time.time() - found.st_mtime > STALE:
                    path.unlink()
                else:
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

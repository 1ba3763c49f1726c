"""The disk cache of compiled kernels: a file each, written atomically, checked, bounded in total.

The process runs these files, so they must belong to the user alone. The folder has mode 0700. It
is not used (one warning gives the reason) if other users can write to it or to a folder that leads
to it. A file consists of an authentication code of its name and content, then the content. The key
of the code is created with the folder, so files copied from elsewhere, or put there by another
program, are not run.

A damaged file (truncated by a kill, corrupted, of another kernel or version) reads as absent, is
removed, and is compiled again. Two processes may write the same file: the last rename wins, and
both files are valid. `environment` has the variables that move, bound and disable the cache.
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

DIGEST_BYTES = 32  # bytes of a digest and of the key
SIZE_MIB_DEFAULT = 256
SIZE_MIB_MAX = 1 << 30
CACHE_VERSION = "3"  # part of every key: the meaning of kernels and binaries
KEY_FILE_NAME = "key"  # name of the key's file
TEMPORARY_AGE_SECONDS_MAX = (
    600  # seconds after which a temporary file counts as left behind by a killed process
)
SYMLINKS_MAX = 40  # maximum of symbolic links on the way to the folder, like the system's
FOLDER_VARIABLE = "DOVETAIL_CACHE_DIR"
_OPEN_FLAGS = (
    getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
)
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_write_count = 0


class _Untrusted(OSError):
    """An error for a file or folder that does not belong to the user alone."""


@cache
def cache_folder() -> Path | None:
    """Return the cache's folder, created if missing, or None, with one warning, if unusable."""
    if size_limit() == 0:
        return None
    chosen = environment.read_text(FOLDER_VARIABLE)
    try:
        folder = _open_trusted_folder(Path(chosen or _find_default_folder(), "kernels").absolute())
        _find_or_create_key(folder)
    except _Untrusted as why:
        advice = f"set {FOLDER_VARIABLE} to use another folder"
        environment.warn_once(f"compiled kernels are not cached on disk: {why}; {advice}")
    except (OSError, ValueError) as error:
        if chosen is not None:  # no warning if there is no home, as in some containers
            text = getattr(error, "strerror", None) or str(error)
            expected = f"a usable folder ({text[:80]})"
            environment.warn_invalid(
                FOLDER_VARIABLE, chosen, expected, "compiled kernels are not cached on disk"
            )
    else:
        return folder
    return None


def _find_default_folder() -> str:
    """Return the user's cache folder. Raises: FileNotFoundError if the user has no home."""
    from platformdirs import user_cache_dir

    folder = user_cache_dir("dovetail")
    if not os.path.isabs(folder):
        raise FileNotFoundError(f"the user has no home folder: {folder}")
    return folder


def size_limit() -> int:
    """Return the limit of the total size of all files, in bytes; 0 disables the cache."""
    return int(
        environment.read_float("DOVETAIL_CACHE_MIB", SIZE_MIB_DEFAULT, 0, SIZE_MIB_MAX) * (1 << 20)
    )


# --- ownership of folders and files


def _open_trusted_folder(folder: Path) -> Path:
    """Return the folder with all links resolved; create it if necessary.

    Raises: _Untrusted, with advice, if other users could change its content.
    """
    for path in _path_components(folder):
        if not os.path.lexists(path):
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)
        status = path.lstat()
        _require_owner(path, status)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(f"this is not a folder: {path}")
    if hasattr(os, "geteuid"):
        _require_own(path, status)
    return path


def _path_components(path: Path) -> Iterator[Path]:
    """Yield each folder and link on the way to an absolute path, including targets of links."""
    current, remaining, links = Path(path.anchor), [*reversed(path.parts[1:])], 0
    yield current
    while remaining:
        current = Path(
            os.path.normpath(current / remaining.pop())
        )  # `..` is the parent folder: `current` is no link
        yield current
        if current.is_symlink():
            links += 1
            if links > SYMLINKS_MAX:
                raise OSError(f"too many symbolic links on the way to {path}")
            target = Path(os.readlink(current))
            current = Path(target.anchor) if target.is_absolute() else current.parent
            remaining += reversed(target.parts[target.is_absolute() :])


def _require_owner(path: Path, status: os.stat_result) -> None:
    """Raise _Untrusted unless this user or root owns a path that no other user can replace."""
    if not hasattr(os, "geteuid"):
        return
    if status.st_uid not in (0, os.geteuid()):
        raise _Untrusted(f"{path} belongs to another user (uid {status.st_uid})")
    sticky = status.st_mode & stat.S_ISVTX
    if not stat.S_ISLNK(status.st_mode) and not sticky and _is_writable_by_others(status):
        raise _Untrusted(f"other users can write to {path} (fix: chmod go-w {path})")


def _require_own(folder: Path, status: os.stat_result) -> None:
    """Raise _Untrusted for another user's folder; else remove the access of others."""
    if status.st_uid != os.geteuid():
        raise _Untrusted(f"{folder} belongs to another user (uid {status.st_uid})")
    if _is_writable_by_others(status):
        raise _Untrusted(f"other users can write to {folder} (fix: chmod go-w {folder})")
    if stat.S_IMODE(status.st_mode) & 0o077:
        folder.chmod(0o700)


def _is_writable_by_others(status: os.stat_result) -> bool:
    """Return True if others may write: any user, or a group other than the user's private one."""
    open_to = status.st_mode & _WRITABLE_BY_OTHERS
    return bool(open_to) and not (open_to == stat.S_IWGRP and _is_private_group(status.st_gid))


def _is_private_group(group: int) -> bool:
    """Return True if a group is the user's private group, without other members.

    Many systems create one for each user, and make new files writable for it.
    """
    import grp
    import pwd

    try:
        user, named = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    own = user.pw_gid == group and named.gr_name == user.pw_name
    return own and {*named.gr_mem} <= {user.pw_name}


def _read_file(path: Path, nbytes_max: int, links_max: int = 1) -> bytes:
    """Return the content of a file with at most `links_max` hard links.

    Raises: _Untrusted if it does not belong to the user alone, is no plain file, or is too long;
    OSError for a symbolic link or a missing file.
    """
    file = os.open(path, os.O_RDONLY | _OPEN_FLAGS)
    try:
        status = os.fstat(file)
        if (
            not stat.S_ISREG(status.st_mode)
            or status.st_size > nbytes_max
            or status.st_nlink > links_max
        ):
            raise _Untrusted(f"{path} is not a file of this cache")
        if hasattr(os, "geteuid") and (
            status.st_uid != os.geteuid() or status.st_mode & _WRITABLE_BY_OTHERS
        ):
            raise _Untrusted(f"{path} belongs to another user, or others can write to it")
        with FileIO(file, "rb", closefd=False) as f:
            return f.readall()
    finally:
        os.close(file)


def _write_temporary(folder: Path, content: bytes) -> Path:
    """Write content to a new file with an unpredictable name. Raises: OSError, leaving no file."""
    path = folder / f".{os.urandom(16).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN_FLAGS
    file = os.open(path, flags, 0o600)
    try:
        with FileIO(file, "wb") as f:  # `open` does not exist at interpreter exit
            if f.write(content) < len(content):
                raise OSError(f"{path} could not be written completely")
    except BaseException:
        _remove(path)
        raise
    return path


def _remove(path: Path) -> None:
    """Delete a file; ignore errors of the system."""
    with suppress(OSError):
        path.unlink()


# --- the key


@cache
def _find_or_create_key(folder: Path) -> bytes:
    """Return a folder's secret key, created if missing or untrusted; cached. Raises: OSError."""
    try:
        return _read_key(folder)
    except _Untrusted:
        _remove(folder / KEY_FILE_NAME)
    except FileNotFoundError:
        pass
    return _create_key(folder)


def _read_key(folder: Path) -> bytes:
    """Read the key of a folder. Raises: _Untrusted, also for a short key; FileNotFoundError."""
    key = _read_file(
        folder / KEY_FILE_NAME, DIGEST_BYTES, links_max=2
    )  # the second name exists while the key is created
    if len(key) < DIGEST_BYTES:
        raise _Untrusted(f"{folder / KEY_FILE_NAME} is not a cache key")
    return key


def _create_key(folder: Path) -> bytes:
    """Create a key. Two processes that do so at the same time get the key of the first."""
    path = _write_temporary(folder, os.urandom(DIGEST_BYTES))
    try:
        os.link(path, folder / KEY_FILE_NAME)
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        os.replace(path, folder / KEY_FILE_NAME)
    finally:
        _remove(path)
    return _read_key(folder)


# --- files


def prepare_cache() -> None:
    """Import hashlib and find or create the cache's folder before kernels are compiled."""
    cache_folder(), _import_hashlib()


@cache
def _import_hashlib() -> ModuleType:
    """Import and return hashlib, which takes 5 ms."""
    import hashlib  # 5 ms, not part of `import dovetail`

    return hashlib


def sha256_digest(content: bytes) -> bytes:
    """Return the SHA-256 digest of a content."""
    result: bytes = _import_hashlib().sha256(content).digest()
    return result


def _path(fingerprint: str, text: str) -> Path | None:
    """Return the file of a kernel's text for a device, existing or not, or None without a cache."""
    folder = cache_folder()
    name = sha256_digest(f"{CACHE_VERSION}\0{fingerprint}\0{text}".encode()).hex()
    return None if folder is None else folder / name[:2] / name[2:40]


def _authentication_code(path: Path, binary: bytes) -> bytes:
    """Return the authentication code of a file: its name, its content, and this cache's key."""
    key, content = _find_or_create_key(path.parent.parent), path.name.encode() + b"\0" + binary
    code: bytes = _import_hashlib().blake2b(content, key=key, digest_size=DIGEST_BYTES).digest()
    return code


def read(fingerprint: str, text: str) -> bytes | None:
    """Return the cached binary of a kernel's text for a device, or None; delete damaged files.

    - `fingerprint`: the device's, from `DeviceInfo`.
    - `text`: the text that was compiled.
    """
    path = _path(fingerprint, text)
    if path is None:
        return None
    try:
        content = _read_file(path, size_limit())
    except _Untrusted:
        _remove(path)
        return None
    except OSError:
        return None
    binary = content[DIGEST_BYTES:]
    if _authentication_code(path, binary) != content[:DIGEST_BYTES]:
        _remove(path)
        return None
    return binary


def write(fingerprint: str, text: str, binary: bytes) -> None:
    """Store a binary; ignore a failed write, skip one above the limit, and prune now and then.

    - `fingerprint`: the device's, from `DeviceInfo`.
    - `text`: the text that was compiled.
    - `binary`: the bytes to store.
    """
    global _write_count
    path = _path(fingerprint, text)
    if path is None or DIGEST_BYTES + len(binary) > size_limit():
        return
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        temporary = _write_temporary(path.parent, _authentication_code(path, binary) + binary)
        try:
            os.replace(temporary, path)
        except BaseException:
            _remove(temporary)
            raise
    if _write_count % 64 == 0:
        prune_cache()
    _write_count += 1


def remove_binary(fingerprint: str, text: str) -> None:
    """Delete the file of a binary that could not be loaded, if there is one."""
    path = _path(fingerprint, text)
    if path is not None:
        _remove(path)


def source_digest(folder: Path) -> str:
    """Return a digest of the Python sources in a folder, for fingerprints of binaries.

    - `folder`: the path of the folder.
    """
    sources = [path.read_bytes() for path in sorted(folder.glob("*.py"))]
    return sha256_digest(b"\0".join(sources)).hex()[:16]


def prune_cache() -> None:
    """Remove files of killed processes, and the oldest files if the cache exceeds its limit.

    The remaining files take at most three quarters of the limit.
    """
    folder, bound = cache_folder(), size_limit()
    if folder is None:
        return
    files = []
    with suppress(OSError):
        for path in (*folder.glob(".*"), *folder.glob("*/*")):
            with suppress(OSError):
                status = path.lstat()
                if (
                    path.name.startswith(".")
                    and time.time() - status.st_mtime > TEMPORARY_AGE_SECONDS_MAX
                ):
                    path.unlink()
                else:
                    files.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in files)
    if total <= bound:
        return
    for _, size, path in sorted(files):
        if total <= bound * 3 // 4:
            return
        with suppress(OSError):
            path.unlink()
            total -= size

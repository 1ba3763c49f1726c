"""The system's compilers, and shared libraries that they make of a user's sources."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CompileError
from ..lazy_import import LazyModule

if TYPE_CHECKING:
    import subprocess
else:  # plugins load this module, few compile
    subprocess = LazyModule("subprocess")

COMPILE_SECONDS_MAX = 300  # seconds that a compiler may take
# language -> variable that names the compiler, names to look for, advice if there is none
COMPILERS = {
    "C": ("", ("cc", "gcc", "clang"), "apt install gcc libc6-dev"),
    "C++": ("CXX", ("c++", "g++", "clang++"), "apt install g++"),
    "CUDA": ("NVCC", ("nvcc",), "install NVIDIA's CUDA toolkit"),
}
_QUOTED_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)


@cache
def find_compiler(language: str) -> tuple[str, str]:
    """Return (path, version text) of the first compiler of a language; cached.

    - `language`: "C", "C++" or "CUDA".

    Raises: CompileError if there is none.
    """
    variable, names, advice = COMPILERS[language]
    chosen = os.environ.get(variable) if variable else None
    for name in (chosen,) if chosen else names:
        path = shutil.which(name)
        if path is None:
            continue
        result = subprocess.run(
            [path, "--version"],
            capture_output=True,
            encoding="utf-8",
            errors="replace",  # compilers quote lines of the source
            check=False,
            timeout=COMPILE_SECONDS_MAX,
        )
        if result.returncode == 0:
            return path, result.stdout
    raise CompileError(
        f"no {language} compiler ({chosen or ', '.join(names)}) is on the PATH; install one "
        f"({advice}), or use dt.kernel, which needs none"
    )


def run_compiler(command: Sequence[str], what: str = "the source") -> str:
    """Run a compiler and return what it printed.

    - `command`: the path of the compiler, and its arguments.
    - `what`: the name of the source in the error.

    Raises: CompileError with the compiler's errors, or if it cannot be run or takes too long.
    """
    try:
        result = subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",  # compilers quote lines of the source
            check=False,
            timeout=COMPILE_SECONDS_MAX,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise CompileError(f"{command[0]} could not be run: {error}") from error
    if result.returncode != 0:
        raise CompileError(f"{command[0]} rejected {what}:\n{result.stderr.strip()}")
    return result.stdout + result.stderr


def load_library(binary: bytes, load: Callable[[str], Any] = ctypes.CDLL) -> Any:
    """Load a library through a temporary file, which is deleted.

    - `binary`: the bytes of the library.
    - `load`: a function of the file's path.

    Raises: OSError if that fails.
    """
    number, path = tempfile.mkstemp(prefix="dovetail-", suffix=".so")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(binary)
        return load(path)
    finally:
        with suppress(OSError):  # Windows cannot delete a loaded file
            os.unlink(path)


def find_included(files: Iterable[Path], folders: Iterable[Path] = ()) -> list[Path]:
    """Return the files that C sources include, and those that these include, in a fixed order.

    Headers of the system are not searched.

    - `files`: source files.
    - `folders`: folders with headers, beside that of each file.

    Raises: OSError for a file that cannot be read.
    """
    queue, folders = list(files), list(folders)
    sources = len(queue)
    for path in queue:  # which grows
        for name in _QUOTED_INCLUDE.findall(path.read_text("utf-8", "replace")):
            for folder in (path.parent, *folders):
                included = Path(os.path.normpath(folder / name))
                if included.is_file():
                    if included not in queue:
                        queue.append(included)
                    break
    return queue[sources:]

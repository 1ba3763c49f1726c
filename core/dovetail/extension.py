"""C, C++ and CUDA sources of users, compiled at run time to a Python module or a library.

Both run the code of the sources in this process: load only sources that you trust.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import dovetail as dt
from dovetail.extend import (
    CompileError,
    arguments,
    cache_binary,
    cached_binary,
    find_compiler,
    find_included,
    install_command,
    load_library,
    publish_all,
    run_compiler,
)

__all__ = ["Library", "load", "load_inline"]

LANGUAGES = {".c": "C", ".cc": "C++", ".cpp": "C++", ".cxx": "C++", ".cu": "CUDA"}
FLAGS = {
    "C": ("-std=gnu11", "-O3", "-ffp-contract=off", "-fPIC"),
    "C++": ("-std=c++17", "-O3", "-ffp-contract=off", "-fPIC"),
    "CUDA": ("-std=c++17", "-O3", "--fmad=false", "-Xcompiler", "-fPIC"),
}
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_INT64 = -(1 << 63), (1 << 63) - 1
_libraries: dict[str, ModuleType | Library] = {}  # by the text that the binary depends on


def __dir__() -> list[str]:
    return __all__


class Library:
    """A library without a Python module: its C functions are attributes.

    Arguments of a function: a tensor or a NumPy array is a pointer to its first element, a bool is
    `bool`, an int `int64_t`, a float `double`, a NumPy number its C type; objects of ctypes are
    passed unchanged. The result is None, unless `restype` of the function is set, as in ctypes.
    Memory is contiguous. Pending work on it is computed before the call. Tensors are on a device
    in host memory, or, for CUDA sources, on a device whose memory has addresses.

    - `name`: the name for errors.
    - `library`: the library, loaded by ctypes.
    - `on_device`: True if the functions take addresses of a device's own memory, too.

    >>> import ctypes
    >>> import dovetail as dt
    >>> dt.extension.Library("c", ctypes.CDLL(None)).abs
    <function abs of the library c>
    """

    def __init__(self, name: str, library: ctypes.CDLL, on_device: bool = False) -> None:
        self._name, self._library, self._on_device = name, library, on_device

    def __getattr__(self, name: str) -> _Function:
        try:
            function = self._library[name]
        except AttributeError:
            raise AttributeError(
                f"the library {self._name} has no function {name!r}; declare a function of C++ as "
                'extern "C"'
            ) from None
        function.restype = None
        wrapper = self.__dict__[name] = _Function(name, self._name, function, self._on_device)
        return wrapper

    def __repr__(self) -> str:
        return f"<dt.extension library {self._name}>"


class _Function:
    """A C function of a library, called with tensors and numbers."""

    def __init__(self, name: str, library: str, function: Any, on_device: bool) -> None:
        self.__name__, self._library = name, library
        self._function, self._on_device = function, on_device

    @property
    def restype(self) -> Any:
        """The type of the result: one of ctypes, or None."""
        return self._function.restype

    @restype.setter
    def restype(self, restype: Any) -> None:
        self._function.restype = restype

    def __call__(self, *args: object) -> Any:
        """Call the function.

        Raises: ArgumentTypeError, DeviceError, LayoutError, GradientError for an argument that
        cannot be passed; CaptureError for a tensor in `dt.jit`.
        """
        converted = [self._convert(k, x) for k, x in enumerate(args)]
        try:
            return self._function(*converted)
        except ctypes.ArgumentError as error:
            raise dt.ArgumentTypeError(
                f"{self.__name__}: an argument must be a tensor, an array, a number, bytes or an "
                f"object of ctypes, got {', '.join(type(x).__name__ for x in args)} ({error})"
            ) from None

    def __repr__(self) -> str:
        return f"<function {self.__name__} of the library {self._library}>"

    def _convert(self, k: int, x: object) -> Any:
        """Return argument number k as an object of ctypes."""
        if isinstance(x, dt.Tensor):
            return ctypes.c_void_p(self._address(k, x))
        if isinstance(x, bool):
            return ctypes.c_bool(x)
        if isinstance(x, int):
            if not _INT64[0] <= x <= _INT64[1]:
                raise dt.ArgumentError(f"{self.__name__}: argument {k} must fit int64, got {x}")
            return ctypes.c_int64(x)
        if isinstance(x, float):
            return ctypes.c_double(x)
        if isinstance(x, np.ndarray):
            if not x.flags.c_contiguous:
                raise dt.LayoutError(
                    f"{self.__name__}: argument {k} must be contiguous, got strides {x.strides}; "
                    "pass np.ascontiguousarray(x)"
                )
            return ctypes.c_void_p(x.ctypes.data)
        if isinstance(x, np.generic):
            return np.ctypeslib.as_ctypes_type(x.dtype)(x.item())  # type: ignore[arg-type]  # any number
        return x  # ctypes converts its own objects, bytes and None

    def _address(self, k: int, x: dt.Tensor) -> int:
        """Return the address of a tensor's first element. Raises: see `__call__`."""
        name = f"{self.__name__}: argument {k}"
        if x.requires_grad and dt.is_grad_enabled():
            raise dt.GradientError(
                f"{name} requires a gradient, which a compiled function does not have; use "
                "dt.custom_op with gradient=, or pass x.detach()"
            )
        if not dt.is_contiguous(x):
            raise dt.LayoutError(
                f"{name} must be contiguous, got strides {x.stride()}; pass x.contiguous(), or "
                "x.data_ptr() and the strides"
            )
        address = x.data_ptr()
        if dt.plugins.open_device(x.device).backend.host:
            return address
        ptr = x.storage().ptr
        if not self._on_device or not isinstance(ptr.handle, int):
            raise dt.DeviceError(
                f"{name} must be on a device in host memory, got {x.device}; pass x.to('cpu')"
            )
        return ptr.handle + ptr.offset + x.storage_offset() * x.itemsize


def load(
    name: str,
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str | os.PathLike[str]] | None = None,
    build_directory: str | os.PathLike[str] | None = None,
    verbose: bool = False,
) -> Any:
    """Compile source files and return them as a Python module, or else as a `Library`.

    It is a module if the sources define `PyInit_<name>`, as pybind11 and Python's C API do. The
    binary is cached by the content of sources and headers, the compiler and the flags: an edit is
    compiled at the next call, and an unchanged call returns the same object. It runs the code of
    the sources in this process.

    - `name`: the name of the module.
    - `sources`: files whose endings name the language: .c, .cc, .cpp, .cxx or .cu (by nvcc).
    - `extra_cflags`: words for the compiler of C and C++.
    - `extra_cuda_cflags`: words for nvcc.
    - `extra_ldflags`: words for the linker, such as "-lm".
    - `extra_include_paths`: folders with headers.
    - `build_directory`: a folder that keeps the binary, for a debugger. Default: the disk cache.
    - `verbose`: True prints the commands and the compiler's warnings on stderr.

    Raises: CompileError with the compiler's errors, or without a compiler; ArgumentError,
    ArgumentTypeError.
    See also: `load_inline`, `dt.raw_kernel`, `dt.custom_op`.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import dovetail as dt
    >>> file = Path(tempfile.mkdtemp(), "fill.c")
    >>> _ = file.write_text("void fill(float *x, long n, double v) { while (n--) x[n] = v; }")
    >>> library = dt.extension.load("fill", file)
    >>> x = dt.zeros(3, device="reference")
    >>> library.fill(x, 3, 2.5)
    >>> x.tolist()
    [2.5, 2.5, 2.5]
    """
    _check_name("load", name)
    listed = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    files = [Path(os.path.abspath(s)) for s in listed]
    for file in files:
        if file.suffix not in LANGUAGES:
            raise dt.ArgumentError(
                f"extension.load: a source must end in {', '.join(LANGUAGES)}, got {str(file)!r}"
            )
        if not file.is_file():
            raise dt.ArgumentError(f"extension.load: the source {str(file)!r} does not exist")
    if not files:
        raise dt.ArgumentError("extension.load: sources must name a file, got none")
    build = _Build(
        name,
        files,
        {
            "C": _words("extra_cflags", extra_cflags),
            "C++": _words("extra_cflags", extra_cflags),
            "CUDA": _words("extra_cuda_cflags", extra_cuda_cflags),
        },
        _words("extra_ldflags", extra_ldflags),
        _words("extra_include_paths", extra_include_paths),
        arguments.flag("extension.load", verbose, "verbose"),
    )
    folder = None if build_directory is None else Path(os.path.abspath(build_directory))
    earlier = _libraries.get(build.key)
    return _libraries.setdefault(build.key, build.load(folder)) if earlier is None else earlier


def _check_name(op: str, name: object) -> None:
    """Raise ArgumentError unless a name of a module is an identifier of C."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise dt.ArgumentError(f"extension.{op}: name must be an identifier, got {name!r}")


def _words(name: str, words: Sequence[str | os.PathLike[str]] | None) -> list[str]:
    """Return words for a compiler. Raises: ArgumentTypeError for a string or other objects."""
    if isinstance(words, str) or not all(isinstance(w, str | os.PathLike) for w in words or ()):
        raise arguments.refused("extension.load", name, "a list of strings", words)
    return [os.fspath(w) for w in words or ()]


class _Build:
    """The sources and commands of one library."""

    def __init__(
        self,
        name: str,
        files: Sequence[Path],
        flags: Mapping[str, list[str]],
        link_flags: list[str],
        folders: list[str],
        verbose: bool,
    ) -> None:
        self.name, self.files, self.verbose = name, files, verbose
        self.languages = [LANGUAGES[f.suffix] for f in files]
        self.compilers = {k: find_compiler(k) for k in dict.fromkeys(self.languages)}
        headers = find_included(files, map(Path, folders))
        contents = [(f.name, f.read_bytes()) for f in (*files, *headers)]
        folders = [*folders, sysconfig.get_paths()["include"]]
        if any(b"pybind11/" in content for _, content in contents):
            folders += _find_pybind11(folders) or []
        includes = [f"-I{folder}" for folder in dict.fromkeys(folders)]
        self.flags = {k: [*FLAGS[k], *includes, *flags[k]] for k in self.compilers}
        self.linker = next(k for k in ("CUDA", "C++", "C") if k in self.compilers)
        self.link_flags = link_flags
        self.key = repr((name, self.compilers, self.flags, link_flags, contents))

    def load(self, folder: Path | None) -> ModuleType | Library:
        """Load the binary of the disk cache, or compile and store it; keep it in `folder`, if any.

        Raises: CompileError, also if the library calls a function that no library defines.
        """
        binary = self._binary()
        try:
            if folder is None:
                library: ModuleType | Library = load_library(binary, self._open)
                return library
            folder.mkdir(parents=True, exist_ok=True)
            path, temporary = (folder / f"{self.name}{end}.so" for end in ("", f".{os.getpid()}"))
            temporary.write_bytes(binary)
            os.replace(temporary, path)  # a library that this process has loaded stays whole
            return self._open(str(path))
        except (OSError, ImportError) as error:
            raise CompileError(f"extension.load: {self.name} cannot be loaded: {error}") from None

    def _binary(self) -> bytes:
        """Return the library's bytes, from the disk cache or compiled. Raises: CompileError."""
        binary = cached_binary("extension", self.key)
        if binary is None:
            binary = self._compile()
            cache_binary("extension", self.key, binary)
        return binary

    def _compile(self) -> bytes:
        """Compile each source, and link. Raises: CompileError with the compiler's errors."""
        with tempfile.TemporaryDirectory(prefix="dovetail-") as folder:
            objects = [f"{folder}/{k}.o" for k in range(len(self.files))]
            for file, language, target in zip(self.files, self.languages, objects, strict=True):
                command = [self.compilers[language][0], *self.flags[language], "-c", str(file)]
                self._run([*command, "-o", target], str(file))
            library = f"{folder}/{self.name}.so"
            linker = [self.compilers[self.linker][0], "-shared", *objects, "-o", library]
            self._run([*linker, *self.link_flags], "the compiled sources")
            return Path(library).read_bytes()

    def _run(self, command: Sequence[str], what: str) -> None:
        """Run a compiler; print the command and its output if verbose. Raises: CompileError."""
        if self.verbose:
            print(*command, file=sys.stderr)
        try:
            output = run_compiler(command, what)
        except CompileError as error:
            raise CompileError(f"extension.load: {error}") from None
        if self.verbose and output:
            print(output.rstrip(), file=sys.stderr)

    def _open(self, path: str) -> ModuleType | Library:
        """Load a library: a module if it has PyInit_<name>, else a Library. Raises: OSError."""
        library = ctypes.CDLL(path)
        if not hasattr(library, f"PyInit_{self.name}"):
            return Library(self.name, library, self.linker == "CUDA")
        spec = spec_from_file_location(self.name, path, loader=ExtensionFileLoader(self.name, path))
        assert spec is not None and spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


def _find_pybind11(folders: Sequence[str]) -> list[str] | None:
    """Return the folders to add for pybind11's headers, or None if they are not installed."""
    if any(Path(folder, "pybind11").is_dir() for folder in folders):
        return []
    try:
        return [str(import_module("pybind11").get_include())]
    except ImportError:
        return None


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    cuda_sources: str | Sequence[str] | None = None,
    functions: str | Sequence[str] | Mapping[str, str] | None = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str | os.PathLike[str]] | None = None,
    build_directory: str | os.PathLike[str] | None = None,
    verbose: bool = False,
) -> Any:
    """Compile C++ and CUDA texts, and return what `load` returns of files with them.

    - `name`: the name of the module.
    - `cpp_sources`: one or more texts of C++.
    - `cuda_sources`: one or more texts of CUDA.
    - `functions`: names of functions of `cpp_sources`, or a dict of names and docstrings, of which
      pybind11 makes a module. Without it the functions of the library are those of `extern "C"`.
    - `extra_cflags`, `extra_cuda_cflags`, `extra_ldflags`, `extra_include_paths`: as in `load`.
    - `build_directory`, `verbose`: as in `load`.

    Raises: CompileError with the compiler's errors, or without a compiler; ModuleNotFoundError for
    `functions` without pybind11; ArgumentError, ArgumentTypeError.

    >>> import dovetail as dt
    >>> library = dt.extension.load_inline(
    ...     "twice", 'extern "C" void twice(double *x, long n) { while (n--) x[n] *= 2; }')
    >>> x = dt.arange(3, dtype=dt.float64, device="reference")
    >>> library.twice(x, 3)
    >>> x.tolist()
    [0.0, 2.0, 4.0]
    """
    _check_name("load_inline", name)
    texts = _texts("cpp_sources", cpp_sources)
    if functions is not None:
        if _find_pybind11(_words("extra_include_paths", extra_include_paths)) is None:
            raise ModuleNotFoundError(
                "extension.load_inline: functions= needs pybind11: "
                f'{install_command("pybind11")}; or declare the functions as extern "C"'
            )
        names = [functions] if isinstance(functions, str) else functions
        docs = names if isinstance(names, Mapping) else dict.fromkeys(names, "")
        lines = [f'm.def("{f}", &{f}, R"doc({text})doc");' for f, text in docs.items()]
        module = "\n".join([f"PYBIND11_MODULE({name}, m) {{", *lines, "}"])
        texts = ["#include <pybind11/pybind11.h>", *texts, module]
    contents = {".cpp": texts}
    if cuda_sources is not None:
        contents[".cu"] = _texts("cuda_sources", cuda_sources)
    with tempfile.TemporaryDirectory(prefix="dovetail-") as folder:
        files = []
        for ending, lines in contents.items():
            files.append(Path(folder, f"{name}{ending}"))
            files[-1].write_text("\n".join([*lines, ""]), "utf-8")
        return load(
            name,
            files,
            extra_cflags,
            extra_cuda_cflags,
            extra_ldflags,
            extra_include_paths,
            build_directory,
            verbose,
        )


def _texts(name: str, texts: str | Sequence[str]) -> list[str]:
    """Return the texts. Raises: ArgumentTypeError for other objects."""
    listed = [texts] if isinstance(texts, str) else list(texts)
    if not all(isinstance(text, str) for text in listed):
        raise arguments.refused("extension.load_inline", name, "a text or a list of texts", texts)
    return listed


publish_all(globals())

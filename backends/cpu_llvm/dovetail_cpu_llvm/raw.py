"""Kernels that users write in C: compiled by the system's compiler, and called once a launch."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dovetail.extend import (
    CompileError,
    DType,
    Grid,
    RawArgument,
    RawLaunch,
    Scalar,
    StreamHandle,
    cache_binary,
    cached_binary,
    find_compiler,
    load_library,
    run_compiler,
)

FLAGS = ("-x", "c", "-std=gnu11", "-O3", "-ffp-contract=off", "-fPIC", "-shared")
_C_TYPES = {
    "bool": "bool", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
    "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t",
    "float16": "uint16_t", "bfloat16": "uint16_t", "float32": "float", "float64": "double",
    "complex64": "float _Complex", "complex128": "double _Complex",
}  # fmt: skip
_CTYPES: dict[str, Any] = {
    "bool": ctypes.c_bool,
    "int8": ctypes.c_int8,
    "int16": ctypes.c_int16,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "uint8": ctypes.c_uint8,
    "uint16": ctypes.c_uint16,
    "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}


def prototype(name: str, arguments: Sequence[RawArgument]) -> str:
    """Return the C declaration of a function of these parameters."""
    return f"void {name}({', '.join(map(_declare, arguments)) or 'void'})"


def _declare(a: RawArgument) -> str:
    """Return the C declaration of a parameter; read-only memory is const."""
    return f"{'const ' * (a.access == 'r')}{_find_c_type(a.dtype)} {'*' * bool(a.access)}{a.name}"


def _find_c_type(d: DType) -> str:
    """Return the C name of a dtype."""
    return _C_TYPES[d.name]


def compile_raw(
    device_fingerprint: str,
    source: str,
    name: str,
    arguments: Sequence[RawArgument],
    options: Sequence[str],
) -> RawLaunch:
    """Compile C text, or load it from a device's disk cache; return a caller of function `name`.

    Raises: CompileError if there is no compiler, or it rejects the text, or the text has no such
    function or calls one that is not defined.
    """
    declaration = prototype(name, arguments)
    text = (
        "#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n"
        f'#line 1 "{name}.c"\n{source}\n#line 1 "signature"\n{declaration};\n'
    )
    library = _load_or_compile(device_fingerprint, text, name, tuple(options), declaration)
    try:
        f = library[name]
    except AttributeError:
        raise CompileError(
            f"the source must define the function {name}; write `{declaration} {{...}}`"
        ) from None
    f.restype = None
    f.argtypes = [ctypes.c_void_p if a.access else _CTYPES[a.dtype.name] for a in arguments]
    return _make_caller(f, arguments)


def _make_caller(f: Any, arguments: Sequence[RawArgument]) -> RawLaunch:
    """Return a launch that calls `f` with addresses and numbers; it ignores grid and stream.

    `f` keeps its library loaded: ctypes refers to it.
    """
    memory = [a for a in arguments if a.access]
    if tuple(arguments[: len(memory)]) == tuple(memory):  # memory first, then numbers: the usual

        def call_memory_first(
            at: list[Any], numbers: Sequence[Scalar], grid: Grid | None, stream: StreamHandle
        ) -> None:
            """Call the function with all addresses, then all numbers."""
            f(*map(int.__add__, at[::2], at[1::2]), *numbers)

        return call_memory_first
    pointers = iter(range(len(memory)))
    scalars = iter(range(len(arguments) - len(memory)))
    order = [(True, next(pointers)) if a.access else (False, next(scalars)) for a in arguments]

    def call_any_order(
        at: list[Any], numbers: Sequence[Scalar], grid: Grid | None, stream: StreamHandle
    ) -> None:
        """Call the function with addresses and numbers in the order of its parameters."""
        f(*[at[2 * k] + at[2 * k + 1] if is_memory else numbers[k] for is_memory, k in order])

    return call_any_order


def _load_or_compile(
    fingerprint: str, text: str, name: str, options: tuple[str, ...], declaration: str
) -> ctypes.CDLL:
    """Load the library from the disk cache, or compile and cache it.

    Raises: CompileError if there is no compiler, it rejects the text, or a name is not defined.
    """
    compiler, version = find_compiler("C")
    key = "\n".join([version, *FLAGS, *options, text])
    cached = cached_binary(fingerprint, key)
    if cached is not None:
        try:
            library: ctypes.CDLL = load_library(cached)
            return library
        except OSError:
            pass  # damaged: compile again
    binary = _compile(compiler, text, name, options, declaration)
    try:
        library = load_library(binary)
    except OSError as error:  # it calls a function that no library defines
        raise CompileError(f"the compiled source cannot be loaded: {error}") from None
    cache_binary(fingerprint, key, binary)
    return library


def _compile(
    compiler: str, text: str, name: str, options: tuple[str, ...], declaration: str
) -> bytes:
    """Compile C text to a shared library's bytes, in a temporary folder.

    Raises: CompileError if the compiler rejects the text, cannot be run, or takes too long.
    """
    with tempfile.TemporaryDirectory(prefix="dovetail-") as folder:
        source, target = Path(folder, "kernel.c"), Path(folder, "kernel.so")
        source.write_text(text, encoding="utf-8")
        try:
            run_compiler([compiler, *FLAGS, "-o", str(target), str(source), "-lm", *options])
        except CompileError as error:
            if "conflicting types" not in str(error):
                raise
            raise CompileError(f"{error}\nExpected: {declaration}") from None
        return target.read_bytes()

"""The double of `cuda.bindings.nvrtc`: compiles CUDA C for the host with the system's C
compiler.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cuda.bindings.nvrtc import nvrtcProgram, nvrtcResult

from . import compiler, cubin

_OK, _BAD = nvrtcResult.NVRTC_SUCCESS, nvrtcResult.NVRTC_ERROR_INVALID_PROGRAM
_KNOWN = re.compile(
    r"--?(gpu-architecture|arch|fmad|ftz|prec-div|prec-sqrt|use_fast_math|std|dopt|device-debug|G|"
    r"generate-line-info|lineinfo|restrict|device-as-default-execution-space|default-device|"
    r"maxrregcount|define-macro|disable-warnings|w|minimal|no-source-include|split-compile|"
    r"extra-device-vectorization|optimization-info|D\w+|I.+|diag-suppress|time|fdevice-time-trace)([=\s].*)?$"
)


@dataclass
class _Program:
    source: str
    log: str = ""
    image: bytes = field(default=b"")


_programs: dict[int, _Program] = {}
_made = 0


def _found(prog: Any) -> _Program | None:
    return _programs.get(int(prog))


def nvrtcVersion() -> tuple[Any, ...]:
    return (_OK, 12, 9)


def nvrtcGetErrorString(result: nvrtcResult) -> tuple[Any, ...]:
    return (_OK, result.name.encode())


def nvrtcCreateProgram(
    src: bytes, name: bytes, numHeaders: int, headers: Any, includeNames: Any
) -> tuple[Any, ...]:
    global _made
    if not isinstance(src, bytes):
        raise TypeError(f"expected bytes, {type(src).__name__} found")
    _made += 16
    _programs[_made] = _Program(src.decode())
    return (_OK, nvrtcProgram(_made))


def nvrtcDestroyProgram(prog: Any) -> tuple[Any, ...]:
    return (_OK if _programs.pop(int(prog), None) else _BAD,)


def nvrtcCompileProgram(prog: Any, numOptions: int, options: Sequence[bytes]) -> tuple[Any, ...]:
    program = _found(prog)
    if program is None or numOptions != len(options or ()):
        return (_BAD if program is None else nvrtcResult.NVRTC_ERROR_INVALID_INPUT,)
    words = [o.decode() for o in options or ()]
    unknown = [w for w in words if not _KNOWN.match(w)]
    if unknown:
        program.log = f"nvrtc: error: invalid value for option: {unknown[0]}"
        return (nvrtcResult.NVRTC_ERROR_INVALID_OPTION,)
    arch = re.search(r"arch(?:itecture)?[= ](sm|compute)_(\d+)(\d)", " ".join(words))
    try:
        binary = compiler.build(program.source, words)
    except compiler.CompilationError as error:
        program.log = str(error)
        return (nvrtcResult.NVRTC_ERROR_COMPILATION,)
    if arch and arch[1] == "sm":  # otherwise there is only PTX
        numbers = int(arch[2]), int(arch[3])
        program.image = cubin.sealed(binary, numbers, compiler.cooperates(program.source))
    return (_OK,)


def _fill(target: bytearray, content: bytes) -> None:
    """Write to `target`.

    NVRTC also writes into `bytes`; the double must not, because Python shares short ones.
    """
    target[: len(content)] = content


def nvrtcGetProgramLogSize(prog: Any) -> tuple[Any, ...]:
    program = _found(prog)
    return (_OK, len(program.log.encode()) + 1) if program else (_BAD, None)


def nvrtcGetProgramLog(prog: Any, log: bytearray) -> tuple[Any, ...]:
    program = _found(prog)
    if program:
        _fill(log, program.log.encode() + b"\0")
    return (_OK if program else _BAD,)


def nvrtcGetCUBINSize(prog: Any) -> tuple[Any, ...]:
    program = _found(prog)
    return (_OK, len(program.image)) if program else (_BAD, None)


def nvrtcGetCUBIN(prog: Any, cubin: bytearray) -> tuple[Any, ...]:
    program = _found(prog)
    if program:
        _fill(cubin, program.image)
    return (_OK if program else _BAD,)

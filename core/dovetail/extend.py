"""The public interface for plugins: all that a backend or a layout may import from dovetail.

See docs/writing-a-backend.md. First-party backends use this module and nothing else.
"""

from pluggy import HookimplMarker

from .backend import (
    INTERFACE,
    Backend,
    BackendInfo,
    Capabilities,
    DeviceInfo,
    Handles,
    Launch,
    Program,
    Unavailable,
)
from .cstyle import CStyle, along_rows, shareable
from .diskcache import read as cached_binary
from .diskcache import source_digest
from .diskcache import write as cache_binary
from .dtypes import (
    FLOATS,
    INTEGERS,
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .errors import ArgumentError, CompileError, DeviceError, DovetailError, InternalError
from .jam import jam, jammed_axis
from .kernel import Combine, Kernel, KernelBuilder, combine
from .legalize import legalize
from .loops import (
    CHUNK,
    LANES,
    OPERANDS,
    OPS,
    Atomic,
    Block,
    Buffer,
    Loop,
    Statement,
    Store,
    Value,
    walk,
)
from .parse import parse_kernel
from .text import print_kernel
from .verify import verify

hookimpl = HookimplMarker("dovetail")

__all__ = [
    "CHUNK",
    "FLOATS",
    "INTEGERS",
    "INTERFACE",
    "LANES",
    "OPERANDS",
    "OPS",
    "ArgumentError",
    "Atomic",
    "Backend",
    "BackendInfo",
    "Block",
    "Buffer",
    "CStyle",
    "Capabilities",
    "Combine",
    "CompileError",
    "DType",
    "DeviceError",
    "DeviceInfo",
    "DovetailError",
    "Handles",
    "InternalError",
    "Kernel",
    "KernelBuilder",
    "Launch",
    "Loop",
    "Program",
    "Statement",
    "Store",
    "Unavailable",
    "Value",
    "along_rows",
    "bfloat16",
    "bool_",
    "cache_binary",
    "cached_binary",
    "combine",
    "float16",
    "float32",
    "float64",
    "hookimpl",
    "int8",
    "jam",
    "jammed_axis",
    "int16",
    "int32",
    "int64",
    "legalize",
    "parse_kernel",
    "print_kernel",
    "shareable",
    "source_digest",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "verify",
    "walk",
]  # fmt: skip

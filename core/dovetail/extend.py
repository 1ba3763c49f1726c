"""The public interface for plugins: all that a backend or a layout may import from dovetail.

See docs/writing-a-backend.md. First-party backends use this module and nothing else; the sparse
layout also uses the public functions.
"""

from pluggy import HookimplMarker

from . import arguments
from .autograd.tape import set_gradient
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
from .cstyle import CStyle, along_rows, load_steps, shareable
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
from .environment import whole as whole_setting
from .errors import ArgumentError, CompileError, DeviceError, DovetailError, InternalError
from .jam import jam, jammed_axis
from .kernel import Combine, Kernel, KernelBuilder, combine
from .layout import Kind, axis, broadcast_shapes, sparse_coo
from .layouts import LayoutInfo, LayoutTensor, gathered, placed, recorded
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
    cast,
    const,
    eq,
    fma,
    fold_loop,
    load,
    ne,
    reduce_loop,
    walk,
)
from .loops import where as choose
from .ops import Op
from .parse import parse_kernel
from .reference import interpret
from .sorting import order_of
from .spread import spread
from .tensor import apply, required
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
    "Kind",
    "Launch",
    "LayoutInfo",
    "LayoutTensor",
    "Loop",
    "Op",
    "Program",
    "Statement",
    "Store",
    "Unavailable",
    "Value",
    "along_rows",
    "apply",
    "arguments",
    "axis",
    "bfloat16",
    "bool_",
    "broadcast_shapes",
    "cache_binary",
    "cached_binary",
    "cast",
    "choose",
    "combine",
    "const",
    "eq",
    "float16",
    "float32",
    "float64",
    "fma",
    "fold_loop",
    "gathered",
    "hookimpl",
    "int8",
    "int16",
    "int32",
    "int64",
    "interpret",
    "jam",
    "jammed_axis",
    "legalize",
    "load",
    "load_steps",
    "ne",
    "order_of",
    "parse_kernel",
    "placed",
    "print_kernel",
    "recorded",
    "reduce_loop",
    "required",
    "set_gradient",
    "shareable",
    "source_digest",
    "sparse_coo",
    "spread",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "verify",
    "walk",
    "whole_setting",
]  # fmt: skip

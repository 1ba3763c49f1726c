"""The public interface for plugins: all that a backend or a layout may import from dovetail.

See docs/writing-a-backend.md. First-party backends use this module and nothing else; the sparse
layout also uses the public functions.
"""

from pluggy import HookimplMarker

from . import arguments
from .autograd.tape import RuleContext, set_gradient
from .backend.diskcache import read as cached_binary
from .backend.diskcache import source_digest
from .backend.diskcache import write as cache_binary
from .backend.interface import (
    INTERFACE,
    Backend,
    BackendInfo,
    DeviceInfo,
    Handles,
    Launch,
    Program,
    Unavailable,
)
from .backend.reference import interpret
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
from .functions.sorting import order_of
from .kernel.builder import Combine, Kernel, KernelBuilder, combine
from .kernel.coarsen import spread
from .kernel.cstyle import CStyle, along_rows, load_steps, shareable
from .kernel.language import (
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
from .kernel.language import where as choose
from .kernel.legalize import legalize
from .kernel.parser import parse_kernel
from .kernel.printer import print_kernel
from .kernel.target import Capabilities
from .kernel.unroll_jam import jam, jammed_axis
from .kernel.verify import verify
from .layout import Layout, axis, broadcast_shapes, sparse_coo
from .ops import arithmetic, dtype_rules
from .ops.site import KernelSite, Launches, LoopStep
from .ops.table import Op
from .tensor.other_layouts import (
    LayoutInfo,
    LayoutTensor,
    gather_at,
    make_node,
    scatter_rows,
)
from .tensor.tensor import apply, required

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
    "KernelSite",
    "Launch",
    "Launches",
    "Layout",
    "LayoutInfo",
    "LayoutTensor",
    "Loop",
    "LoopStep",
    "Op",
    "Program",
    "RuleContext",
    "Statement",
    "Store",
    "Unavailable",
    "Value",
    "along_rows",
    "apply",
    "arguments",
    "arithmetic",
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
    "dtype_rules",
    "eq",
    "float16",
    "float32",
    "float64",
    "fma",
    "fold_loop",
    "gather_at",
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
    "make_node",
    "ne",
    "order_of",
    "parse_kernel",
    "print_kernel",
    "reduce_loop",
    "required",
    "scatter_rows",
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

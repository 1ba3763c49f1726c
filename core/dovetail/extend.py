"""The names that plugins may import from dovetail, by kind of plugin; `help(NAME)` explains each.

A BACKEND (docs/writing-a-backend.md; `dovetail new-backend NAME` writes one)
    its hooks: hookimpl, BackendInfo, DeviceInfo, Capabilities, Unavailable; for type
        checkers BackendHooks, LibraryCallsHook, DiagnosticsHook, ConformanceHook
    what its floats are: probe_floats
    the device: Backend, BindingBackend, DriverBackend, DeviceMemory, Program, Entry, QueuedLaunch,
        mark_ordered, RawArgument, Grid, Process, end_without_driver; the help of each has its
        methods or fields
    their types, which are no classes:
        Handle           memory, from `allocate` or `adopt`: an address, a number, any object
        Handles          handle and byte offset of each buffer, in turn, in one tuple
        StreamHandle     a queue of work, from `create_stream`; None is the default stream
        EventHandle      a place in a queue, from `record_event`
        Compiled         the result of the method `compile`
        Scalar           a Python number: the argument of a scalar parameter
        StridedOperand   handle, byte offset, shape, strides in elements, dtype: of a library call
        Launch           a function of handles, scalars, stream that launches, from `bind`
        LibraryCall      a function of backend, operands, result, stream: a vendor's routine
        RawLaunch        a function of handles, numbers, grid, stream, from `compile_raw`
        Replay           a function of handles, numbers, stream, from `sequence`
    constants: INTERFACE, the version; HOST_MEMORY, the `dlpack_type` of the host's memory
    the host's memory: address_of, array_at, bytes_at; numbers: scalar_argument,
        argument_packer, struct_format, place_offsets
    locks that a child of fork() finds free: Lock, register_lock
    binaries on disk: cache_binary, cached_binary, source_digest; the system's compilers:
        find_compiler, run_compiler, load_library, find_included
    settings: whole_setting, word_setting; the pip command in a hint: install_command
    errors: CompileError, DeviceError, PluginError, ArgumentError, InternalError, DovetailError

A KERNEL (docs/kernel-ir.md): what a backend compiles
    its parts: Kernel, Buffer, Block, Statement, Value, Store, Atomic, Loop, Combine, combine, walk,
        values, loads, reductions, definitions, uses
    its text: print_kernel, parse_kernel, verify; as C: CStyle;
        rewritten: legalize, expand_reductions
    what is known of it: Stride, stride_along, varies_along, fold_nest, trip_count, reduces_long,
        along_rows, shareable, settles, is_branch, grid_index; run by the reference: interpret
    schedules: Schedule, ScheduledCompiler, ScheduledProgram, unroll_jam, jammed_axis, coarsen,
        Tile, choose_tile, fills_tiles, stages_wider_values
    making one: KernelBuilder, load, cast, bitcast, const, choose, eq, ne, fma, fold_loop,
        reduce_loop, sum_of_products
    constants: OPS, of each operation the number and kinds of operands, and the result; OPERANDS,
        the operations that are no statements; LANES and CHUNK, of the order of a reduction;
        PRODUCT_BLOCK and PRODUCT_BLOCKS, of the order of a product

A LAYOUT (docs/writing-a-layout.md)
    LayoutInfo, LayoutTensor, Layout, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, capabilities
    what its rules are written in: apply, reduce, required, make_node, gather_at, rows_at,
        scatter_rows, call_along, put_rows, read_at, in_range, order_of, axis, broadcast_shapes,
        arguments, write_together; halves: widen_halves; under autocast: callbacks
    what `dt.explain` tells of messages: MessageReport
    captured functions: is_capturing, is_mapping, uncaptured, look_up_again, read_each_call
    functions that a gradient runs again: ClosureSnapshot
    what users see of its package: publish_all, hide_internal_frames, format_bytes,
        warn_user
    types: DTypeLike, DeviceLike

A DTYPE (docs/adding-a-dtype.md)
    DTypeInfo, BlockInfo; those that there are: DType, INTEGERS, FLOATS, bool_, int8, int16, int32,
        int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, complex64,
        complex128

A TRANSPORT of messages between workers (docs/writing-a-transport.md)
    TransportInfo, Transport, Request, find_transport

A SUBCLASS of Tensor, whose results keep their class
    register_subclass, set_class

AN OP (docs/adding-an-op.md)
    Op, KernelSite, Launches, LoopStep, arithmetic, complex_arithmetic, dtype_rules, set_gradient,
        RuleContext; convolutions: ConvolutionGeometry, convolved, transposed_convolution

A FORMAT for what functions do, as ONNX is
    graph_of, Graph, GraphNode, composite, Composite

First-party backends import this module and nothing else; layouts and networks also use the public
functions of dovetail.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from pluggy import HookimplMarker

from . import argument_checks as arguments
from . import callbacks as callbacks
from .autograd.tape import RuleContext, set_gradient
from .backend.diskcache import read as cached_binary
from .backend.diskcache import source_digest
from .backend.diskcache import write as cache_binary
from .backend.host import address_of, array_at, bytes_at
from .backend.host_compiler import find_compiler, find_included, load_library, run_compiler
from .backend.interface import (
    HOST_MEMORY,
    INTERFACE,
    Backend,
    BackendInfo,
    Compiled,
    DeviceInfo,
    Entry,
    EventHandle,
    Grid,
    Handle,
    Handles,
    Launch,
    LibraryCall,
    Program,
    QueuedLaunch,
    RawArgument,
    RawLaunch,
    Replay,
    Scalar,
    StreamHandle,
    StridedOperand,
    Unavailable,
    mark_ordered,
)
from .backend.launches import (
    BindingBackend,
    argument_packer,
    place_offsets,
    scalar_argument,
    struct_format,
)
from .device_class import Device
from .device_class import opened as open_device
from .dtypes import (
    FLOATS,
    INTEGERS,
    DType,
    bfloat16,
    bool_,
    complex64,
    complex128,
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
from .engine.tracer_api import current as _recorder
from .engine.tracer_api import recorded_by
from .environment import read_int as whole_setting
from .environment import read_word as word_setting
from .environment import warn_user
from .errors import (
    ArgumentError,
    CompileError,
    DeviceError,
    DovetailError,
    InternalError,
    PluginError,
)
from .forks import register_lock
from .functions.datatypes import DeviceLike, DTypeLike
from .functions.half_precision import widen_halves
from .functions.sorting.stable_sort import order_of
from .install_source import install_command
from .ir.analysis import (
    Stride,
    along_rows,
    definitions,
    fold_nest,
    grid_index,
    is_branch,
    loads,
    reduces_long,
    reductions,
    settles,
    shareable,
    stride_along,
    trip_count,
    uses,
    values,
    varies_along,
)
from .ir.builder import Combine, Kernel, KernelBuilder, combine
from .ir.formats import DTypeInfo
from .ir.language import (
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
    bitcast,
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
from .ir.language import where as choose
from .ir.legalize import legalize
from .ir.printer import print_kernel
from .ir.target import Capabilities
from .ir.verify import verify_own as verify
from .layout import (
    Layout,
    axis,
    broadcast_shapes,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
)
from .lazy_import import late
from .locks import Lock
from .memory.units import format_bytes
from .ops import arithmetic, complex_arithmetic, dtype_rules
from .ops.kernel_context import KernelSite, Launches, LoopStep
from .ops.kernel_ops import PRODUCT_BLOCK, PRODUCT_BLOCKS, sum_of_products
from .ops.table import Op
from .plugins.dtype_registry import BlockInfo
from .plugins.hooks import BackendHooks, ConformanceHook, DiagnosticsHook, LibraryCallsHook
from .public_names import publish_all as publish_all
from .tensor.c_fields import register_subclass, set_class
from .tensor.other_layouts import (
    LayoutInfo,
    LayoutTensor,
    call_along,
    gather_at,
    make_node,
    rows_at,
    scatter_rows,
)
from .tensor.primitives import apply, reduce
from .tensor.tensor import required
from .tracebacks import hide_internal_frames as hide_internal_frames

if TYPE_CHECKING:
    from .backend.driver_backend import DeviceMemory, DriverBackend
    from .backend.float_probe import probe_floats
    from .backend.process import Process, end_without_driver
    from .backend.reference import interpret
    from .backend.scheduled import ScheduledCompiler, ScheduledProgram
    from .capture.closures import ClosureSnapshot
    from .capture.iterations import is_mapping as is_mapping
    from .capture.jit import look_up_again
    from .func.export_graph import Composite, Graph, GraphNode, composite, graph_of
    from .functions.indexing.index_arrays import in_range, read_at
    from .functions.products.convolutions import convolved
    from .functions.products.convolutions import transposed as transposed_convolution
    from .insight.explain_report import MessageReport
    from .ir.coarsen import coarsen
    from .ir.cstyle import CStyle
    from .ir.expand_reductions import expand_reductions
    from .ir.parser import parse_kernel
    from .ir.schedule import Schedule
    from .ir.staging import Tile, choose_tile, fills_tiles, stages_wider_values
    from .ir.unroll_jam import jammed_axis, unroll_jam
    from .ops.convolution import Geometry as ConvolutionGeometry
    from .plugins.transport_registry import Request, Transport, TransportInfo, find_transport
    from .tensor.batched_assign import put_rows, write_together
else:  # imported when a plugin takes them
    __getattr__ = late(
        __name__,
        {
            **dict.fromkeys(("DeviceMemory", "DriverBackend"), ".backend.driver_backend"),
            "probe_floats": ".backend.float_probe",
            **dict.fromkeys(("Process", "end_without_driver"), ".backend.process"),
            "interpret": ".backend.reference",
            **dict.fromkeys(("ScheduledCompiler", "ScheduledProgram"), ".backend.scheduled"),
            "ClosureSnapshot": ".capture.closures",
            "is_mapping": ".capture.iterations",
            "look_up_again": ".capture.jit",
            **dict.fromkeys(
                ("Composite", "Graph", "GraphNode", "composite", "graph_of"), ".func.export_graph"
            ),
            **dict.fromkeys(("in_range", "read_at"), ".functions.indexing.index_arrays"),
            "convolved": ".functions.products.convolutions",
            "transposed_convolution": ".functions.products.convolutions:transposed",
            "MessageReport": ".insight.explain_report",
            "coarsen": ".ir.coarsen",
            "CStyle": ".ir.cstyle",
            "expand_reductions": ".ir.expand_reductions",
            "parse_kernel": ".ir.parser",
            "Schedule": ".ir.schedule",
            **dict.fromkeys(
                ("Tile", "choose_tile", "fills_tiles", "stages_wider_values"), ".ir.staging"
            ),
            **dict.fromkeys(("jammed_axis", "unroll_jam"), ".ir.unroll_jam"),
            "ConvolutionGeometry": ".ops.convolution:Geometry",
            **dict.fromkeys(
                ("Request", "Transport", "TransportInfo", "find_transport"),
                ".plugins.transport_registry",
            ),
            **dict.fromkeys(("put_rows", "write_together"), ".tensor.batched_assign"),
        },
    )

hookimpl = HookimplMarker("dovetail")


def is_capturing() -> bool:
    """Return True if `dt.jit` or a loop is capturing this thread's work."""
    return _recorder() is not None


def capabilities(device: Device) -> Capabilities:
    """Return the capabilities of a device; open the device if it is not open."""
    return open_device(device).backend.info.capabilities


def read_each_call(read: Callable[[], Sequence[float]], count: int) -> Sequence[float]:
    """Return `count` floats that `read` gives; a captured function calls `read` at each call.

    A captured function calls `read` again at each call (an optimiser's rate and its count of
    steps). Other Python code does not run again, so `read` must compute all that is needed.

    - `read`: a function without arguments that gives the numbers.
    - `count`: how many numbers it gives.
    """
    recorder = _recorder()
    return read() if recorder is None else recorder.read_numbers(read, count)


def uncaptured() -> AbstractContextManager[None]:
    """Return a context in which work on constants is not captured; it may stay pending."""
    return recorded_by(None)


if TYPE_CHECKING:  # at run time it would make `help` print every class whole, 3,000 lines
    __all__ = [
        "CHUNK",
        "FLOATS",
        "HOST_MEMORY",
        "INTEGERS",
        "INTERFACE",
        "LANES",
        "OPERANDS",
        "OPS",
        "PRODUCT_BLOCK",
        "PRODUCT_BLOCKS",
        "ArgumentError",
        "Atomic",
        "Backend",
        "BackendHooks",
        "BackendInfo",
        "BindingBackend",
        "Block",
        "BlockInfo",
        "Buffer",
        "CStyle",
        "Capabilities",
        "ClosureSnapshot",
        "Combine",
        "CompileError",
        "Compiled",
        "Composite",
        "ConformanceHook",
        "ConvolutionGeometry",
        "DType",
        "DTypeInfo",
        "DTypeLike",
        "DeviceError",
        "DeviceInfo",
        "DeviceLike",
        "DeviceMemory",
        "DiagnosticsHook",
        "DovetailError",
        "DriverBackend",
        "Entry",
        "EventHandle",
        "Graph",
        "GraphNode",
        "Grid",
        "Handle",
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
        "LibraryCall",
        "LibraryCallsHook",
        "Lock",
        "Loop",
        "LoopStep",
        "MessageReport",
        "Op",
        "PluginError",
        "Process",
        "Program",
        "QueuedLaunch",
        "RawArgument",
        "RawLaunch",
        "Replay",
        "Request",
        "RuleContext",
        "Scalar",
        "Schedule",
        "ScheduledCompiler",
        "ScheduledProgram",
        "Statement",
        "Store",
        "StreamHandle",
        "Stride",
        "StridedOperand",
        "Tile",
        "Transport",
        "TransportInfo",
        "Unavailable",
        "Value",
        "address_of",
        "along_rows",
        "apply",
        "argument_packer",
        "arguments",
        "arithmetic",
        "array_at",
        "axis",
        "bfloat16",
        "bitcast",
        "bool_",
        "broadcast_shapes",
        "bytes_at",
        "cache_binary",
        "cached_binary",
        "call_along",
        "capabilities",
        "cast",
        "choose",
        "choose_tile",
        "coarsen",
        "combine",
        "complex64",
        "complex128",
        "complex_arithmetic",
        "composite",
        "const",
        "convolved",
        "definitions",
        "dtype_rules",
        "end_without_driver",
        "eq",
        "expand_reductions",
        "fills_tiles",
        "find_compiler",
        "find_included",
        "find_transport",
        "float16",
        "float32",
        "float64",
        "fma",
        "fold_loop",
        "fold_nest",
        "format_bytes",
        "gather_at",
        "graph_of",
        "grid_index",
        "hide_internal_frames",
        "hookimpl",
        "in_range",
        "install_command",
        "int8",
        "int16",
        "int32",
        "int64",
        "interpret",
        "is_branch",
        "is_capturing",
        "is_mapping",
        "jammed_axis",
        "legalize",
        "load",
        "load_library",
        "loads",
        "look_up_again",
        "make_node",
        "mark_ordered",
        "ne",
        "order_of",
        "parse_kernel",
        "place_offsets",
        "print_kernel",
        "probe_floats",
        "publish_all",
        "put_rows",
        "read_at",
        "read_each_call",
        "reduce",
        "reduce_loop",
        "reduces_long",
        "reductions",
        "register_lock",
        "register_subclass",
        "required",
        "rows_at",
        "run_compiler",
        "scalar_argument",
        "scatter_rows",
        "set_class",
        "set_gradient",
        "settles",
        "shareable",
        "source_digest",
        "sparse_bsr",
        "sparse_coo",
        "sparse_csc",
        "sparse_csr",
        "stages_wider_values",
        "stride_along",
        "struct_format",
        "sum_of_products",
        "transposed_convolution",
        "trip_count",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "uncaptured",
        "unroll_jam",
        "uses",
        "values",
        "varies_along",
        "verify",
        "walk",
        "warn_user",
        "whole_setting",
        "widen_halves",
        "word_setting",
        "write_together",
    ]

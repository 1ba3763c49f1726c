"""The double of `cuda.bindings.driver`: the same functions, types, enums and conventions.

Every function returns a tuple that begins with a CUresult; the other items are None after an error.
Work is queued and runs at the next synchronization (`streams`); state is in `machine`.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cuda.bindings.driver import (
    CUDA_KERNEL_NODE_PARAMS as CUDA_KERNEL_NODE_PARAMS,
)
from cuda.bindings.driver import (
    CUcontext,
    CUdevice,
    CUdevice_attribute,
    CUdeviceptr,
    CUevent,
    CUevent_flags,
    CUfunction,
    CUfunction_attribute,
    CUgraph,
    CUgraphExec,
    CUgraphNode,
    CUmemorytype,
    CUmodule,
    CUpointer_attribute,
    CUresult,
    CUstream,
    CUstream_flags,
)

from . import cubin
from .machine import MARK, Context, Machine, Refused
from .runtime import Function, Loaded
from .streams import Event, Op, Stream

CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_WRITECOMBINED = 1, 2, 4
VERSION = 12090
NAME = b"CUDA driver double"
_CONTEXT = 0xC0DE00  # the handle of device 0's context
_BAD = CUresult.CUDA_ERROR_INVALID_VALUE
machine = Machine()


def reset(**asked: Any) -> Machine:
    """Start a new machine with the arguments of `Machine`; all handles of the old one become
    invalid.
    """
    global machine
    machine.scrap()
    machine = Machine(**asked)
    return machine


@contextmanager
def _without_collector() -> Iterator[None]:
    """Disable garbage collection.

    Finalizers call the driver, and a driver function must not run other work of the program.
    """
    collects = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if collects:
            gc.enable()


def _api(outputs: int = 0, before_init: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Make a function of the driver: counted, locked, and with errors as results."""

    def decorate(body: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
        @functools.wraps(body)
        def call(*args: Any) -> tuple[Any, ...]:
            m = machine
            with m.lock, _without_collector():
                try:
                    m.called(body.__name__)
                    if not before_init and (not m.ready or m.pid != os.getpid()):
                        raise Refused(CUresult.CUDA_ERROR_NOT_INITIALIZED)
                    found = body(*args)
                except Refused as refused:
                    return (refused.result, *[None] * outputs)
            values = found if outputs > 1 else (found,) if outputs else ()
            return (CUresult.CUDA_SUCCESS, *values)

        return call

    return decorate


# --- the machine


@_api(before_init=True)
def cuInit(Flags: int) -> None:
    if Flags:
        raise Refused(_BAD)
    if not machine.contexts:
        raise Refused(CUresult.CUDA_ERROR_NO_DEVICE)
    if machine.pid != os.getpid():
        raise Refused(CUresult.CUDA_ERROR_NOT_INITIALIZED, "forked after cuInit")
    machine.ready = True


@_api(1, before_init=True)
def cuDriverGetVersion() -> int:
    return VERSION


@_api(1)
def cuDeviceGetCount() -> int:
    return len(machine.contexts)


def _device(dev: Any) -> Context:
    if not 0 <= int(dev) < len(machine.contexts):
        raise Refused(CUresult.CUDA_ERROR_INVALID_DEVICE)
    return machine.contexts[int(dev)]


@_api(1)
def cuDeviceGet(ordinal: int) -> CUdevice:
    return CUdevice(_device(ordinal).index)


@_api(1)
def cuDeviceGetName(length: int, dev: Any) -> bytes:
    _device(dev)
    # bytes beyond the end of the string keep their values
    return (NAME[: length - 1] + b"\0").ljust(length)


@_api(1)
def cuDeviceGetUuid(dev: Any) -> Any:
    class Uuid:
        bytes = f"double of a GPU{_device(dev).index}".encode()

    return Uuid()


@_api(1)
def cuDeviceTotalMem(dev: Any) -> int:
    _device(dev)
    return machine.memory


_ATTRIBUTES = {
    "WARP_SIZE": 32,
    "MAX_THREADS_PER_BLOCK": 1024,
    "MAX_BLOCK_DIM_X": 1024,
    "MAX_BLOCK_DIM_Y": 1024,
    "MAX_BLOCK_DIM_Z": 64,
    "MAX_GRID_DIM_X": 2**31 - 1,
    "MAX_GRID_DIM_Y": 65535,
    "MAX_GRID_DIM_Z": 65535,
    "MAX_SHARED_MEMORY_PER_BLOCK": 49152,
    "MAX_THREADS_PER_MULTIPROCESSOR": 2048,
    "UNIFIED_ADDRESSING": 1,
    "CAN_MAP_HOST_MEMORY": 1,
    "CONCURRENT_KERNELS": 1,
    "ASYNC_ENGINE_COUNT": 2,
    "CLOCK_RATE": 1_000_000,
    "MEMORY_CLOCK_RATE": 1_000_000,
    "GLOBAL_MEMORY_BUS_WIDTH": 64,
    "L2_CACHE_SIZE": 1 << 20,
}


@_api(1)
def cuDeviceGetAttribute(attrib: CUdevice_attribute, dev: Any) -> int:
    if not isinstance(attrib, CUdevice_attribute):
        raise TypeError(f"Argument 'attrib' has incorrect type (got {type(attrib).__name__})")
    _device(dev)
    name = attrib.name.removeprefix("CU_DEVICE_ATTRIBUTE_")
    found = {
        "COMPUTE_CAPABILITY_MAJOR": machine.arch[0],
        "COMPUTE_CAPABILITY_MINOR": machine.arch[1],
        "MULTIPROCESSOR_COUNT": machine.processors,
    }
    return found.get(name, _ATTRIBUTES.get(name, 0))


# --- contexts


@_api(1)
def cuDevicePrimaryCtxRetain(dev: Any) -> CUcontext:
    context = _device(dev)
    context.retained += 1
    return CUcontext(_CONTEXT + context.index)


@_api()
def cuDevicePrimaryCtxRelease(dev: Any) -> None:
    context = _device(dev)
    if not context.retained:
        raise Refused(CUresult.CUDA_ERROR_INVALID_CONTEXT)
    context.retained -= 1
    if not context.retained:
        context.scheduler.finish_all()
        for b in [b for b in machine.device_memory.blocks if b.device == context.index]:
            machine.free(b.start | MARK)
        machine.contexts[context.index] = Context(context.index, machine.seed)


@_api()
def cuCtxSetCurrent(ctx: Any) -> None:
    index = int(ctx or _CONTEXT - 1) - _CONTEXT
    if index >= len(machine.contexts) or (index >= 0 and not machine.contexts[index].retained):
        raise Refused(CUresult.CUDA_ERROR_INVALID_CONTEXT)
    machine.current.context = index if index >= 0 else None


@_api(1)
def cuCtxGetCurrent() -> CUcontext:
    index = getattr(machine.current, "context", None)
    return CUcontext(0 if index is None else _CONTEXT + index)


@_api(1)
def cuCtxGetDevice() -> CUdevice:
    return CUdevice(machine.context().index)


@_api()
def cuCtxSynchronize() -> None:
    machine.context().scheduler.finish_all()
    machine.context()  # raises earlier faults


# --- memory


@_api(1)
def cuMemAlloc(bytesize: int) -> CUdeviceptr:
    return CUdeviceptr(machine.allocate(bytesize, machine.context().index))


@_api()
def cuMemFree(dptr: Any) -> None:
    machine.context()
    machine.free(int(dptr))


@_api(2)
def cuMemGetInfo() -> tuple[int, int]:
    index = machine.context().index
    used = sum(b.nbytes for b in machine.device_memory.blocks if b.device == index)
    return machine.memory - used, machine.memory


@_api(1)
def cuPointerGetAttribute(attribute: CUpointer_attribute, ptr: Any) -> CUmemorytype:
    if attribute != CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        raise NotImplementedError(f"the double knows no {attribute}")
    context = machine.context()
    if machine.device_range(int(ptr), 1, context.index) is not None:
        return CUmemorytype.CU_MEMORYTYPE_DEVICE
    if machine.pinned.find(int(ptr), 1) is not None:
        return CUmemorytype.CU_MEMORYTYPE_HOST
    raise Refused(_BAD, f"{int(ptr):#x} is memory that the driver does not know")


@_api(1)
def cuMemHostAlloc(bytesize: int, Flags: int) -> int:
    machine.context()
    return machine.pin(bytesize)


@_api()
def cuMemFreeHost(p: Any) -> None:
    machine.context()
    machine.unpin(_host(p))


def _host(place: Any) -> int:
    """Return the address of host memory: a number, or an object with a buffer."""
    if hasattr(place, "getPtr"):
        return int(place.getPtr())
    try:
        return int(place)
    except TypeError:
        view = memoryview(place).cast("B")
    held = ctypes.py_object(view.obj)
    buffer = _Buffer()
    ctypes.pythonapi.PyObject_GetBuffer(held, ctypes.byref(buffer), 0)
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))
    return int(buffer.buf or 0)


class _Buffer(ctypes.Structure):
    _fields_ = (("buf", ctypes.c_void_p), ("rest", ctypes.c_char * 128))


def _copy(
    target: tuple[int, bool], source: Any, nbytes: int, stream: Stream, wait: bool = False
) -> None:
    """Queue a copy of bytes from an address, or of bytes, to an address."""
    context = machine.context()
    for place in (target, source):
        wrong = isinstance(place, tuple) and place[1]
        if wrong and machine.device_range(place[0], nbytes, context.index) is None:
            raise Refused(_BAD, f"{place[0]:#x} is not {nbytes} bytes of device memory")
    pinned = [p[0] for p in (target, source) if isinstance(p, tuple) and not p[1]]

    def work() -> None:
        gone = [a for a in pinned if not wait and not machine.pinned.find(a, nbytes)]
        if gone:
            reason = f"a copy reaches pinned memory at {gone[0]:#x} that was freed meanwhile"
            machine.failed(context, CUresult.CUDA_ERROR_ILLEGAL_ADDRESS, reason)
        else:
            machine.move(context, target, source, nbytes)

    op = context.scheduler.enqueue(stream, work)
    if wait:
        _settle(op)


def _settle(op: Op | None) -> None:
    machine.context().scheduler.finish(op)
    machine.context()  # raises earlier faults


def _from_host(dst: Any, src: Any, nbytes: int, stream: Stream, wait: bool) -> None:
    address = _host(src)
    if nbytes and not wait and machine.pinned.find(address, nbytes):
        _copy((int(dst), True), (address, False), nbytes, stream)
    elif nbytes:  # pageable memory is read before the call returns
        _copy((int(dst), True), ctypes.string_at(address, nbytes), nbytes, stream, wait)


def _to_host(dst: Any, src: Any, nbytes: int, stream: Stream, wait: bool) -> None:
    address = _host(dst)
    if nbytes:  # pageable memory is written before the call returns
        late = not wait and machine.pinned.find(address, nbytes)
        _copy((address, False), (int(src), True), nbytes, stream, not late)


@_api()
def cuMemcpyHtoDAsync(dstDevice: Any, srcHost: Any, ByteCount: int, hStream: Any) -> None:
    _from_host(dstDevice, srcHost, ByteCount, machine.stream(hStream), wait=False)


@_api()
def cuMemcpyDtoHAsync(dstHost: Any, srcDevice: Any, ByteCount: int, hStream: Any) -> None:
    _to_host(dstHost, srcDevice, ByteCount, machine.stream(hStream), wait=False)


@_api()
def cuMemcpyDtoDAsync(dstDevice: Any, srcDevice: Any, ByteCount: int, hStream: Any) -> None:
    if ByteCount:
        place = (int(srcDevice), True)
        _copy((int(dstDevice), True), place, ByteCount, machine.stream(hStream))


@_api()
def cuMemcpyHtoD(dstDevice: Any, srcHost: Any, ByteCount: int) -> None:
    _from_host(dstDevice, srcHost, ByteCount, machine.stream(0), wait=True)


@_api()
def cuMemcpyDtoH(dstHost: Any, srcDevice: Any, ByteCount: int) -> None:
    _to_host(dstHost, srcDevice, ByteCount, machine.stream(0), wait=True)


# --- streams


@_api(1)
def cuStreamCreate(Flags: int) -> CUstream:
    apart = int(Flags) & int(CUstream_flags.CU_STREAM_NON_BLOCKING)
    return CUstream(machine.put(machine.context().scheduler.create(blocking=not apart)))


@_api()
def cuStreamDestroy(hStream: Any) -> None:
    machine.context()
    machine.drop(hStream, Stream)  # queued work still runs


@_api()
def cuStreamSynchronize(hStream: Any) -> None:
    stream = machine.stream(hStream)
    if stream is machine.context().scheduler.default:  # regardless of its pending waits
        machine.context().scheduler.enqueue(stream, None)
    _settle(stream.last)


@_api()
def cuStreamQuery(hStream: Any) -> None:
    stream = machine.stream(hStream)
    pending = bool(stream.queue)
    machine.context().scheduler.step(stream)
    machine.context()
    if pending:
        raise Refused(CUresult.CUDA_ERROR_NOT_READY)


@_api()
def cuStreamWaitEvent(hStream: Any, hEvent: Any, Flags: int) -> None:
    event, stream = machine.get(hEvent, Event), machine.stream(hStream)
    if event.marker is not None:
        machine.context().scheduler.enqueue(stream, None, [event.marker])


# --- events


@_api(1)
def cuEventCreate(Flags: int) -> CUevent:
    machine.context()
    timing = not int(Flags) & int(CUevent_flags.CU_EVENT_DISABLE_TIMING)
    return CUevent(machine.put(Event(timing)))


@_api()
def cuEventDestroy(hEvent: Any) -> None:
    machine.context()
    machine.drop(hEvent, Event)


@_api()
def cuEventRecord(hEvent: Any, hStream: Any) -> None:
    event, stream = machine.get(hEvent, Event), machine.stream(hStream)
    event.marker = machine.context().scheduler.enqueue(stream, None)


@_api()
def cuEventQuery(hEvent: Any) -> None:
    event, context = machine.get(hEvent, Event), machine.context()
    if event.marker is not None and not event.marker.done:
        context.scheduler.step(event.marker.stream)
        machine.context()
        raise Refused(CUresult.CUDA_ERROR_NOT_READY)


@_api()
def cuEventSynchronize(hEvent: Any) -> None:
    machine.context()
    _settle(machine.get(hEvent, Event).marker)


@_api(1)
def cuEventElapsedTime(hStart: Any, hEnd: Any) -> float:
    machine.context()
    events = [machine.get(h, Event) for h in (hStart, hEnd)]
    if not all(e.timing and e.marker for e in events):
        raise Refused(CUresult.CUDA_ERROR_INVALID_HANDLE, "not recorded, or made without timing")
    if not all(e.marker.done for e in events):
        raise Refused(CUresult.CUDA_ERROR_NOT_READY)
    return float(events[1].marker.at - events[0].marker.at) / 1e6


# --- modules and launches


@_api(1)
def cuModuleLoadData(image: Any) -> CUmodule:
    machine.context()
    try:
        binary, arch, together = cubin.opened(image)
    except ValueError as error:
        raise Refused(CUresult.CUDA_ERROR_INVALID_IMAGE, str(error)) from error
    if arch[0] != machine.arch[0] or arch[1] > machine.arch[1]:
        raise Refused(CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU)
    return CUmodule(machine.put(Loaded(binary, together)))


@_api()
def cuModuleUnload(hmod: Any) -> None:
    machine.context().scheduler.finish_all()
    loaded = machine.drop(hmod, Loaded)
    for handle in [h for h, f in machine.objects.items() if f in loaded.functions.values()]:
        del machine.objects[handle]
    loaded.close()


@_api(1)
def cuModuleGetFunction(hmod: Any, name: bytes) -> CUfunction:
    machine.context()
    if not isinstance(name, bytes):
        raise TypeError(f"expected bytes, {type(name).__name__} found")
    found = machine.get(hmod, Loaded).functions.get(name.decode())
    if found is None:
        raise Refused(CUresult.CUDA_ERROR_NOT_FOUND)
    return CUfunction(machine.put(found))


@_api(1)
def cuFuncGetAttribute(attrib: CUfunction_attribute, hfunc: Any) -> int:
    function = machine.get(hfunc, Function)
    name = attrib.name.removeprefix("CU_FUNC_ATTRIBUTE_")
    found = {"MAX_THREADS_PER_BLOCK": 1024, "NUM_REGS": 32}
    return function.shared_bytes if name == "SHARED_SIZE_BYTES" else found.get(name, 0)


@_api()
def cuLaunchKernel(
    f: Any,
    gridDimX: int,
    gridDimY: int,
    gridDimZ: int,
    blockDimX: int,
    blockDimY: int,
    blockDimZ: int,
    sharedMemBytes: int,
    hStream: Any,
    kernelParams: Any,
    extra: Any,
) -> None:
    context, stream = machine.context(), machine.stream(hStream)
    sizes = (gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ)
    prepared = _prepared(f, sizes, sharedMemBytes, kernelParams, extra)
    context.scheduler.enqueue(stream, lambda: prepared(context))


def _prepared(
    f: Any, sizes: tuple[int, ...], shared: int, kernelParams: Any, extra: Any
) -> Callable[[Context], None]:
    """Check a launch and return it with a copy of its arguments, to be run later."""
    function = machine.get(f, Function)
    most = (2**31 - 1, 65535, 65535, 1024, 1024, 64)
    if not all(0 < n <= m for n, m in zip(sizes, most, strict=True)):
        raise Refused(_BAD, f"a launch of {sizes[:3]} blocks of {sizes[3:]} threads")
    if math.prod(sizes[3:]) > 1024 or extra or function.shared_bytes > 49152:
        raise Refused(_BAD, "too many threads, too much shared memory, or extra arguments")
    if shared:
        raise NotImplementedError("the double has no dynamic shared memory")
    kept, address = _parameters(kernelParams)
    slots = function.pack(address)
    del kept
    # a new copy each time: its addresses are translated, and a graph is launched again
    return lambda context: machine.run(context, function, bytearray(slots), sizes)


def _parameters(given: Any) -> tuple[Any, int]:
    """Return the address of an array of pointers, and the objects that must outlive it."""
    if not isinstance(given, tuple):
        return given, 0 if given is None else _host(given)
    values = [t(v) if t else ctypes.c_void_p(int(v)) for v, t in zip(*given, strict=True)]
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
    return (values, pointers), ctypes.addressof(pointers)


# --- graphs of launches


class Graph:
    """A graph of launches with their dependencies: a node is a handle."""

    def __init__(self) -> None:
        self.nodes: dict[int, tuple[Callable[[Context], None], list[int]]] = {}


class GraphExec:
    """A graph that can be launched. A launch in flight keeps its arguments."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.nodes = graph, dict(graph.nodes)


class Node:
    """The object behind a node's handle."""


def _of_node(p: Any) -> Callable[[Context], None]:
    sizes = (p.gridDimX, p.gridDimY, p.gridDimZ, p.blockDimX, p.blockDimY, p.blockDimZ)
    return _prepared(p.func, sizes, p.sharedMemBytes, p.kernelParams, 0)


@_api(1)
def cuGraphCreate(flags: int) -> CUgraph:
    machine.context()
    if flags:
        raise Refused(_BAD)
    return CUgraph(machine.put(Graph()))


@_api()
def cuGraphDestroy(hGraph: Any) -> None:
    graph = machine.drop(hGraph, Graph)
    for handle in graph.nodes:
        machine.drop(handle, Node)


@_api(1)
def cuGraphAddKernelNode(
    hGraph: Any, dependencies: Any, numDependencies: int, nodeParams: Any
) -> CUgraphNode:
    machine.context()
    graph = machine.get(hGraph, Graph)
    needs = [int(n) for n in (dependencies or ())][:numDependencies]
    if any(n not in graph.nodes for n in needs) or len({*needs}) != len(needs):
        raise Refused(_BAD, "a node depends on what is not in its graph")
    handle = machine.put(Node())
    graph.nodes[handle] = (_of_node(nodeParams), needs)
    return CUgraphNode(handle)


@_api(1)
def cuGraphInstantiate(hGraph: Any, flags: int) -> CUgraphExec:
    machine.context()
    if flags:
        raise Refused(_BAD)
    return CUgraphExec(machine.put(GraphExec(machine.get(hGraph, Graph))))


@_api()
def cuGraphExecKernelNodeSetParams(hGraphExec: Any, hNode: Any, nodeParams: Any) -> None:
    machine.context()
    run, handle = machine.get(hGraphExec, GraphExec), int(hNode)
    machine.get(hNode, Node)  # it ends with its graph
    if handle not in run.nodes:
        raise Refused(_BAD, "a node of another graph")
    run.nodes[handle] = (_of_node(nodeParams), run.nodes[handle][1])


@_api()
def cuGraphExecDestroy(hGraphExec: Any) -> None:
    machine.drop(hGraphExec, GraphExec)  # queued work still runs


@_api()
def cuGraphLaunch(hGraphExec: Any, hStream: Any) -> None:
    """Launch the nodes in any order that their dependencies allow."""
    context, stream = machine.context(), machine.stream(hStream)
    nodes = dict(machine.get(hGraphExec, GraphExec).nodes)

    def work() -> None:
        waiting = dict(nodes)
        while waiting:
            ready = [h for h, (_, needs) in waiting.items() if not {*needs} & {*waiting}]
            run, _ = waiting.pop(context.scheduler.chance.choice(ready))
            run(context)

    context.scheduler.enqueue(stream, work)


# --- errors


def cuGetErrorName(error: CUresult) -> tuple[Any, ...]:
    return (CUresult.CUDA_SUCCESS, error.name.encode())


def cuGetErrorString(error: CUresult) -> tuple[Any, ...]:
    """Return the double's description of a fault."""
    words = error.name.removeprefix("CUDA_ERROR_").replace("_", " ").lower()
    if machine.faults and any(c.fault == error for c in machine.contexts):
        words += f" ({machine.faults[0]})"
    return (CUresult.CUDA_SUCCESS, words.encode())


__all__ = [name for name in globals() if name.startswith(("cu", "CU"))]

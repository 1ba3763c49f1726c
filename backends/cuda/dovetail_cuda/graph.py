"""Sequences of launches as CUDA graphs: one call of the driver for all of them.

The nodes are a chain. A node whose addresses or numbers differ from those of the last replay gets
new ones before the graph is launched; launches already under way keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dovetail.extend import Lock, QueuedLaunch, StreamHandle

from . import driver as cuda
from .launch import CudaLaunch, PackedArguments

GRAPH_LAUNCHES_MIN = 3  # launches; a graph of fewer saves no calls


class CudaGraph:
    """A replayable sequence of launches. The driver's graph is built at the first replay."""

    def __init__(self, enter: Callable[[], None], launches: Sequence[QueuedLaunch]) -> None:
        self._enter, self._lock = enter, Lock()
        self._nodes = [_LaunchNode(x) for x in launches]
        self._executable: _Executable | None = None

    def replay(self, at: list[Any], variables: list[Any], stream: StreamHandle) -> None:
        """Queue all launches on a stream; build the driver's graph on first use, else update it."""
        with self._lock:
            self._enter()
            executable = self._executable
            if executable is None:
                for node in self._nodes:
                    node.pack_if_changed(at, variables)
                self._executable = executable = _Executable(self._nodes)
            else:
                executable.update([n for n in self._nodes if n.pack_if_changed(at, variables)])
            executable.launch(stream)


class _LaunchNode:
    """A launch, with its arguments at the last replay; None: not known."""

    def __init__(self, launch: QueuedLaunch) -> None:
        bound: CudaLaunch = launch.launch.__self__  # type: ignore[attr-defined]  # what `bind` gave is its method
        self.bound, self.buffers, self.scalars = bound, launch.buffers, launch.scalars
        self.arguments = PackedArguments(bound.kernel, bound.ints)
        self.last_arguments: tuple[list[int], list[Any]] | None = None
        p = self.parameters = cuda.driver.CUDA_KERNEL_NODE_PARAMS()
        p.func, p.sharedMemBytes, p.kernelParams = bound.function, 0, self.arguments.address
        p.gridDimX, p.gridDimY, p.gridDimZ, p.blockDimX, p.blockDimY, p.blockDimZ = bound.shape

    def pack_if_changed(self, at: list[Any], variables: list[Any]) -> bool:
        """Pack the arguments if they differ from the last ones; return True if so."""
        addresses = [at[2 * slot] + at[2 * slot + 1] + byte for slot, byte in self.buffers]
        numbers = [x if k is None else variables[k] for x, k in self.scalars]
        if self.last_arguments == (addresses, numbers):
            return False
        self.last_arguments = None  # until the driver knows: an interrupt may come
        self.arguments.write(addresses, numbers)
        self.packed_arguments = addresses, numbers
        return True


class _Executable:
    """The driver's executable graph. If destroyed while it runs, the driver lets it finish."""

    def __init__(self, nodes: Sequence[_LaunchNode]) -> None:
        d = cuda.driver
        self._graph = graph = _OwnedHandle(d.cuGraphCreate(0), "cuGraphCreate", d.cuGraphDestroy)
        self._handles: dict[int, Any] = {}
        dependencies: list[Any] = []
        for node in nodes:
            added = d.cuGraphAddKernelNode(
                graph.handle, dependencies, len(dependencies), node.parameters
            )
            dependencies = [
                cuda.unwrap_result(added, f"adding {node.bound.kernel.name} to a graph")
            ]
            self._handles[id(node)] = dependencies[0]
        run = d.cuGraphInstantiate(graph.handle, 0)
        self._run = _OwnedHandle(run, "cuGraphInstantiate", d.cuGraphExecDestroy)
        for node in nodes:
            node.last_arguments = node.packed_arguments

    def update(self, nodes: Sequence[_LaunchNode]) -> None:
        """Give the driver the nodes' packed arguments; set `last_arguments`.

        Raises: CudaError if it refuses.
        """
        set_parameters = cuda.driver.cuGraphExecKernelNodeSetParams
        for node in nodes:
            status = set_parameters(self._run.handle, self._handles[id(node)], node.parameters)
            cuda.unwrap_result(status, f"changing {node.bound.kernel.name} in a graph")
            node.last_arguments = node.packed_arguments

    def launch(self, stream: StreamHandle) -> None:
        """Queue the graph on a stream. Raises: CudaError if the driver refuses."""
        cuda.unwrap_result(
            cuda.driver.cuGraphLaunch(self._run.handle, stream or 0), "launching a graph"
        )


class _OwnedHandle:
    """A handle of the driver that is destroyed with this object."""

    __slots__ = ("__del__", "handle")

    # In a slot, so that Python calls the driver's function itself: no interrupt comes between.
    __del__: Callable[[], object]

    def __init__(
        self, created: tuple[Any, ...], action: str, destroy: Callable[[Any], object]
    ) -> None:
        self.handle = cuda.unwrap_result(created, action)
        self.__del__ = partial(destroy, self.handle)

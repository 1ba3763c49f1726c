"""What a caching allocator does most: hand out a block that it has, and take back what was freed.

Deleters only append to a deque, which whoever next holds the lock drains: a `__del__` may run at
any moment, also in here, through the garbage collector. Allocate and free from the cache cost under
1.5 us in Python, a sixth of that compiled (`front.pyx`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from functools import partial

from ..arguments import integer
from ..device import Device
from ..locks import Lock
from .blocks import LIVE, ROUND, UNUSED, Block, Pool
from .pointer import DataPtr, StreamHandle
from .tracing import Tracer

IDLE, BUSY, TORN = range(3)  # nobody is inside; somebody is; somebody was, and left by an exception

_new = object.__new__


class Front:
    """An allocator's state, as far as its cache is concerned."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._lock = Lock()
        # BUSY: the lock's holder is inside, so a finaliser that allocates gets memory uncached
        self._state = IDLE
        self._freed: deque[Block] = deque()
        self._default = Pool(None)
        self._live = self._peak = self._allocations = self._frees = 0
        self._tracer: Tracer | None = None  # notes what is done, while somebody wants to know

    def allocate(self, nbytes: int, stream: StreamHandle = None) -> DataPtr:
        """See `Allocator.allocate`.

        Zero bytes get a real block too, so that every handle is valid.
        """
        if type(nbytes) is not int or nbytes < 0:
            nbytes = integer("allocate", nbytes, "nbytes", 0)
        size = (nbytes + (ROUND - 1)) & -ROUND or ROUND
        with self._lock:
            if self._state:
                if self._state == BUSY:
                    return self._aside(nbytes)
                self._restore()
            self._state = BUSY
            try:
                if self._freed:
                    self._drain()
                pool = self._default if stream is None else self._pool(stream)
                waiting = pool.bins.get(size)
                block = waiting.pop() if waiting else self._miss(pool, size)
                ptr = _new(DataPtr)
                ptr._handle, ptr.offset, ptr.nbytes = block.handle, block.offset, nbytes
                ptr.device, ptr.context, ptr.copy = self.device, block, None
                tracer = self._tracer
                give_back = block.give_back if tracer is None else tracer.allocated(block)
                # at once, and no call after it
                ptr.__del__, block.state = give_back, LIVE  # type: ignore[assignment]  # set by `_cut`
                self._allocations += 1
                self._live += block.size
                if self._live > self._peak:
                    self._peak = self._live
            except BaseException:
                self._state = TORN
                raise
            self._state = IDLE
        return ptr

    def _drain(self) -> None:
        """Takes back what was freed."""
        freed = self._freed
        while freed:
            block = freed[0]
            if block.streams is not None:
                self._set_aside(block)
                continue
            if self._tracer is not None:
                self._tracer.freed(block)
            block.state = UNUSED
            self._live -= block.size
            self._frees += 1
            del freed[0]
            if block.bin is not None:
                block.bin.append(block)
            else:
                block.segment.pool.insert(block)

    def _returning(self, block: Block) -> Callable[[], object]:
        """What a block's pointers call at their end."""
        return partial(self._freed.append, block)

    # --- what is rarer
    @abstractmethod
    def _aside(self, nbytes: int) -> DataPtr:
        """Memory for a finaliser that runs while somebody is inside."""

    @abstractmethod
    def _restore(self) -> None:
        """Mends what an exception has left behind. The caller has the lock."""

    @abstractmethod
    def _pool(self, stream: StreamHandle) -> Pool:
        """The blocks of a stream."""

    @abstractmethod
    def _miss(self, pool: Pool, size: int) -> Block:
        """A block of a size of which none is waiting."""

    @abstractmethod
    def _set_aside(self, block: Block) -> None:
        """Takes back what others may still be using."""

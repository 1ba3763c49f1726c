"""The tensor of the layout `sharded`, and the functions that make one."""

from __future__ import annotations

import copy
from typing import Any, NoReturn, Self

import dovetail as dt
from dovetail.extend import Layout, LayoutTensor, arguments, required
from dovetail.extend import axis as axis_of

from ..membership import current
from . import exchanges
from .sharding import Shape, Sharding, choose_borders

__all__ = ["ShardedTensor", "from_local", "shard"]

Tensor = dt.Tensor
sharded = Layout("sharded")


class ShardedTensor(LayoutTensor):
    """A tensor that is cut along one axis, each rank of the group with one part, its shard.

    `shard` and `from_local` make one. `shape` is that of the whole tensor, `local()` is this rank's
    shard, a strided tensor. Functions work on the shards; those that need elements of other ranks
    send messages at once, so every rank must call them. A strided operand must be the same on all
    ranks. Gradients flow through the shards.

    >>> import dovetail as dt
    >>> x = dt.parallel.shard(dt.asarray([[1.0, 2.0], [3.0, 4.0]]))
    >>> x.shape, x.axis, x.borders, x.local().shape
    ((2, 2), 0, (0, 2), (2, 2))
    >>> dt.sum(x * x, axis=0).tolist()
    [10.0, 20.0]
    """

    __slots__ = ("_local", "sharding")

    _local: Tensor
    sharding: Sharding

    @property
    def device(self) -> dt.Device:
        """The device of this rank's shard."""
        return self._local.device

    @property
    def dtype(self) -> dt.DType:
        """The dtype of the elements."""
        return self._local.dtype

    @property
    def layout(self) -> Layout:
        """The layout of the name "sharded"."""
        return sharded

    @property
    def shape(self) -> Shape:
        """The shape of the whole tensor."""
        local, s = self._local.shape, self.sharding
        return (*local[: s.axis], s.size, *local[s.axis + 1 :])

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """The shard of this rank."""
        return (self._local,)

    @property
    def axis(self) -> int:
        """The axis along which the tensor is cut."""
        return self.sharding.axis

    @property
    def borders(self) -> Shape:
        """The borders along the axis: rank r has the positions from border r to border r + 1."""
        return self.sharding.borders

    def local(self) -> Tensor:
        """Return this rank's shard, a strided tensor; nothing is sent."""
        return self._local

    def full(self) -> Tensor:
        """Return the whole tensor on every rank, strided.

        Every rank must call it.
        Gradients flow through it: each rank gets the part of its own shard.

        Raises: WorkerError, CaptureError in a captured function.
        """
        return gather_whole("full", self)  # type: ignore[no-any-return]  # this one gives a tensor

    def reshard(self, axis: int, borders: Shape | None = None) -> ShardedTensor:
        """Return the same elements, cut along another axis or at other borders.

        Each rank sends each other rank the elements of its new shard. Every rank must call it.

        - `axis`: the new axis.
        - `borders`: the new borders; None are those that `shard` chooses.

        Raises: AxisError, ArgumentError for wrong borders, WorkerError, CaptureError.
        """
        new = _choose_sharding("reshard", self.shape, axis, borders, self.sharding.group)
        return move("reshard", self, new.axis, new.borders)

    def with_local(self, local: Tensor, axis: int | None = None) -> ShardedTensor:
        """Return a tensor with another shard of this rank, and the same borders.

        - `local`: the shard.
        - `axis`: the axis along which it is one; None is that of this tensor.
        """
        return wrap(local, self.sharding if axis is None else self.sharding.along(axis))

    # --- gradients: those of the shard
    @property
    def requires_grad(self) -> bool:  # type: ignore[override]  # that of the shard: not settable
        """True if gradients flow to or through the shard."""
        return self._local.requires_grad

    @property
    def is_leaf(self) -> bool:  # type: ignore[override]  # as above
        """True if no recorded op computed the shard."""
        return self._local.is_leaf

    @property
    def grad_fn(self) -> object:  # type: ignore[override]  # as above
        """The tape node of the op that computed the shard, or None."""
        return self._local.grad_fn

    @property
    def grad(self) -> ShardedTensor | None:  # type: ignore[override]  # as above
        """The gradient that `backward` has accumulated, sharded like the tensor."""
        g = self._local.grad
        return None if g is None else self.with_local(g)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Record the gradient of the shard from now on, or stop doing so; return this tensor.

        - `requires_grad`: True records it, False stops.
        """
        self._local.requires_grad_(requires_grad)
        return self

    def backward(self, *args: object, **options: object) -> None:
        """Raise LayoutError: gradients start from a strided tensor.

        - `args`, `options`: any arguments.

        Raises: LayoutError.
        """
        raise dt.LayoutError(
            "backward: the tensor must be strided, got a sharded one; sum it, or use x.full()"
        )

    def detach(self) -> ShardedTensor:
        """Return the same elements as a tensor that stops gradients."""
        return self.with_local(self._local.detach())

    def __copy__(self) -> ShardedTensor:
        return self.with_local(copy.copy(self._local))

    def __deepcopy__(self, memo: dict[int, object]) -> ShardedTensor:
        return self.with_local(copy.deepcopy(self._local, memo))  # the group is not copied

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Raise LayoutError: another process is in another group."""
        raise dt.LayoutError(
            "pickle: a sharded tensor belongs to a process; use x.local(), or x.full()"
        )

    def __repr__(self) -> str:
        s = self.sharding
        local = repr(self._local.detach()).replace("\n", "\n  ")
        return (
            f"sharded_tensor(\n  {local},\n  rank {s.group.rank} of {s.group.size}: positions "
            f"{s.start} to {s.stop} along axis {s.axis}, shape={self.shape}, "
            f'dtype={self.dtype.name}, device="{self.device}")'
        )

    __str__ = __repr__


def wrap(local: Tensor, sharding: Sharding) -> ShardedTensor:
    """Return the sharded tensor of this rank's shard."""
    x: ShardedTensor = object.__new__(ShardedTensor)
    x._local, x.sharding = local, sharding
    return x


def move(op: str, x: ShardedTensor, axis: int, borders: Shape | None = None) -> ShardedTensor:
    """Return the same elements, cut along an axis at borders; None are those of `shard`."""
    group = x.sharding.group
    if borders is None:
        borders = choose_borders(x.shape[axis], group.size)
    new = Sharding(axis, borders, group)
    if new.matches(x.sharding):
        return x
    return wrap(exchanges.reshard(x.local(), x.sharding, new, op), new)


def gather_whole(op: str, x: Any) -> Any:
    """Return a sharded tensor on every rank, strided; others unchanged."""
    return exchanges.gather(x.local(), x.sharding, op) if isinstance(x, ShardedTensor) else x


def shard(x: Tensor, axis: int = 0, borders: Shape | None = None) -> ShardedTensor:
    """Return a tensor of which each rank keeps a copy of one part along an axis; nothing is sent.

    By default the parts are nearly equal. If an axis is long enough, borders are multiples of 4096,
    at which the bits of sums do not depend on the number of ranks (docs/sharded-tensors.md).

    - `x`: a strided tensor, the same on all ranks of the group `current()`.
    - `axis`: the axis that is cut.
    - `borders`: the positions where it is cut, from 0 to its size, one more than there are ranks.

    Shapes: of at least 1 dimension.
    Dtypes: all.
    Gradient: gathered on every rank.
    Raises: AxisError; ArgumentError for wrong borders; LayoutError if `x` is not strided.
    See also: `from_local`, `ProcessGroup`.

    >>> import dovetail as dt
    >>> x = dt.parallel.shard(dt.ones((4, 3)), axis=1)
    >>> x.full().shape
    (4, 3)
    """
    if required("shard", x).layout is not dt.strided:
        raise dt.LayoutError(
            f"shard: x must be strided, got {x.layout.name}; use x.to_dense(), or x.reshard(axis)"
        )
    sharding = _choose_sharding("shard", x.shape, axis, borders, current())
    return wrap(dt.copy(exchanges.cut(x, sharding, "shard")), sharding)


def from_local(local: Tensor, axis: int = 0) -> ShardedTensor:
    """Return the tensor of which each rank has one part.

    Every rank must call it. The ranks tell each other the shapes of their parts; no element is
    sent.

    - `local`: this rank's part, strided, of the same dtype on all ranks. Sizes along `axis` may
      differ, others may not.
    - `axis`: the axis along which the parts follow each other, in the order of the ranks.

    Shapes: of at least 1 dimension.
    Dtypes: all.
    Gradient: that of the part.
    Raises: AxisError; LayoutError if `local` is not strided; ShapeError, on every rank, if other
    sizes differ; WorkerError.
    See also: `shard`.

    >>> import dovetail as dt
    >>> dt.parallel.from_local(dt.ones((4, 3))).shape
    (4, 3)
    """
    if required("from_local", local).layout is not dt.strided:
        raise dt.LayoutError(
            f"from_local: local must be strided, got {local.layout.name}; use local.to_dense()"
        )
    return join("from_local", local, axis_of("from_local", axis, local.ndim), current())


def join(op: str, local: Tensor, along: int, group: Any) -> ShardedTensor:
    """Return the tensor of each rank's part along an axis; the ranks exchange the shapes.

    Raises: ShapeError, on every rank, if other sizes differ.
    """
    shapes = exchanges.gather_shapes(group, local.shape, op)
    others = {(*s[:along], *s[along + 1 :]) for s in shapes}
    if len(others) > 1:
        raise dt.ShapeError(
            f"{op}: shapes must be equal except along axis {along}, got "
            f"{', '.join(map(str, shapes))} on the ranks"
        )
    borders = [0]
    for s in shapes:
        borders.append(borders[-1] + s[along])
    return wrap(local, Sharding(along, tuple(borders), group))


def _choose_sharding(
    op: str, shape: Shape, axis: int, borders: Shape | None, group: Any
) -> Sharding:
    """Return the sharding of a tensor. Raises: AxisError, ArgumentError, ArgumentTypeError."""
    along = axis_of(op, axis, len(shape))
    if borders is None:
        return Sharding(along, choose_borders(shape[along], group.size), group)
    chosen = tuple([arguments.integer(op, b, "borders") for b in borders])
    ends = (chosen[:1], chosen[-1:])
    if (
        len(chosen) != group.size + 1
        or ends != ((0,), (shape[along],))
        or sorted(chosen) != [*chosen]
    ):
        raise dt.ArgumentError(
            f"{op}: borders must be {group.size + 1} ascending positions from 0 to {shape[along]}, "
            f"got {chosen}"
        )
    return Sharding(along, chosen, group)

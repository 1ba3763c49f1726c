"""What a `with` block changes about the library: one mechanism for all of it.

Settings belong to a context, as `contextvars` has it: a thread begins with the defaults, an asyncio
task with a copy of what its maker had. One block's object may be entered again while it is entered,
also by other threads, and blocks that overlap may be left in any order: a context knows by which
objects it was entered, and its settings follow from these alone.

The process has, whatever the context: the device that is the default where no block names one
(`device.set_default_device`) and the default random generator, which threads started later are to
find as the program set them; what `profile` and the tracing of memory note, which is the work of
all threads; and installed plugins.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import ContextDecorator
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial, wraps
from inspect import iscoroutinefunction, isgeneratorfunction
from typing import Any, Protocol, Self, TypeVar, cast
from weakref import ref

from .locks import Lock
from .records import DEPTH_LIMIT, Flags

__all__ = ["eager", "junk_filled"]

F = TypeVar("F", bound=Callable[..., Any])

flags = Flags()


MERGED = ("streams", "printing")  # settings that are dicts: inner blocks add to outer ones


class Block(Protocol):
    """What settings are entered by."""

    @property
    def changes(self) -> Mapping[str, Any]:
        """Fields of `Settings`, and what they are inside."""


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Settings:
    """All settings of one context."""

    eager: bool = False  # whether each op runs at once
    reproducible: bool = False  # whether no vendor's routine is used
    grad: bool = True  # whether ops are recorded for gradients
    inference: bool = False  # whether nothing may ask for that
    anomaly: Any = None  # `autograd.anomaly`'s, where each result is looked at
    saving: Any = None  # what packs and unpacks values that are saved for gradients: a pair
    device: Any = None  # the default one, where a block has chosen it
    lines: bool = False  # whether each op notes the line that recorded it
    printing: Mapping[str, Any] = field(default_factory=dict)  # options of how tensors look
    junk: bool | None = None  # whether memory that nothing has filled holds junk
    streams: Mapping[Any, Any] = field(default_factory=dict)  # the current one, by device
    entered: tuple[Block, ...] = ()  # what made it so, outermost first


_DEFAULTS = Settings()
_current: ContextVar[Settings] = ContextVar("dovetail settings", default=_DEFAULTS)
current = _current.get


def enter(block: Block) -> None:
    """Makes the changes of `block` in this context."""
    _become((*current().entered, block))


def leave(block: Block) -> None:
    """Undoes the latest `enter(block)` of this context; nothing where there is none."""
    entered = current().entered
    for i in reversed(range(len(entered))):
        if entered[i] is block:
            _become((*entered[:i], *entered[i + 1 :]))
            return


def _become(entered: tuple[Block, ...]) -> None:
    _current.set(_made(entered))


def _made(entered: tuple[Block, ...]) -> Settings:
    if not entered:
        return _DEFAULTS
    fields: dict[str, Any] = {}
    for block in entered:
        for name, value in block.changes.items():
            fields[name] = {**fields.get(name, {}), **value} if name in MERGED else value
    if fields.get("inference"):
        fields["grad"] = False
    made = Settings(**fields, entered=entered)
    if made.eager or made.lines:
        ask_while(made)
    return made


def record(on: bool) -> None:
    """Turns the recording of ops on or off, for our own code:

        before = current()
        try:
            record(False)
            ...
        finally:
            restore(before)

    It is no `with`, since an interrupt may come at the start of an `__exit__`, or after a setting
    has changed and before anybody knows it; but not between a `finally` and a function of C.
    """
    _current.set(_made((*current().entered, _RECORDED if on else _UNRECORDED)))


restore = _current.set


class Switch(ContextDecorator):
    """A context, or a decorator, in which some settings are changed."""

    def __init__(self, **changes: object) -> None:
        self.changes: Mapping[str, Any] = changes

    def __enter__(self) -> Self:
        enter(self)
        return self

    def __exit__(self, *exc: object) -> None:
        leave(self)

    def __call__(self, function: F) -> F:
        """The function, with settings changed while it runs: a generator, or a coroutine too."""
        if isgeneratorfunction(function):
            return cast(F, wraps(function)(partial(_generated, self, function)))
        if iscoroutinefunction(function):

            @wraps(function)
            async def awaited(*args: Any, **options: Any) -> Any:
                with self:
                    return await function(*args, **options)

            return cast(F, awaited)
        return super().__call__(function)


def _generated(
    switch: Switch, function: Callable[..., Generator[Any, Any, Any]], *args: Any, **options: Any
) -> Generator[Any, Any, Any]:
    """What a generator yields, with settings changed while it runs, and not in between."""
    source = function(*args, **options)
    step: Callable[[], Any] = partial(next, source)
    try:
        while True:
            with switch:
                item = step()
            try:
                sent = yield item
            except GeneratorExit:
                with switch:
                    source.close()
                raise
            except BaseException as error:
                step = partial(source.throw, error)
            else:
                step = partial(source.send, sent)
    except StopIteration as stop:
        return stop.value


_RECORDED, _UNRECORDED = Switch(grad=True), Switch(grad=False)


class eager(Switch):
    """A context in which each op runs at once, with the same bits; for debugging and timing.

    It is of this thread, or asyncio task, alone.

    >>> import dovetail as dt
    >>> with dt.eager():
    ...     x = dt.ones(3, device="reference") * 2  # is computed here
    >>> len(dt.explain(x).launches)
    0
    """

    def __init__(self) -> None:
        super().__init__(eager=True)


class junk_filled(Switch):
    """A context in which `dt.empty` holds what nobody takes for a result, to find what reads it.

    That is NaN, the largest integer, or True. DOVETAIL_JUNK=1 has it everywhere. It is of this
    thread, or asyncio task, alone.

    >>> import dovetail as dt
    >>> with dt.junk_filled():
    ...     x = dt.empty(2, device="reference")
    >>> x.tolist()
    [nan, nan]
    """

    def __init__(self, on: bool = True) -> None:
        super().__init__(junk=bool(on))


# --- whether ops run at once anywhere -------------------------------------------------------------

# While any of these lives, each op asks: settings that some context may have, copied ones too, and
# what says that others may write to memory.
_reasons: set[ref[Any]] = set()
_noting = Lock()  # re-entered where a signal's handler runs ops


def ask_while(reason: object) -> None:
    """Has each op ask whether it is to run at once, while `reason` lives."""
    with _noting:
        _reasons.add(ref(reason, _reasons.discard))
        flags.depth = 0


def is_eager() -> bool:
    """Whether ops run at once in this context; asked for each op while they may do so in any."""
    if not _reasons and not flags.exports:
        with _noting:
            if not _reasons and not flags.exports:
                flags.depth = DEPTH_LIMIT
    return current().eager

"""Settings of the library that `with` blocks change.

Settings belong to a context, as in `contextvars`: a thread begins with the defaults, an asyncio
task with a copy of its creator's. One block's object may be entered again while it is entered,
also by other threads, and blocks that overlap may be left in any order: a context stores the list
of blocks that it has entered, and its settings follow from that list alone.

Some state belongs to the process, in all contexts: the default device unless a block names one
(`device.set_default_device`) and the default random generator, because threads that start later
must find them as the program set them; the events of `profile` and of the tracing of memory, which
is the work of all threads; and installed plugins.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import ContextDecorator
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, partial, wraps
from inspect import iscoroutinefunction, isgeneratorfunction
from typing import Any, Protocol, Self, TypeVar, cast
from weakref import ref

from . import callbacks
from .argument_checks import flag
from .environment import read_flag
from .locks import Lock
from .records import DEPTH_LIMIT, Flags

__all__ = ["eager", "fast_math", "poison_empty"]

F = TypeVar("F", bound=Callable[..., Any])

flags = Flags()


NO_AUTOCAST: Mapping[str | None, Any] = {}
MERGED_FIELDS = ("streams", "printing")  # settings that are dicts: inner blocks add to outer ones


class SettingsBlock(Protocol):
    """An object that changes settings while it is entered."""

    @property
    def changes(self) -> Mapping[str, Any]:
        """Return fields of `Settings` with their values inside the block."""


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Settings:
    """All settings of one context."""

    eager: bool = False  # each op runs at once
    vendor_products: bool | None = None  # products may use a vendor's routine; None: as the process
    fast_math: bool = False  # kernels that are planned now may contract, and divide approximately
    # by device type, None for all others: the dtype of products; None where autocast is off
    autocast: Mapping[str | None, Any] = field(default_factory=lambda: NO_AUTOCAST)
    grad: bool = True  # ops are recorded for gradients
    inference: bool = False  # no inner block may turn `grad` on
    anomaly: Any = None  # the `autograd.anomaly` object that checks each result
    saved_value_hooks: Any = (
        None  # the pair of hooks that packs and unpacks values saved for gradients
    )
    device: Any = None  # the default device, if a block has chosen it
    records_lines: bool = False  # each op stores the line that recorded it
    printing: Mapping[str, Any] = field(default_factory=dict)  # options of `repr` of tensors
    fills_junk: bool | None = None  # uninitialised memory holds junk
    streams: Mapping[Any, Any] = field(default_factory=dict)  # the current one, by device
    blocks: tuple[SettingsBlock, ...] = ()  # the blocks that made these settings, outermost first


_DEFAULTS = Settings()
_current: ContextVar[Settings] = ContextVar("dovetail settings", default=_DEFAULTS)
current = _current.get


@cache
def allows_vendor_products() -> bool:
    """Return True if products may use a vendor's routine outside of all blocks."""
    return read_flag("DOVETAIL_VENDOR_PRODUCTS", default=True)


@cache
def fills_junk_by_default() -> bool:
    """Return True if DOVETAIL_JUNK asks to fill new memory; it is read once per process."""
    asked = read_flag("DOVETAIL_JUNK")
    if not asked:
        with _reasons_lock:
            alive = _announced["may_fill_junk"]
            alive.discard(ref(_DEFAULTS))
            flags.may_fill_junk = bool(alive)
    return asked


def fills_junk() -> bool:
    """Return True if uninitialised memory is filled with NaN, the largest integer, or True."""
    if not flags.may_fill_junk:
        return False
    chosen = current().fills_junk
    return fills_junk_by_default() if chosen is None else chosen


def uses_vendor_products() -> bool:
    """Return True if products that are recorded now may use a vendor's routine."""
    chosen = current().vendor_products
    return allows_vendor_products() if chosen is None else chosen


def set_vendor_products(allowed: bool | None) -> None:
    """Set the default of all threads outside of blocks; None is as the environment says.

    The caller drops captures that were matched by these settings.
    """
    object.__setattr__(_DEFAULTS, "vendor_products", allowed)  # other contexts refer to it
    _apply_blocks(current().blocks)


def enter_block(block: SettingsBlock) -> None:
    """Append `block` to the blocks of this context, and apply its changes."""
    _apply_blocks((*current().blocks, block))


def leave_block(block: SettingsBlock) -> None:
    """Remove the latest entry of `block` from this context, if any; later blocks stay in effect."""
    entered = current().blocks
    for i in reversed(range(len(entered))):
        if entered[i] is block:
            _apply_blocks((*entered[:i], *entered[i + 1 :]))
            return


def _apply_blocks(entered: tuple[SettingsBlock, ...]) -> None:
    """Set the settings of this context to those of the entered blocks."""
    _current.set(_merge_blocks(entered))


def _merge_blocks(entered: tuple[SettingsBlock, ...]) -> Settings:
    """Return the settings of entered blocks, inner ones last; make ops check for eager ones."""
    if not entered:
        return _DEFAULTS
    fields: dict[str, Any] = {"vendor_products": _DEFAULTS.vendor_products}
    for block in entered:
        for name, value in block.changes.items():
            if name == "autocast":
                value = _merge_autocast(fields.get(name, NO_AUTOCAST), value)
            fields[name] = {**fields.get(name, {}), **value} if name in MERGED_FIELDS else value
    if fields.get("inference"):
        fields["grad"] = False
    settings = Settings(**fields, blocks=entered)
    if settings.eager or settings.records_lines:
        require_eager_check(settings)
    if settings.fast_math:
        _announce("has_fast_math", settings)
    if settings.autocast:
        _announce("has_autocast", settings)
    if settings.fills_junk:
        _announce("may_fill_junk", settings)
    return settings


def _merge_autocast(
    outer: Mapping[str | None, Any], inner: Mapping[str | None, Any]
) -> Mapping[str | None, Any]:
    """Return the dtypes of autocast inside an inner block; one of all devices replaces others."""
    if None not in inner:
        return {**outer, **inner}
    return inner if any(inner.values()) else NO_AUTOCAST


def set_recording(on: bool) -> None:
    """Turn the recording of ops on or off, for dovetail's own code:

        before = current()
        try:
            set_recording(False)
            ...
        finally:
            restore(before)

    A `with` block is not safe here: an interrupt may come at the start of an `__exit__`, or between
    a change of the setting and its bookkeeping; but not between a `finally` and a function of C.
    """
    _current.set(_merge_blocks((*current().blocks, _RECORDING_ON if on else _RECORDING_OFF)))


def set_autocast(dtypes: Mapping[str | None, Any]) -> None:
    """Set autocast to the setting `dtypes` of another time, for dovetail's own code.

    Use it as `set_recording`; `NO_AUTOCAST` turns it off.
    """
    switch = Switch(autocast={None: None, **dtypes}) if dtypes else _AUTOCAST_OFF
    _current.set(_merge_blocks((*current().blocks, switch)))


restore = _current.set


class Switch(ContextDecorator):
    """A context, or a decorator, in which some settings are changed."""

    def __init__(self, **changes: object) -> None:
        self.changes: Mapping[str, Any] = changes

    def __enter__(self) -> Self:
        enter_block(self)
        return self

    def __exit__(self, *exc: object) -> None:
        leave_block(self)

    def __call__(self, function: F) -> F:
        """Return the function with settings changed while it runs; also a coroutine's."""
        if isgeneratorfunction(function):
            return cast(F, wraps(function)(partial(_run_generator, self, function)))
        if iscoroutinefunction(function):

            @wraps(function)
            async def awaited(*args: Any, **options: Any) -> Any:
                with self:
                    return await function(*args, **options)

            return cast(F, awaited)
        return super().__call__(function)


def _run_generator(
    switch: Switch, function: Callable[..., Generator[Any, Any, Any]], *args: Any, **options: Any
) -> Generator[Any, Any, Any]:
    """Yield a generator's items; the settings are changed only while it runs."""
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


_RECORDING_ON, _RECORDING_OFF = Switch(grad=True), Switch(grad=False)
_AUTOCAST_OFF = Switch(autocast={None: None})


class eager(Switch):
    """A context in which each op runs at once, with the same bits; for debugging and timing.

    It holds for this thread, or asyncio task, alone.

    >>> import dovetail as dt
    >>> with dt.eager():
    ...     x = dt.ones(3) * 2  # is computed here
    >>> len(dt.explain(x).launches)
    0
    """

    def __init__(self) -> None:
        super().__init__(eager=True)


class fast_math(Switch):
    """A context in which kernels may be quicker and less exact: contraction, native division.

    A product and a sum may become one fused multiply-add; quotients and square roots may be off by
    a few units in the last place. Sums keep their order; NaN, infinities and denormals stay. Bits
    then depend on the device, the compiler and fusion. The context in which a value is computed
    counts, not that in which it is recorded: call `dt.evaluate` inside, or a function of `dt.jit`.
    Backends that do not know the setting compute as always. See docs/numerics.md. It holds for this
    thread, or asyncio task, alone.

    - `enabled`: True allows less exact kernels; False does not.

    Raises: ArgumentTypeError for others.
    See also: `vendor_products`, `evaluate`.

    >>> import dovetail as dt
    >>> x = dt.ones(3)
    >>> with dt.fast_math():
    ...     y = (x * 3 + 1).tolist()
    >>> y
    [4.0, 4.0, 4.0]
    """

    def __init__(self, enabled: bool = True) -> None:
        super().__init__(fast_math=flag("fast_math", enabled, "enabled"))


class poison_empty(Switch):
    """A context in which `dt.empty` holds conspicuous values, to find code that reads it.

    The values are NaN, the largest integer, or True. DOVETAIL_JUNK=1 sets it everywhere. It holds
    for this thread, or asyncio task, alone.

    - `on`: False switches it off inside the context.

    >>> import dovetail as dt
    >>> with dt.poison_empty():
    ...     x = dt.empty(2)
    >>> x.tolist()
    [nan, nan]
    """

    def __init__(self, on: bool = True) -> None:
        super().__init__(fills_junk=bool(on))


# --- eager execution in any context ---------------------------------------------------------------

# While one of these objects lives, each op checks whether it must run at once. They are settings
# that some context may have, also copied ones, and exports through which other code may write.
_reasons: set[ref[Any]] = set()
_reasons_lock = Lock()  # re-entered where a signal's handler runs ops


def require_eager_check(reason: object) -> None:
    """Make each op check whether it must run at once, until `reason` is dead."""
    with _reasons_lock:
        _reasons.add(ref(reason, _reasons.discard))
        flags.depth = 0


# Settings with `fast_math`, `autocast` or `fills_junk` that some context may have, by flag. While
# one lives, the cache of graphs, or the functions that cast or allocate, read the settings. The
# default settings may fill junk until DOVETAIL_JUNK is read.
_announced: dict[str, set[ref[Any]]] = {
    "has_autocast": set(),
    "has_fast_math": set(),
    "may_fill_junk": {ref(_DEFAULTS)},
}


def _announce(flag: str, settings: Settings) -> None:
    """Set a flag of the process until `settings` is dead."""
    alive = _announced[flag]

    def discard(dead: ref[Any]) -> None:
        """Forget dead settings."""
        with _reasons_lock:
            alive.discard(dead)
            set_flag()

    def set_flag() -> None:
        """Set the flag to whether such settings are alive, and the slot of Python functions."""
        setattr(flags, flag, bool(alive))
        callbacks.run_autocast = callbacks.call_under_autocast if flags.has_autocast else None

    with _reasons_lock:
        alive.add(ref(settings, discard))
        set_flag()


def is_eager() -> bool:
    """Return True if ops run at once in this context; restore the fast path if no reason is left.

    Each op calls it while ops may run at once in any context.
    """
    if not _reasons and not flags.exports:
        with _reasons_lock:
            if not _reasons and not flags.exports:
                flags.depth = DEPTH_LIMIT
    return current().eager

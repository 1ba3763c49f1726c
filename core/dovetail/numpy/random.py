"""`np.random`: NumPy's own generators; samples are drawn on the host and become ndarrays.

The streams are NumPy's bit for bit, for `default_rng`, `Generator`, `RandomState` and the functions
with a global state, which is that of NumPy itself. `dt.random` draws on the device, and has the
same bits on each device.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial, wraps
from typing import Any
from weakref import ref

import numpy as host
import numpy.random as _theirs

from ..dtypes import BY_NAME
from ..engine import tracer_api
from ..tensor.c_fields import set_class
from ..tensor.tensor import Tensor, create_tensor
from ..weak_identity_map import WeakIdentityMap
from .array_class import ndarray, upload
from .calls import call_on_host, find_tensor, require_untraced, to_host

_BIT_GENERATORS = "BitGenerator MT19937 PCG64 PCG64DXSM Philox SFC64 SeedSequence"
_STATE_METHODS = """
    spawn bit_generator get_state set_state seed get_bit_generator set_bit_generator
""".split()  # noqa: SIM905 - a table of words
_ADVICE = "draw an array before and pass it, or use dt.random.normal, ..."


class _State:
    """The state in which a call leaves the global generator."""

    def __init__(self) -> None:
        self.update()

    def update(self) -> None:
        """Read the state of the global generator."""
        self.value: Any = _theirs.get_state(legacy=False)

    def restore(self) -> None:
        """Set the state of the global generator, as a call of the captured function does."""
        _theirs.set_state(self.value)


_GLOBAL: Any = _State()  # in place of NumPy's RandomState, which has no weak references
_GLOBAL_GENERATOR: Any = _theirs.get_state.__self__
# Generators that a captured function has seeded with a constant: its tracer, and the state after
# the function of the global one. Their samples are the same in each call, and so constants of the
# capture.
_seeded: WeakIdentityMap[Any, tuple[ref[tracer_api.Tracer], _State | None]] = WeakIdentityMap()


def _wrap_draw(name: str, function: Callable[..., Any], is_method: bool) -> Callable[..., Any]:
    """Wrap a sampler of NumPy: its samples become ndarrays, and a capture records the draw."""

    @wraps(function, updated=(), assigned=("__name__", "__qualname__", "__doc__"))
    def call(*args: Any, **options: Any) -> Any:
        tracer = tracer_api.current()
        if tracer is not None:
            generator = args[0] if is_method else _GLOBAL
            return _draw_in_trace(tracer, name, generator, function, args, options)
        if options:
            return call_on_host(function, args, options)
        return upload(function(*[a if type(a) in _PLAIN else to_host(a) for a in args]))

    return call


def _draw_in_trace(
    tracer: tracer_api.Tracer,
    name: str,
    generator: Any,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    options: dict[str, Any],
) -> Any:
    """Draw in a captured function: constants if it has seeded the generator, else at each call.

    A draw that cannot be repeated ends the capture: of a number, or with tensors as parameters.
    Raises: CaptureError in bodies of loops and branches, and under `vmap`.
    """
    if not tracer.records_draws:
        require_untraced(f"np.random.{name}", _ADVICE)
    values = (*args, *options.values())
    if name == "shuffle" or "out" in options or find_tensor(values) is not None:
        tracer_api.refuse_read(f"np.random.{name} gets a tensor or writes to an array")
        return call_on_host(function, args, options)
    own, state = _seeded.get(generator) or (None, None)
    if own is not None and own() is tracer:
        if state is None:
            return call_on_host(function, args, options)
        with tracer.moving_generator(_GLOBAL_GENERATOR):
            result = call_on_host(function, args, options)
        state.update()
        return result
    for x in values:
        if type(x) is host.ndarray:
            tracer.record_array(x)
    # A copy, because the function may change its lists and arrays after the draw.
    args, options = deepcopy((args, options), {id(generator): generator})
    draw = partial(function, *args, **options)
    with tracer.moving_generator(_GLOBAL_GENERATOR if generator is _GLOBAL else generator):
        samples = draw()
    if isinstance(samples, Tensor):  # of a method that calls another one
        return samples
    if tracer_api.current() is not tracer:  # another generator's move has ended the capture
        return upload(samples)
    if type(samples) is not host.ndarray or samples.dtype.name not in BY_NAME:
        tracer_api.refuse_read(f"np.random.{name} draws one number, not an array ({_ADVICE})")
        return upload(samples)
    return set_class(create_tensor(tracer.record_draw(draw, samples)), ndarray)


def _wrap_state_access(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of NumPy that reads or sets a generator's state: a call ends a capture."""

    @wraps(function, updated=(), assigned=("__name__", "__qualname__", "__doc__"))
    def call(*args: Any, **options: Any) -> Any:
        tracer_api.refuse_read(f"np.random.{name} uses the state of a generator")
        return function(*args, **options)

    return call


def _with_numpy(theirs: Any, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that runs on a generator of NumPy's class, with the same bit generator.

    For methods that call others, which would return ndarrays.
    """

    @wraps(method, updated=(), assigned=("__name__", "__qualname__", "__doc__"))
    def call(self: Any, *args: Any, **options: Any) -> Any:
        return method(theirs(self._bit_generator), *args, **options)

    return call


def _record_seed(generator: Any, seed: Any) -> None:
    """Report a generator to the thread's tracer if it was seeded with a constant."""
    tracer = tracer_api.current()
    if tracer is not None and tracer.records_draws and _is_constant_seed(seed):
        _seeded[generator] = ref(tracer), None
        tracer.record_own_generator(generator)


def _is_constant_seed(seed: Any) -> bool:
    """Return True for an int, a list of ints or a NumPy array: each gives one fixed state."""
    if isinstance(seed, (list, tuple)):
        return all(map(_is_constant_seed, seed))
    return isinstance(seed, (int, host.integer)) or type(seed) is host.ndarray


def _init_random_state(self: Any, seed: Any = None) -> None:
    """Initialize a RandomState, and report it to the thread's tracer."""
    _theirs.RandomState.__init__(self, to_host(seed))
    _record_seed(self, seed)


def _wrap_class(theirs: Any) -> Any:
    """Return a subclass of a generator of NumPy whose methods return ndarrays."""
    methods = {
        name: _wrap_draw(name, method, True)
        for name, method in vars(theirs).items()
        if not name.startswith("_") and callable(method) and name not in _STATE_METHODS
    }
    methods |= {
        name: _wrap_draw(name, _with_numpy(theirs, getattr(theirs, name)), True)
        for name in ("choice", "permutation")
    }
    methods |= {
        name: _wrap_state_access(name, getattr(theirs, name))
        for name in _STATE_METHODS
        if callable(getattr(theirs, name, None))
    }
    if hasattr(theirs, "bit_generator"):
        read = _wrap_state_access("bit_generator", theirs.bit_generator.__get__)
        methods["bit_generator"] = property(read)
    if issubclass(theirs, _theirs.RandomState):
        methods["__init__"] = _init_random_state

    def reduce(self: Any) -> tuple[Any, ...]:
        """Return a recipe of a generator of the same class, for `copy` and `pickle`."""
        return type(self), *theirs.__reduce__(self)[1:]

    methods["__reduce__"] = _wrap_state_access("copy", reduce)
    doc = f"NumPy's {theirs.__name__}; samples become ndarrays."
    return type(theirs.__name__, (theirs,), {"__doc__": doc, "__module__": __name__, **methods})


_PLAIN: set[type] = {int, float, type(None), host.ndarray}  # arguments that NumPy takes as they are
Generator: Any = _wrap_class(_theirs.Generator)
RandomState: Any = _wrap_class(_theirs.RandomState)
_PLAIN |= {Generator, RandomState}


def default_rng(seed: Any = None) -> Any:
    """Return a Generator with NumPy's default bit generator, from a seed or as it is.

    - `seed`: None, an int, a sequence of ints, a SeedSequence, a bit generator or a Generator.

    >>> import dovetail.numpy as np
    >>> np.random.default_rng(0).integers(10, size=3)
    array([8, 6, 5])
    """
    if isinstance(seed, Generator):
        return seed
    generator = Generator(_theirs.default_rng(to_host(seed)).bit_generator)
    _record_seed(generator, seed)
    return generator


def seed(seed: Any = None) -> None:
    """Set the state of NumPy's global generator, as `numpy.random.seed` does.

    - `seed`: None, an int or a sequence of ints.
    """
    tracer = tracer_api.current()
    if tracer is not None and not (tracer.records_draws and _is_constant_seed(seed)):
        tracer_api.refuse_read("np.random.seed sets the state of NumPy's generator")
        tracer = None
    if tracer is None:
        _theirs.seed(to_host(seed))
        return
    with tracer.moving_generator(_GLOBAL_GENERATOR):
        _theirs.seed(to_host(seed))
    state = _State()
    _seeded[_GLOBAL] = ref(tracer), state
    tracer.run_effect(state.restore)


__all__ = sorted(_theirs.__all__)
for _name in __all__:
    if _name not in globals():
        _value = getattr(_theirs, _name)
        if callable(_value) and _name not in _BIT_GENERATORS.split():
            if _name in _STATE_METHODS:
                _value = _wrap_state_access(_name, _value)
            else:
                _value = _wrap_draw(_name, _value, False)
        globals()[_name] = _value


def __dir__() -> list[str]:
    return __all__

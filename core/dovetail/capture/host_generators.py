"""The generators of NumPy that a captured function draws from.

A replay repeats the recorded draws, so nothing else may move a generator during the capture.
"""

from __future__ import annotations

import pickle
import sys
from typing import Any
from weakref import ref

UNRECORDED_DRAW = (
    "it draws from a generator of numpy.random; use dovetail.numpy.random, or draw before and pass "
    "the samples"
)


class HostGenerators:
    """The states of NumPy's generators at the last recorded draw.

    `drawn`: generators that recorded draws used. `own`: those that the function seeds itself.
    """

    def __init__(self) -> None:
        self._states: dict[int, tuple[Any, bytes]] = {}
        self.drawn: list[object] = []
        self.own: list[ref[object]] = []

    def watch(self, generator: object) -> None:
        """Store the state of a generator."""
        owner = _state_owner(generator)
        self._states[id(owner)] = owner, _read_state(owner)

    def has_moved(self, generator: object) -> bool:
        """Return True if a generator's state differs from the stored one."""
        owner = _state_owner(generator)
        _, stored = self._states.get(id(owner), (owner, None))
        return stored is not None and stored != _read_state(owner)

    def have_moved(self) -> bool:
        """Return True if the state of any generator differs from the stored one."""
        return any(self.has_moved(owner) for owner, _ in self._states.values())


def is_generator(x: object) -> bool:
    """Return True for a generator of NumPy, random or of bits."""
    module = sys.modules.get("numpy.random")
    kinds = ("BitGenerator", "Generator", "RandomState")
    return module is not None and isinstance(x, tuple(getattr(module, kind) for kind in kinds))


def global_generator() -> object | None:
    """Return NumPy's global generator; None if nothing has imported `numpy.random`."""
    module = sys.modules.get("numpy.random")
    return None if module is None else module.get_state.__self__


def _state_owner(generator: Any) -> Any:
    """Return the object that has a generator's state: its bit generator, or a RandomState."""
    # A RandomState also keeps a spare normal, which its bit generator does not have.
    is_whole = isinstance(generator, sys.modules["numpy.random"].RandomState)
    return generator if is_whole else getattr(generator, "_bit_generator", generator)


def _read_state(owner: Any) -> bytes:
    """Return the pickled state of a bit generator or a RandomState, to compare."""
    legacy = sys.modules["numpy.random"].RandomState
    state = legacy.get_state(owner, legacy=False) if isinstance(owner, legacy) else owner
    return pickle.dumps(state)

"""Attribution of a profile's events to the modules of a network, by hooks around each module."""

from __future__ import annotations

from threading import get_ident
from typing import Any

from ..argument_checks import refused
from ..capture.pytree import flatten
from ..engine import tracer_api
from ..engine.events import ProfileEvent
from ..tensor.host import evaluate
from ..tensor.tensor import Tensor

__all__: list[str] = []


class ModuleEvents:
    """Hooks that compute each module's results as its forward returns, and mark its events.

    `calls`: the number of calls of each module, by its name in the network.
    """

    def __init__(self, network: Any, events: list[ProfileEvent]) -> None:
        if not hasattr(network, "named_modules"):
            raise refused("profile", "modules", "a dt.nn.Module", network)
        self._names: dict[Any, str] = {module: name for name, module in network.named_modules()}
        self.kinds = {name: type(module).__name__ for module, name in self._names.items()}
        self.calls = dict.fromkeys(self.kinds, 0)
        self._events, self._marked_count = events, 0
        self._stack: list[str] = []  # the modules that run, by name
        self._handles: list[Any] = []
        self._thread = 0

    def start(self) -> None:
        """Register the hooks; only this thread's calls are recorded."""
        self._thread = get_ident()
        for module in self._names:
            self._handles += [
                module.register_forward_pre_hook(self._enter, with_kwargs=True),
                module.register_forward_hook(self._leave, always_call=True),
            ]

    def stop(self) -> None:
        """Remove the hooks."""
        self._mark_events()
        for handle in self._handles:
            handle.remove()

    def _enter(self, module: Any, args: Any, named: Any) -> None:
        """Compute the arguments in the name of the caller; begin a call."""
        if get_ident() == self._thread:
            self._settle((args, named))
            name = self._names[module]
            self._stack.append(name)
            self.calls[name] += 1

    def _leave(self, module: Any, args: Any, result: Any) -> None:
        """Compute the results in the name of the module; end its call."""
        if get_ident() == self._thread:
            self._settle(result)
            self._stack.pop()

    def _settle(self, values: Any) -> None:
        """Compute the tensors in containers, unless traced; mark the events until now."""
        if tracer_api.current() is None:
            evaluate(*[x for x in flatten(values).leaves if isinstance(x, Tensor)])
        self._mark_events()

    def _mark_events(self) -> None:
        """Mark this thread's new events with the name of the module that runs, if any."""
        events = self._events[self._marked_count :]
        self._marked_count += len(events)
        if self._stack:
            for event in events:
                if event["thread"] == self._thread:
                    event["details"]["module"] = self._stack[-1]

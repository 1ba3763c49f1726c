"""What plugins answered: of the right kind, or an error that names the hook and the way out."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..arguments import shown
from ..backend.interface import Backend
from ..dtypes import DType
from ..errors import PluginError

DIAGNOSTICS, GAPS = "dovetail_diagnostics", "dovetail_conformance"
EXAMPLES = {
    DIAGNOSTICS: 'return {"driver": "12.4"}',
    GAPS: 'return {"scalar_ops.fma_rounds_once.*": "this unit rounds the product"}',
}
ALIKE = 0.85  # how much of a misspelt name is right


def texts(hook: str, found: object) -> dict[str, str]:
    """A hook's mapping of texts to texts; None, where there is no such hook, is an empty one.

    Raises: PluginError for anything else.
    """
    if found is None:
        return {}
    if not isinstance(found, Mapping) or any(
        not isinstance(x, str) for pair in found.items() for x in pair
    ):
        raise PluginError(
            f"{hook} returned {shown(found)}, not a mapping of texts to texts: {EXAMPLES[hook]}"
        )
    return dict(found)


def routines(of: str, found: object) -> dict[tuple[str, DType], Any]:
    """A mapping of (op, dtype) to routines; None is an empty one.

    Raises: PluginError for anything else.
    """
    if found is None:
        return {}
    if not isinstance(found, Mapping) or not all(
        _is_op(key) and callable(routine) for key, routine in found.items()
    ):
        raise PluginError(
            f"{of} returned {shown(found)}, not a mapping of (op, dtype) to functions: "
            'return {("matmul", float32): routine}'
        )
    return dict(found)


def _is_op(key: object) -> bool:
    match key:
        case (str(), DType()):
            return True
    return False


def misfits(backend: Backend) -> Iterator[str]:
    """What its methods lack: parameters by which the core calls them."""
    for name, own in _public(type(backend)).items():
        meant = getattr(Backend, name, None)
        if not inspect.isfunction(own) or not inspect.isfunction(meant):
            continue
        parameters = inspect.signature(meant).parameters
        least = [n for n, p in parameters.items() if p.default is p.empty]
        for wanted in {len(least): least, len(parameters): list(parameters)}.values():
            try:
                inspect.signature(own).bind(*wanted)
            except TypeError as error:
                yield f"{name}({', '.join(wanted[1:])}) is how the core calls it: {error}"
                break


def misspelt(backend: Backend) -> Iterator[str]:
    """Names of its class that are nearly those of methods which it does not have of its own."""
    from difflib import get_close_matches  # 3 ms, which who opens a device need not pay

    own = _public(type(backend))
    free = [n for n in dir(Backend) if not n.startswith("_") and n not in own]
    for name in own:
        near = [] if hasattr(Backend, name) else get_close_matches(name, free, 1, ALIKE)
        if near:
            yield f'nothing calls "{name}"; did you mean "{near[0]}"?'


def _public(of: type) -> dict[str, object]:
    """What a backend's classes define, those between it and `Backend` among them."""
    classes: Sequence[type] = [c for c in of.__mro__ if issubclass(c, Backend) and c is not Backend]
    found: dict[str, object] = {}
    for c in reversed(classes):
        found |= {name: x for name, x in vars(c).items() if not name.startswith("_")}
    return found

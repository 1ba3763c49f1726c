"""What plugins answered: of the right kind, or an error that names the hook and the way out."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, replace
from itertools import islice
from numbers import Integral
from typing import Any

from ..arguments import shown
from ..backend.interface import Backend, BackendInfo, DeviceInfo, Unavailable
from ..device_class import device
from ..dtypes import DType
from ..errors import PluginError
from ..loops.target import Capabilities

DIAGNOSTICS, GAPS = "dovetail_diagnostics", "dovetail_conformance"
EXAMPLES = {
    DIAGNOSTICS: 'return {"driver": "12.4"}',
    GAPS: 'return {"scalar_ops.fma_rounds_once.*": "this unit rounds the product"}',
}
ALIKE = 0.85  # how much of a misspelt name is right
DEVICES_MAX = 1_000  # of one plugin: a generator might never end
REPLACEMENT = "\ufffd"  # for a character of a device's name that cannot be printed
_FULL = Capabilities()
_KINDS: dict[type, Any] = {bool: int, int: Integral, frozenset: AbstractSet}
_CAPABILITIES = {
    f.name: _KINDS.get(type(v := getattr(_FULL, f.name)), type(v)) for f in fields(Capabilities)
}


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


def backend_info(found: object) -> BackendInfo:
    """Return what `dovetail_backend_info` returned. Raises: PluginError unless it is right."""
    if not isinstance(found, BackendInfo):
        raise PluginError(f"dovetail_backend_info returned {shown(found)}, not a BackendInfo")
    for name in ("type", "version", "summary"):
        _require(f"BackendInfo.{name}", getattr(found, name), str, "text")
    match found.minimum_interface:
        case (int(), int()) if type(found.minimum_interface) is tuple:
            return found
    given = shown(found.minimum_interface)
    raise PluginError(f"BackendInfo.minimum_interface must be two ints such as (1, 0), got {given}")


def probed(type: str, found: object) -> tuple[DeviceInfo, ...] | Unavailable:
    """Return what `dovetail_probe` returned for a device type. Raises: PluginError if it is wrong.

    Names of devices are made printable.
    """
    if isinstance(found, Unavailable):
        _require("Unavailable.reason", found.reason, str, "text")
        _require("Unavailable.hint", found.hint, str, "text")
        return found
    if not isinstance(found, Iterable) or isinstance(found, str | bytes | Mapping):
        raise PluginError(
            f"dovetail_probe returned {shown(found)}; it must return a list of DeviceInfo, or "
            "Unavailable(reason, hint)"
        )
    devices = [_device(type, d) for d in islice(found, DEVICES_MAX + 1)]
    if len(devices) > DEVICES_MAX:
        raise PluginError(f"dovetail_probe returned more than {DEVICES_MAX:,} devices")
    if not devices:
        raise PluginError(
            "dovetail_probe returned no device, where Unavailable(reason, hint) belongs"
        )
    if len({d.index for d in devices}) != len(devices):
        raise PluginError(f"dovetail_probe returned two devices with one index: {shown(found)}")
    return tuple(devices)


def _device(type: str, found: object) -> DeviceInfo:
    if not isinstance(found, DeviceInfo) or found.type != type:
        given = (
            f"one of type {shown(found.type)}" if isinstance(found, DeviceInfo) else shown(found)
        )
        raise PluginError(f"dovetail_probe returned {given}, not a DeviceInfo of type {type!r}")
    _require("DeviceInfo.index", found.index, Integral, "a whole number from 0")
    device(f"{type}:{found.index}", "dovetail_probe")
    for name in ("name", "fingerprint"):
        _require(f"DeviceInfo.{name}", getattr(found, name), str, "text")
    _require("DeviceInfo.total_memory", found.total_memory, Integral, "a number of bytes")
    texts("DeviceInfo.details", found.details)
    _require("DeviceInfo.capabilities", found.capabilities, Capabilities, "Capabilities")
    for f in fields(Capabilities):
        value, wanted = getattr(found.capabilities, f.name), _CAPABILITIES[f.name]
        _require(f"Capabilities.{f.name}", value, wanted, f"like {shown(getattr(_FULL, f.name))}")
    name = "".join(c if c.isprintable() else REPLACEMENT for c in found.name)
    return found if name == found.name else replace(found, name=name)


def _require(what: str, value: object, kind: Any, wanted: str) -> None:
    """Raises: PluginError unless the value is of this kind."""
    if not isinstance(value, kind):
        raise PluginError(f"{what} must be {wanted}, got {shown(value)}")


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

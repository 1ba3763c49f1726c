"""Validation of plugins' results; errors name the hook and what it should return."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, replace
from itertools import islice
from numbers import Integral
from typing import Any

from ..argument_checks import shown
from ..backend.interface import Backend, BackendInfo, DeviceInfo, Unavailable
from ..device_class import device
from ..dtypes import DType
from ..errors import PluginError
from ..ir.target import Capabilities

DIAGNOSTICS_HOOK, GAPS_HOOK = "dovetail_diagnostics", "dovetail_conformance"
EXAMPLES = {
    DIAGNOSTICS_HOOK: 'return {"driver": "12.4"}',
    "DeviceInfo.details": 'details={"driver": "12.4"}',
    GAPS_HOOK: 'return {"scalar_ops.fma_rounds_once.*": "this unit rounds the product"}',
}
NAME_SIMILARITY_MIN = 0.85  # similarity of a misspelt name, from 0 to 1
DEVICES_MAX = 1_000  # per plugin, because a generator might never end
REPLACEMENT = "\ufffd"  # for a character of a device's name that cannot be printed
_DEFAULT_CAPABILITIES = Capabilities()
_ACCEPTED_TYPES: dict[type, Any] = {
    bool: int,
    int: Integral,
    frozenset: AbstractSet,
    type(None): int | None,  # a bool that follows another field
}
_CAPABILITY_TYPES = {
    f.name: _ACCEPTED_TYPES.get(type(v := getattr(_DEFAULT_CAPABILITIES, f.name)), type(v))
    for f in fields(Capabilities)
}


def validate_texts(hook: str, answer: object) -> dict[str, str]:
    """Return a hook's mapping of texts to texts; None, of a missing hook, is an empty mapping.

    Raises: PluginError for anything else.
    """
    if answer is None:
        return {}
    if not isinstance(answer, Mapping) or any(
        not isinstance(x, str) for pair in answer.items() for x in pair
    ):
        raise PluginError(
            f"{hook}: expected a mapping of strings to strings, got {shown(answer)}; for example, "
            f"{EXAMPLES[hook]}"
        )
    return dict(answer)


def validate_routines(hook: str, answer: object) -> dict[tuple[str, DType], Any]:
    """Return a mapping of (op, dtype) to routines; None is an empty mapping.

    Raises: PluginError for anything else.
    """
    if answer is None:
        return {}
    if not isinstance(answer, Mapping) or not all(
        _is_routine_key(key) and callable(routine) for key, routine in answer.items()
    ):
        raise PluginError(
            f"{hook}: expected a mapping of (op, dtype) to functions, got {shown(answer)}; for "
            'example, return {("matmul", float32): routine}'
        )
    return dict(answer)


def validate_backend_info(answer: object) -> BackendInfo:
    """Return a valid result of `dovetail_backend_info`. Raises: PluginError for an invalid one."""
    if not isinstance(answer, BackendInfo):
        raise PluginError(f"dovetail_backend_info must return a BackendInfo, got {shown(answer)}")
    for name in ("type", "version", "summary"):
        _require(f"BackendInfo.{name}", getattr(answer, name), str, "text")
    match answer.minimum_interface:
        case (int(), int()) if type(answer.minimum_interface) is tuple:
            return answer
    interface = shown(answer.minimum_interface)
    raise PluginError(
        f"BackendInfo.minimum_interface must be two ints such as (1, 0), got {interface}"
    )


def validate_probe(type: str, answer: object) -> tuple[DeviceInfo, ...] | Unavailable:
    """Return a valid answer of `dovetail_probe`, as a tuple. Raises: PluginError if invalid.

    Names of devices are made printable.
    """
    if isinstance(answer, Unavailable):
        _require("Unavailable.reason", answer.reason, str, "text")
        _require("Unavailable.hint", answer.hint, str, "text")
        return answer
    if not isinstance(answer, Iterable) or isinstance(answer, str | bytes | Mapping):
        raise PluginError(
            "dovetail_probe must return a list of DeviceInfo, or Unavailable(reason, hint), got "
            f"{shown(answer)}"
        )
    devices = [_validate_device(type, d) for d in islice(answer, DEVICES_MAX + 1)]
    if len(devices) > DEVICES_MAX:
        raise PluginError(f"dovetail_probe must return at most {DEVICES_MAX:,} devices, got more")
    if not devices:
        raise PluginError(
            "dovetail_probe returned no device; return Unavailable(reason, hint) instead"
        )
    if len({d.index for d in devices}) != len(devices):
        raise PluginError(f"dovetail_probe: device indices must be distinct, got {shown(answer)}")
    return tuple(devices)


def _validate_device(type: str, info: object) -> DeviceInfo:
    """Return a valid DeviceInfo, its name made printable. Raises: PluginError if invalid."""
    if not isinstance(info, DeviceInfo) or info.type != type:
        answer = f"one of type {shown(info.type)}" if isinstance(info, DeviceInfo) else shown(info)
        raise PluginError(f"dovetail_probe must return DeviceInfo of type {type!r}, got {answer}")
    _require("DeviceInfo.index", info.index, Integral, "an integer of at least 0")
    device(f"{type}:{info.index}", "dovetail_probe")
    for name in ("name", "fingerprint"):
        _require(f"DeviceInfo.{name}", getattr(info, name), str, "text")
    _require("DeviceInfo.total_memory", info.total_memory, Integral, "a number of bytes")
    validate_texts("DeviceInfo.details", info.details)
    _require("DeviceInfo.capabilities", info.capabilities, Capabilities, "Capabilities")
    for f in fields(Capabilities):
        value, wanted = getattr(info.capabilities, f.name), _CAPABILITY_TYPES[f.name]
        _require(
            f"Capabilities.{f.name}",
            value,
            wanted,
            f"like {shown(getattr(_DEFAULT_CAPABILITIES, f.name))}",
        )
    name = "".join(c if c.isprintable() else REPLACEMENT for c in info.name)
    return info if name == info.name else replace(info, name=name)


def _require(subject: str, value: object, kind: Any, expected: str) -> None:
    """Raise PluginError, which names `subject`, unless the value is of this kind."""
    if not isinstance(value, kind):
        raise PluginError(f"{subject} must be {expected}, got {shown(value)}")


def _is_routine_key(key: object) -> bool:
    """Return True if a key is a pair of an op's name and a dtype."""
    match key:
        case (str(), DType()):
            return True
    return False


def find_signature_mismatches(backend: Backend) -> Iterator[str]:
    """Yield complaints about methods that do not accept the arguments of the core's calls."""
    for name, method in _public_attributes(type(backend)).items():
        interface_method = getattr(Backend, name, None)
        if not inspect.isfunction(method) or not inspect.isfunction(interface_method):
            continue
        parameters = inspect.signature(interface_method).parameters
        required_names = [n for n, p in parameters.items() if p.default is p.empty]
        for names in {
            len(required_names): required_names,
            len(parameters): list(parameters),
        }.values():
            try:
                inspect.signature(method).bind(*names)
            except TypeError as error:
                yield f"{name} must accept the core's call {name}({', '.join(names[1:])}): {error}"
                break


def find_misspelled_methods(backend: Backend) -> Iterator[str]:
    """Yield remarks about methods whose names resemble methods of `Backend` that are missing."""
    from difflib import get_close_matches  # 3 ms, not part of opening a device

    attributes = _public_attributes(type(backend))
    free = [n for n in dir(Backend) if not n.startswith("_") and n not in attributes]
    for name in attributes:
        near = (
            [] if hasattr(Backend, name) else get_close_matches(name, free, 1, NAME_SIMILARITY_MIN)
        )
        if near:
            yield f'the core never calls "{name}"; did you mean "{near[0]}"?'


def _public_attributes(backend_class: type) -> dict[str, object]:
    """Return the public attributes that a backend's class and its bases below `Backend` define."""
    classes: Sequence[type] = [
        c for c in backend_class.__mro__ if issubclass(c, Backend) and c is not Backend
    ]
    attributes: dict[str, object] = {}
    for c in reversed(classes):
        attributes |= {name: x for name, x in vars(c).items() if not name.startswith("_")}
    return attributes

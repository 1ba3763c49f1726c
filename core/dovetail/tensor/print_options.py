"""Print options: `set_printoptions`, and `printoptions` for a with-block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import settings
from ..argument_checks import choice, flag, integer, refused, shown
from ..errors import ArgumentError
from ..settings import Switch

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]

# None: the option of NumPy, as set by `np.set_printoptions`.
DEFAULTS: Mapping[str, Any] = {
    "precision": 4,
    "threshold": 1000,
    "edgeitems": 3,
    "linewidth": 88,
    "suppress": None,
    "sci_mode": None,
    "nanstr": None,
    "infstr": None,
    "sign": None,
    "floatmode": None,
    "formatter": None,
}
PROFILES: Mapping[str, Mapping[str, Any]] = {
    "default": DEFAULTS,
    "short": {**DEFAULTS, "precision": 2, "edgeitems": 2},
    "full": {**DEFAULTS, "threshold": 1 << 62},
}
FLOATMODES = ("fixed", "unique", "maxprec", "maxprec_equal")
_chosen: dict[str, Any] = {}


def current_options() -> dict[str, Any]:
    """Return the options in force: those of the process, overridden by the enclosing blocks."""
    return {**DEFAULTS, **_chosen, **settings.current().printing}


def set_printoptions(**options: object) -> None:
    """Set the options for printing tensors in this process; return nothing.

    `nanstr`, `infstr`, `sign` ("-", "+", " "), `floatmode` ("fixed", "unique", "maxprec",
    "maxprec_equal") and `formatter` are those of NumPy. `profile`, "default", "short" or "full", is
    applied before the others. None is the value of `np.set_printoptions`.

    - `options`: options by name: `precision` is the digits after the point (4), `threshold` the
      number of elements above which the middle is left out (1000), `edgeitems` those at either end
      of a long axis (3), `linewidth` the characters per line (88). `suppress` is True for no
      exponents, `sci_mode` True for exponents always and False for none.

    Raises: ArgumentError for another name or value, ArgumentTypeError.
    See also: `printoptions`, `get_printoptions`.
    Source: https://numpy.org/doc/stable/reference/generated/numpy.set_printoptions.html

    >>> import dovetail as dt
    >>> dt.set_printoptions(precision=2)
    >>> dt.asarray([3.14159, 2.71828], device="reference")
    tensor([3.14, 2.72], dtype=float32, device="reference")
    >>> dt.set_printoptions(profile="default")
    """
    new_options = _validate_options("set_printoptions", options)
    if options.get("profile") is not None:
        _chosen.clear()
    _chosen.update(new_options)


def get_printoptions() -> dict[str, object]:
    """Return the print options in force, as a dict of arguments for `set_printoptions`.

    >>> import dovetail as dt
    >>> dt.get_printoptions()["precision"]
    4
    """
    return current_options()


class printoptions(Switch):
    """A context, or a decorator, with other print options.

    It applies to this thread, or asyncio task, alone.

    - `options`: those of `set_printoptions`, by name.

    Raises: ArgumentError for another name or value, ArgumentTypeError.

    >>> import dovetail as dt
    >>> with dt.printoptions(precision=1, sci_mode=True):
    ...     print(dt.asarray([1234.5, 0.5]))
    [1.2e+03, 5.0e-01]
    """

    def __init__(self, **options: object) -> None:
        super().__init__(printing=_validate_options("printoptions", options))


def _validate_options(op: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the validated options, over those of a profile.

    Raises: ArgumentError for an unknown name or value, ArgumentTypeError for a value of another
    type.
    """
    profile = options.get("profile")
    validated: dict[str, Any] = {}
    if profile is not None:
        validated.update(PROFILES[choice(op, profile, "profile", [*PROFILES])])
    for name, value in options.items():
        if name != "profile":
            validated[name] = _validate_value(op, name, value)
    return validated


def _validate_value(op: str, name: str, value: Any) -> Any:
    """Return a valid value of a print option; raise an argument error that names `op` otherwise."""
    if name not in DEFAULTS:
        raise ArgumentError(
            f"{op}: unknown option {shown(name)}; "
            f"the options are {', '.join([*DEFAULTS, 'profile'])}"
        )
    if name in ("precision", "threshold", "edgeitems", "linewidth"):
        if value is None:
            return DEFAULTS[name]
        if name == "threshold" and value == float("inf"):
            return 1 << 62
        return integer(op, value, name, 1 if name in ("edgeitems", "linewidth") else 0, 1 << 62)
    if value is None:
        return None
    if name in ("suppress", "sci_mode"):
        return flag(op, value, name)
    if name == "sign":
        return choice(op, value, name, ("-", "+", " "))
    if name == "floatmode":
        return choice(op, value, name, FLOATMODES)
    if name == "formatter" and not isinstance(value, Mapping):
        raise refused(op, name, "a dict of functions, as in NumPy", value)
    if name in ("nanstr", "infstr") and not isinstance(value, str):
        raise refused(op, name, "a string", value)
    return value

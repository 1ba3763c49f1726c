"""Errors of constructors: parameters by the names of Keras, Flax, Optax and SciPy.

`Explained` is a base of layers, optimisers, schedules and distributions. If a call of a constructor
does not bind, the error says what to write. `explained_error` finds arguments of a wrong kind.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import dovetail as dt
from dovetail.extend import arguments

from .blame import explain_methods, explained_error, misfit, title

Constructor: TypeAlias = Callable[..., None]
Parameters: TypeAlias = Mapping[str, inspect.Parameter]

_PACKAGE = __name__.partition(".")[0] + "."
_LISTED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

_PAIRS = {  # ours: theirs
    "lr": "learning_rate",
    "eps": "epsilon",
    "weight_decay": "decay wd weight_decay_rate",
    "alpha": "decay rho",
    "step_size": "steps decay_steps transition_steps",
    "T_max": "steps decay_steps",
    "total_iters": "steps warmup_steps transition_steps",
    "gamma": "decay_rate",
    "bias": "use_bias with_bias",
    "p": "rate prob drop_rate dropout",
    "dim": "axis",
    "stride": "strides window_strides",
    "dilation": "dilation_rate kernel_dilation rate",
    "kernel_size": "pool_size kernel window_shape",
    "out_channels": "filters features output_channels",
    "in_channels": "input_channels",
    "out_features": "units features output_size output_dim output_features",
    "in_features": "input_dim input_size input_features",
    "hidden_size": "units features num_units",
    "input_size": "input_dim in_features",
    "num_embeddings": "input_dim vocab_size",
    "embedding_dim": "output_dim features",
    "embed_dim": "key_dim d_model qkv_features",
    "d_model": "embed_dim",
    "nhead": "num_heads",
    "negative_slope": "alpha",
    "affine": "use_scale scale center elementwise_affine",
    "elementwise_affine": "affine use_scale scale center",
    "normalized_shape": "shape num_features",
    "num_features": "features",
    "ignore_index": "ignore_label",
    "batch_size": "batch",
    "num_workers": "workers",
    "drop_last": "drop_remainder",
    "collate_fn": "collate",
    "loc": "mean mu",
    "scale": "std stddev sigma",
    "probs": "p prob probabilities",
    "rate": "lam lambda_ mu",
    "total_count": "n trials",
    "covariance_matrix": "cov covariance",
    "concentration": "shape alpha a",
    "concentration1": "alpha a",
    "concentration0": "beta b",
    "low": "minval min a",
    "high": "maxval max b",
}
OURS: dict[str, list[str]] = {}  # theirs: ours, of which a class has one
for _ours, _names in _PAIRS.items():
    for _name in _names.split():
        OURS.setdefault(_name, []).append(_ours)

NEEDED = {"params": "params are net.parameters()", "optimizer": "the optimiser comes first"}


class Explained:
    """Base of classes of this package: their constructors say what to write instead.

    A class whose arguments are used long after it was made sets `_checks_kinds`: its constructor
    compares them with their annotations before it runs.
    """

    _checks_kinds = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.startswith(_PACKAGE):
            explained(cls)


def explained(cls: type) -> None:
    """Make the constructor and the methods of a class name the argument that does not fit."""
    explain_methods(cls)
    if "__init__" not in cls.__dict__:
        return
    construct: Constructor = cls.__dict__["__init__"]

    @functools.wraps(construct)
    def __init__(self: Explained, /, *args: Any, **options: Any) -> None:
        try:
            reason: dt.DovetailError | None
            if self._checks_kinds:
                reason = misfit(title(type(self)), construct, (self, *args), options)
                if reason is not None:
                    raise reason
            return construct(self, *args, **options)
        except Exception as error:
            # the class that was called, unless it is the user's and has a constructor of its own
            ours = type(self).__module__.startswith(_PACKAGE)
            called = type(self) if ours or type(self).__init__ is __init__ else cls
            said = _wrong(construct, args, options) if type(error) is TypeError else None
            cause: Exception | None = None
            if said is not None:
                reason = dt.ArgumentTypeError(_explain(called, said, construct))
            else:
                reason = explained_error(error, title(called), construct, (self, *args), options)
                cause = error
            if reason is None:
                raise
        raise reason from cause

    cls.__init__ = __init__  # type: ignore[misc]  # of a class that is being made


Wrong: TypeAlias = tuple[str, str]  # what is wrong, and with which parameter


def _parameters(construct: Constructor) -> Parameters:
    _, *rest = inspect.signature(construct).parameters.items()
    return dict(rest)


def _wrong(construct: Constructor, args: tuple[Any, ...], options: dict[str, Any]) -> Wrong | None:
    """What is wrong with a call; None where it fits, so that the error is another one."""
    mine = _parameters(construct)
    kinds = {p.kind for p in mine.values()}
    by_place = [
        n for n, p in mine.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        for name in options:
            if name not in mine or mine[name].kind in _LISTED:
                return "unknown", name
    if len(args) > len(by_place) and inspect.Parameter.VAR_POSITIONAL not in kinds:
        return "many", f"takes {len(by_place)} by place, not {len(args)}"
    placed = by_place[: len(args)]
    for name in placed:
        if name in options:
            return "twice", name
    for name, p in mine.items():
        if p.default is p.empty and p.kind not in _LISTED and name not in (*placed, *options):
            return "missing", name
    return None


def _explain(cls: type, said: Wrong, construct: Constructor) -> str:
    kind, name = said
    name_of_class = title(cls)
    mine = _parameters(construct)
    if kind == "unknown":
        return f"{name_of_class}: has no parameter {name}; {_way(cls, name, mine)}"
    if kind == "twice":
        return f"{name_of_class}: {name} is given twice, by place and by name"
    if kind == "many":
        return f"{name_of_class}: {name}; it takes {_listed(mine)}"
    more = f"; {NEEDED[name]}" if name in NEEDED else ""
    return f"{name_of_class}: needs {name}{more}; it takes {_listed(mine)}"


def _way(cls: type, theirs: str, mine: Parameters) -> str:
    """Return what to write for a parameter that a class lacks."""
    ways = arguments.hints.tables()["parameters"]
    for kind in cls.__mro__:
        if found := ways.get(f"{kind.__name__}.{theirs}"):
            return found
    ours = next((name for name in OURS.get(theirs, ()) if name in mine), None)
    if ours is None and theirs in ways:
        return ways[theirs]
    bare = {name.replace("_", "").casefold(): name for name in mine}
    near = difflib.get_close_matches(theirs.replace("_", "").casefold(), bare, 1, 0.8)
    if ours is None and near:
        ours = bare[near[0]]
    return f"here it is {ours}=" if ours is not None else f"it takes {_listed(mine)}"


def _listed(mine: Parameters) -> str:
    said = [
        f"*{n}" if p.kind is p.VAR_POSITIONAL
        else f"**{n}" if p.kind is p.VAR_KEYWORD
        else n if p.default is p.empty
        else f"{n}="
        for n, p in mine.items()
        if not n.startswith("_")
    ]  # fmt: skip
    return ", ".join(said) or "nothing"

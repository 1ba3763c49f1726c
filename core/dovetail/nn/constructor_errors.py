"""Errors of constructors, with hints for the parameter names of Keras, Flax, Optax and SciPy.

`Explained` is a base class of layers, optimisers, schedules and distributions. If the arguments of
a constructor do not bind, its error says what to write. `explain_error` checks argument types.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import dovetail as dt
from dovetail.extend import arguments, hide_internal_frames

from .call_errors import argument_error, explain_error, explain_methods, title

Constructor: TypeAlias = Callable[..., None]
Parameters: TypeAlias = Mapping[str, inspect.Parameter]

_PACKAGE = __name__.partition(".")[0] + "."
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

_SYNONYMS = {  # ours: theirs
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
PARAMETERS_BY_SYNONYM: dict[
    str, list[str]
] = {}  # another library's name: our names, one of which a class may have
for _ours, _names in _SYNONYMS.items():
    for _name in _names.split():
        PARAMETERS_BY_SYNONYM.setdefault(_name, []).append(_ours)

REQUIRED_HINTS = {"params": "pass net.parameters()", "optimizer": "pass the optimizer first"}


class Explained:
    """A base class whose constructors and methods explain errors in their arguments.

    A class that uses arguments long after its construction sets `_checks_annotations`: its
    constructor then compares the arguments with their annotations before it runs.
    """

    _checks_annotations = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.startswith(_PACKAGE):
            explain_class(cls)


def explain_class(cls: type) -> None:
    """Wrap a class's own constructor and public methods but `forward`: errors name the argument."""
    explain_methods(cls)
    if "__init__" not in cls.__dict__:
        return
    construct: Constructor = cls.__dict__["__init__"]

    @functools.wraps(construct)
    def __init__(self: Explained, /, *args: Any, **options: Any) -> None:
        try:
            reason: dt.DovetailError | None
            if self._checks_annotations:
                reason = argument_error(title(type(self)), construct, (self, *args), options)
                if reason is not None:
                    raise reason
            return construct(self, *args, **options)
        except Exception as error:
            # the class that was called, unless it is the user's and has a constructor of its own
            ours = type(self).__module__.startswith(_PACKAGE)
            called = type(self) if ours or type(self).__init__ is __init__ else cls
            problem = None
            if type(error) is TypeError:
                problem = _find_problem(construct, args, options)
            cause: Exception | None = None
            if problem is not None:
                reason = dt.ArgumentTypeError(_format_problem(called, problem, construct))
            else:
                reason = explain_error(error, title(called), construct, (self, *args), options)
                cause = error
            hide_internal_frames(error)
            if reason is None:
                raise
        try:
            raise reason from cause
        except dt.DovetailError as error:
            hide_internal_frames(error)
            raise

    cls.__init__ = __init__  # type: ignore[misc]  # mypy does not allow assignment to a method


Problem: TypeAlias = tuple[str, str]  # its kind, and the parameter's name or a text


def _parameters(construct: Constructor) -> Parameters:
    """Return the parameters of a constructor by name, without `self`."""
    _, *parameters = inspect.signature(construct).parameters.items()
    return dict(parameters)


def _find_problem(
    construct: Constructor, args: tuple[Any, ...], options: dict[str, Any]
) -> Problem | None:
    """Return the reason for which arguments do not bind, or None if they bind."""
    parameters = _parameters(construct)
    kinds = {p.kind for p in parameters.values()}
    positional = [
        n for n, p in parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        for name in options:
            if name not in parameters or parameters[name].kind in _VARIADIC:
                return "unknown", name
    if len(args) > len(positional) and inspect.Parameter.VAR_POSITIONAL not in kinds:
        return "many", f"takes at most {len(positional)} positional arguments, got {len(args)}"
    bound = positional[: len(args)]
    for name in bound:
        if name in options:
            return "twice", name
    for name, p in parameters.items():
        if p.default is p.empty and p.kind not in _VARIADIC and name not in (*bound, *options):
            return "missing", name
    return None


def _format_problem(cls: type, problem: Problem, construct: Constructor) -> str:
    """Return the error text for arguments that do not bind."""
    kind, name = problem
    name_of_class = title(cls)
    parameters = _parameters(construct)
    if kind == "unknown":
        hint = _unknown_parameter_hint(cls, name, parameters)
        return f"{name_of_class}: has no parameter {name}; {hint}"
    if kind == "twice":
        return f"{name_of_class}: {name} is given twice, by position and by name"
    if kind == "many":
        return f"{name_of_class}: {name}; it takes {_format_parameters(parameters)}"
    hint = f"; {REQUIRED_HINTS[name]}" if name in REQUIRED_HINTS else ""
    return f"{name_of_class}: needs {name}{hint}; it takes {_format_parameters(parameters)}"


def _unknown_parameter_hint(cls: type, unknown: str, parameters: Parameters) -> str:
    """Return what to write for a parameter that a class lacks."""
    hints = arguments.hints.tables()["parameters"]
    for kind in cls.__mro__:
        if hint := hints.get(f"{kind.__name__}.{unknown}"):
            return hint
    replacement = next(
        (name for name in PARAMETERS_BY_SYNONYM.get(unknown, ()) if name in parameters), None
    )
    if replacement is None and unknown in hints:
        return hints[unknown]
    bare = {name.replace("_", "").casefold(): name for name in parameters}
    near = difflib.get_close_matches(unknown.replace("_", "").casefold(), bare, 1, 0.8)
    if replacement is None and near:
        replacement = bare[near[0]]
    return (
        f"use {replacement}="
        if replacement is not None
        else f"it takes {_format_parameters(parameters)}"
    )


def _format_parameters(parameters: Parameters) -> str:
    """Return the parameters as in a call: "in_features, out_features, bias="."""
    texts = [
        f"*{n}"
        if p.kind is p.VAR_POSITIONAL
        else f"**{n}"
        if p.kind is p.VAR_KEYWORD
        else n
        if p.default is p.empty
        else f"{n}="
        for n, p in parameters.items()
        if not n.startswith("_")
    ]
    return ", ".join(texts) or "nothing"

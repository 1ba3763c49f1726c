"""The Kullback-Leibler divergence, dispatched by a pair of classes to a registered function."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import TypeAlias, TypeVar

import dovetail as dt
from dovetail.extend import publish_all

from .distribution import Distribution, Tensor
from .half_rounding import in_float32

__all__ = ["kl_divergence", "register_kl"]

Rule: TypeAlias = "Callable[..., Tensor]"
R = TypeVar("R", bound=Rule)

_RULES: dict[tuple[type, type], Rule] = {}


def register_kl(type_p: type[Distribution], type_q: type[Distribution]) -> Callable[[R], R]:
    """Return a decorator that registers a function (p, q) for the divergence of two classes.

    - `type_p`, `type_q`: classes of distributions; a subclass uses the function that is registered
      for the nearest of its bases.

    Raises: ArgumentTypeError unless both are classes of distributions.
    See also: `kl_divergence`.

    >>> import dovetail as dt
    >>> class Mine(dt.distributions.Normal):
    ...     pass
    >>> @dt.distributions.register_kl(Mine, Mine)
    ... def mine(p, q):
    ...     return p.loc * 0
    >>> p = Mine(dt.zeros(1), 1.0)
    >>> dt.distributions.kl_divergence(p, p).tolist()
    [0.0]
    """
    for kind in (type_p, type_q):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise dt.ArgumentTypeError(
                f"register_kl: expected a subclass of Distribution, got {kind!r}"
            )

    def add(rule: R) -> R:
        """Store the rule for both classes, drop all resolved pairs, and return the rule."""
        _RULES[type_p, type_q] = rule
        _resolve_rule.cache_clear()
        return rule

    return add


@cache
def _resolve_rule(p: type, q: type) -> Rule | None:
    """Return the rule of the nearest bases, or None; warn if those of p and q have two rules."""
    fits = [(a, b) for a, b in _RULES if issubclass(p, a) and issubclass(q, b)]
    if not fits:
        return None
    steps = {(a, b): (p.__mro__.index(a), q.__mro__.index(b)) for a, b in fits}
    by_p = min(fits, key=lambda pair: steps[pair])
    by_q = min(fits, key=lambda pair: steps[pair][::-1])
    if _RULES[by_p] is not _RULES[by_q]:
        warnings.warn(
            f"kl_divergence({p.__name__}, {q.__name__}) is ambiguous; use register_kl("
            f"{by_p[0].__name__}, {by_q[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _RULES[by_p]


@in_float32
def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the divergence of q from p: the mean under p of log(p(x) / q(x)), in nats.

    - `p`, `q`: distributions of classes for which there is a rule.

    Shapes: that of the batch, to which both broadcast.
    Raises: UnsupportedError for a pair of classes without a rule; see `register_kl`.
    See also: `register_kl`, `dt.nn.functional.kl_div`.

    >>> import dovetail as dt
    >>> D = dt.distributions
    >>> zero = dt.zeros(1)
    >>> D.kl_divergence(D.Normal(zero, 1.0), D.Normal(zero + 1.0, 1.0)).tolist()
    [0.5]
    """
    pair: tuple[type, type] = type(p), type(q)
    rule = _resolve_rule(*pair)
    if rule is None:
        raise dt.UnsupportedError(
            f"kl_divergence: dovetail has no rule for {pair[0].__name__} and {pair[1].__name__}; "
            "add one with register_kl, or use the mean of p.log_prob(x) - q.log_prob(x) over "
            "samples of p"
        )
    return rule(p, q)


publish_all(globals())


def __dir__() -> list[str]:
    return __all__

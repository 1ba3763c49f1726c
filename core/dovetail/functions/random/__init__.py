"""Random numbers: `dt.random` gives the same numbers for the same seed on every device.

A `Generator` is a seed and an offset into its stream, which is Philox4x32-10. Each element has a
fixed position in the stream, for every device, shape and number of threads. A draw advances the
offset by the number of elements. Its result is a pending tensor like any other, and fuses with its
consumers.
"""

from typing import TYPE_CHECKING

from ...lazy_import import late
from ...public_names import publish_all
from .generator import (
    LAZY_FUNCTIONS,
    Generator,
    default_rng,
    get_state,
    integers,
    manual_seed,
    normal,
    permutation,
    set_state,
    uniform,
)

__all__ = [
    "Generator",
    "default_rng",
    "get_state",
    "integers",
    "manual_seed",
    "normal",
    "permutation",
    "set_state",
    "uniform",
]
__all__ += LAZY_FUNCTIONS


def __dir__() -> list[str]:
    return [*__all__]


if TYPE_CHECKING:
    from .discrete_samplers import binomial as binomial
    from .discrete_samplers import categorical as categorical
    from .discrete_samplers import multinomial as multinomial
    from .discrete_samplers import poisson as poisson
    from .samplers import bernoulli as bernoulli
    from .samplers import beta as beta
    from .samplers import choice as choice
    from .samplers import dirichlet as dirichlet
    from .samplers import exponential as exponential
    from .samplers import gamma as gamma
    from .samplers import laplace as laplace
    from .samplers import rand as rand
    from .samplers import rand_like as rand_like
    from .samplers import randint as randint
    from .samplers import randn as randn
    from .samplers import randn_like as randn_like
    from .samplers import shuffle as shuffle
    from .samplers import truncated_normal as truncated_normal

    __all__ += ["bernoulli", "beta", "binomial", "choice", "dirichlet", "exponential", "gamma"]
    __all__ += ["laplace", "multinomial", "poisson", "rand", "randint", "randn", "shuffle"]
    __all__ += ["truncated_normal"]
else:
    __getattr__ = late(__name__, LAZY_FUNCTIONS)
    publish_all(globals())

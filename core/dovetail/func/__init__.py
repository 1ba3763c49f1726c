"""Transformations of functions, as in JAX and `torch.func`. Most used: `vmap`, `grad`.

Each takes a function and returns one: `dt.func.grad(f)` where `dt.grad` takes tensors. `dt.vmap` is
here, too. See docs/transforms.md.
"""

from typing import TYPE_CHECKING

from ..lazy_import import late

if TYPE_CHECKING:
    from .derivatives import grad, hessian, jacfwd, jacrev, jvp, linearize, value_and_grad, vjp
    from .vectorize import vmap
else:
    __getattr__ = late(
        __name__,
        {
            **dict.fromkeys(
                (
                    "grad",
                    "hessian",
                    "jacfwd",
                    "jacrev",
                    "jvp",
                    "linearize",
                    "value_and_grad",
                    "vjp",
                ),
                "derivatives",
            ),
            "vmap": "vectorize",
        },
    )

__all__ = [
    "grad",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "value_and_grad",
    "vjp",
    "vmap",
]


def __dir__() -> list[str]:
    return __all__

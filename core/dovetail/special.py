"""Special functions under the names of `torch.special`: synonyms of functions of `dt`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .functions.elementwise.op_functions import (
    digamma,
    erf,
    erfc,
    erfinv,
    exp2,
    expm1,
    i0,
    i1,
    log1p,
    log_softmax,
    logit,
    ndtr,
    ndtri,
    round,
    sinc,
    softmax,
    xlogy,
    zeta,
)
from .functions.elementwise.op_functions import digamma as psi
from .functions.elementwise.op_functions import i0 as modified_bessel_i0
from .functions.elementwise.op_functions import i1 as modified_bessel_i1
from .functions.elementwise.op_functions import lgamma as gammaln
from .functions.elementwise.special_functions import expit, polygamma
from .functions.reductions.statistics import logsumexp
from .lazy_import import late

__all__ = [
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammaln",
    "i0",
    "i1",
    "log1p",
    "log_softmax",
    "logit",
    "logsumexp",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "sinc",
    "softmax",
    "xlogy",
    "zeta",
]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    __getattr__ = late(__name__, {})  # the hints for other names

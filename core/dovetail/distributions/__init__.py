"""Distributions: PyTorch's names, arguments and defaults."""

from typing import TYPE_CHECKING

from dovetail.extend import publish_all

from ..nn.call_errors import explain_all
from ..nn.missing_names import make_module_getattr
from . import (
    categories,
    composed,
    constraints,
    discrete,
    distribution,
    kl,
    kl_cross,
    kl_same,
    location_scale,
    multivariate,
    normals,
    positive,
    registry,
    simplex,
    transformed,
    transforms,
)
from .categories import *
from .composed import *
from .discrete import *
from .distribution import *
from .kl import *
from .location_scale import *
from .multivariate import *
from .normals import *
from .positive import *
from .registry import *
from .simplex import *
from .transformed import *
from .transforms import *

__all__: list[str] = ["constraints", "kl", "transforms"]
__all__ += categories.__all__
__all__ += composed.__all__
__all__ += discrete.__all__
__all__ += distribution.__all__
__all__ += kl.__all__
__all__ += kl_same.__all__
__all__ += kl_cross.__all__
__all__ += location_scale.__all__
__all__ += multivariate.__all__
__all__ += normals.__all__
__all__ += positive.__all__
__all__ += registry.__all__
__all__ += simplex.__all__
__all__ += transformed.__all__
__all__ += transforms.__all__

explain_all(globals(), __all__)
publish_all(globals())


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    __getattr__ = make_module_getattr("distributions")

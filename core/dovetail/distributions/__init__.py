"""Distributions: PyTorch's names, arguments and defaults."""

from typing import TYPE_CHECKING

from ..nn.blame import explain_all
from ..nn.missing_names import refused
from . import (
    categories,
    composed,
    constraints,
    counts,
    distribution,
    kl,
    kl_alike,
    kl_unlike,
    locations,
    multivariate,
    normals,
    positives,
    registry,
    shares,
    transformed,
    transforms,
)
from .categories import *
from .composed import *
from .counts import *
from .distribution import *
from .kl import *
from .locations import *
from .multivariate import *
from .normals import *
from .positives import *
from .registry import *
from .shares import *
from .transformed import *
from .transforms import *

__all__: list[str] = ["constraints", "kl", "transforms"]
__all__ += categories.__all__
__all__ += composed.__all__
__all__ += counts.__all__
__all__ += distribution.__all__
__all__ += kl.__all__
__all__ += kl_alike.__all__
__all__ += kl_unlike.__all__
__all__ += locations.__all__
__all__ += multivariate.__all__
__all__ += normals.__all__
__all__ += positives.__all__
__all__ += registry.__all__
__all__ += shares.__all__
__all__ += transformed.__all__
__all__ += transforms.__all__

explain_all(globals(), __all__)

if not TYPE_CHECKING:
    __getattr__ = refused("distributions")

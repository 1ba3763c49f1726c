"""Distributions: PyTorch's names, arguments and defaults."""

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

__all__ = [
    "constraints", "kl", "transforms",
    *categories.__all__, *composed.__all__, *counts.__all__, *distribution.__all__, *kl.__all__,
    *kl_alike.__all__, *kl_unlike.__all__, *locations.__all__, *multivariate.__all__,
    *normals.__all__, *positives.__all__, *registry.__all__, *shares.__all__,
    *transformed.__all__, *transforms.__all__,
]  # fmt: skip

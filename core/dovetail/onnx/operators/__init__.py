"""ONNX operators: the table, and the families whose functions are in it."""

from . import (
    control,
    convolutions,
    elementwise,
    images,
    indexing,
    matmul,
    normalisation,
    pooling,
    quantisation,
    random,
    recurrent,
    reductions,
    shapes,
    signal,
    training,
)
from .table import FOLDED_ELEMENTS_MAX, ROWS, Call, Function, row, row_of

__all__ = [
    "FOLDED_ELEMENTS_MAX",
    "ROWS",
    "Call",
    "Function",
    "control",
    "convolutions",
    "elementwise",
    "images",
    "indexing",
    "matmul",
    "normalisation",
    "pooling",
    "quantisation",
    "random",
    "recurrent",
    "reductions",
    "row",
    "row_of",
    "shapes",
    "signal",
    "training",
]

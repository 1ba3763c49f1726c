"""Calls of the functions of `dt.nn.functional`: arguments by name, and arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray
_rng = np.random.default_rng(0)


class Case(NamedTuple):
    """A call: arrays first, then arguments by name; arrays among these have no gradient."""

    name: str
    arrays: tuple[Array, ...]
    options: Mapping[str, Any] = {}

    def __str__(self) -> str:
        said = [
            f"{k}={v if not isinstance(v, Array) else 'given'}" for k, v in self.options.items()
        ]
        shapes = ["x".join(map(str, a.shape)) for a in self.arrays]
        return f"{self.name}({', '.join([*shapes, *said])})"


def normal(*shape: int, scale: float = 1.0) -> Array:
    return _rng.standard_normal(shape) * scale


X = normal(4, 6, scale=4.0)
Y, WEIGHTS = normal(4, 6), _rng.random(6) + 0.1
PARTS = 1 / (1 + np.exp(-X))
SHARES = np.exp(Y) / np.exp(Y).sum(1, keepdims=True)
# confident and right, confident and wrong, uncertain
EDGES = np.array([0.0, 1.0, 0.0, 1e-9, 1 - 1e-9, 0.5, 1.0])
SIGNS, COUNTS = np.sign(Y), 9 * SHARES
IMAGES, CLASSES = normal(2, 6, 3, 2), _rng.integers(0, 6, (2, 3, 2))
TARGET = np.array([0, 5, 2, 3])
TABLE, ROWS = normal(7, 3), np.array([[1, 2, 2], [6, 0, 1]])
FLAT, OFFSETS = np.array([1, 2, 2, 6, 0, 1]), np.array([0, 3, 3, 4])
REDUCTIONS = ("mean", "sum", "none")

_ELEMENTWISE: dict[str, list[dict[str, Any]]] = {
    "celu": [{}, {"alpha": 0.5}],
    "elu": [{}, {"alpha": 2.0}],
    "gelu": [{}, {"approximate": "tanh"}],
    "glu": [{}, {"dim": 0}],
    "hardshrink": [{}, {"lambd": 2.0}],
    "hardsigmoid": [{}],
    "hardswish": [{}],
    "hardtanh": [{}, {"min_val": -2.0, "max_val": 1.5}],
    "leaky_relu": [{}, {"negative_slope": 0.2}],
    "log_softmax": [{"dim": 0}, {"dim": -1}],
    "logsigmoid": [{}],
    "mish": [{}],
    "normalize": [{}, {"p": 3.0, "dim": 0}, {"p": 1}, {"p": float("inf")}],
    "relu": [{}],
    "relu6": [{}],
    "rrelu": [{}],
    "selu": [{}],
    "sigmoid": [{}],
    "silu": [{}],
    "softmax": [{"dim": 1}, {"dim": 0}],
    "softmin": [{"dim": -1}],
    "softplus": [{}, {"beta": 2, "threshold": 3}],
    "softshrink": [{}, {"lambd": 0.0}],
    "softsign": [{}],
    "tanh": [{}],
    "tanhshrink": [{}],
    "threshold": [{"threshold": 0.3, "value": 2.0}],
}
ACTIVATIONS = [Case(name, (X,), o) for name, every in _ELEMENTWISE.items() for o in every]
ACTIVATIONS += [
    Case("prelu", (X, np.array([0.3]))),
    Case("prelu", (X, WEIGHTS)),
    Case("cosine_similarity", (X, Y)),
    Case("cosine_similarity", (X, Y), {"dim": 0}),
    Case("pairwise_distance", (X, Y)),
    Case("pairwise_distance", (X, Y), {"p": 1.0, "keepdim": True}),
    Case("linear", (X, normal(3, 6), normal(3))),
    Case("linear", (IMAGES, normal(3, 2))),
    Case("bilinear", (X, Y[:, :2].copy(), normal(3, 6, 2), normal(3))),
]

NORMALIZATION = [
    Case("layer_norm", (IMAGES, normal(2), normal(2)), {"normalized_shape": (2,)}),
    Case("layer_norm", (IMAGES, normal(3, 2), normal(3, 2)), {"normalized_shape": (3, 2)}),
    Case("layer_norm", (IMAGES,), {"normalized_shape": (2,), "eps": 0.5}),
    Case("rms_norm", (IMAGES, normal(3, 2)), {"normalized_shape": (3, 2)}),
    Case("rms_norm", (X,), {"normalized_shape": (6,), "eps": 0.1}),
    *[Case("group_norm", (IMAGES, WEIGHTS, normal(6)), {"num_groups": g}) for g in (1, 3, 6)],
    Case("group_norm", (X,), {"num_groups": 2}),
    *[
        Case("local_response_norm", (IMAGES,), {"size": n, "alpha": 0.5, "beta": 0.6, "k": 2.0})
        for n in (1, 2, 5)
    ],
]


def _losses(reduction: str) -> list[Case]:
    r = {"reduction": reduction}
    by_weight = {**r, "weight": WEIGHTS}
    found = [Case(n, (X, Y), r) for n in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")]
    found += [
        Case(n, (X, Y), {**r, "weight": PARTS}) for n in ("mse_loss", "l1_loss", "huber_loss")
    ]
    for smooth in (0.0, 0.1):
        o = {"label_smoothing": smooth}
        found += [Case("cross_entropy", (X, TARGET), {**w, **o}) for w in (r, by_weight)]
        found += [Case("cross_entropy", (X, TARGET), {**by_weight, **o, "ignore_index": 5})]
        found += [Case("cross_entropy", (X, SHARES), {**w, **o}) for w in (r, by_weight)]
        found += [Case("cross_entropy", (IMAGES, CLASSES), {**by_weight, **o})]
    found += [
        Case("cross_entropy", (X[1], TARGET[1:2].reshape(())), r),
        Case("cross_entropy", (X, TARGET), {**r, "ignore_index": 0}),
        Case("nll_loss", (X, TARGET), by_weight),
        Case("nll_loss", (IMAGES, CLASSES), {**r, "ignore_index": 2}),
        Case("smooth_l1_loss", (X, Y), {**r, "beta": 0.3}),
        Case("huber_loss", (X, Y), {**r, "delta": 0.3}),
        Case("binary_cross_entropy", (PARTS,), {**r, "target": SHARES, "weight": WEIGHTS}),
        Case("binary_cross_entropy", (EDGES,), {**r, "target": 1 - EDGES[::-1]}),
        Case("binary_cross_entropy_with_logits", (X,), {**r, "target": SHARES}),
        Case(
            "binary_cross_entropy_with_logits", (X,),
            {**r, "target": SHARES, "weight": PARTS, "pos_weight": WEIGHTS},
        ),
        Case("kl_div", (np.log(PARTS), SHARES), r),
        Case("kl_div", (np.log(PARTS), np.log(SHARES)), {**r, "log_target": True}),
        *[
            Case("poisson_nll_loss", (PARTS,), {**r, "target": COUNTS, "log_input": a, "full": f})
            for a in (False, True) for f in (False, True)
        ],
        Case("gaussian_nll_loss", (X, Y, PARTS), r),
        Case("gaussian_nll_loss", (X, Y, PARTS[:, 0].copy()), {**r, "full": True}),
        Case("gaussian_nll_loss", (X, Y, PARTS[:, :1].copy()), {**r, "eps": 0.5}),
        Case("hinge_embedding_loss", (X,), {**r, "target": SIGNS}),
        Case("soft_margin_loss", (X,), {**r, "target": SIGNS}),
        Case("margin_ranking_loss", (X, Y), {**r, "target": SIGNS, "margin": 0.3}),
        *[Case("triplet_margin_loss", (X, Y, PARTS), {**r, "swap": s}) for s in (False, True)],
        Case("triplet_margin_loss", (X, Y, PARTS), {**r, "p": 1.0, "margin": 5.0}),
        Case("triplet_margin_with_distance_loss", (X, Y, PARTS), {**r, "margin": 2.0}),
        Case("cosine_embedding_loss", (Y, X), {**r, "target": np.array([1, -1, -1, 1])}),
        *[Case("multi_margin_loss", (X, TARGET), {**by_weight, "p": p}) for p in (1, 2)],
        Case("multilabel_margin_loss", (X, np.array(
            [[0, 3, -1, 2, 1, 1], [1, -1, 0, 0, 0, 0], [-1] * 6, [5, 4, 3, 2, 1, 0]]
        )), r),
        Case("multilabel_soft_margin_loss", (X,), {**by_weight, "target": SHARES}),
    ]  # fmt: skip
    return found


LOSSES = [case for reduction in REDUCTIONS for case in _losses(reduction)]
LOSSES += [Case("kl_div", (np.log(PARTS), SHARES), {"reduction": "batchmean"})]


def _tables() -> list[Case]:
    kinds: list[dict[str, Any]] = [
        {}, {"padding_idx": 2}, {"padding_idx": -1}, {"scale_grad_by_freq": True}, {"sparse": True},
        {"sparse": True, "padding_idx": 1},
    ]  # fmt: skip
    found = [Case("embedding", (TABLE,), {"input": ROWS, **o}) for o in kinds]
    for mode in ("sum", "mean", "max"):
        of_mode: list[dict[str, Any]] = [{"mode": mode}, {"mode": mode, "padding_idx": 2}]
        if mode != "max":
            of_mode += [{"mode": mode, "sparse": True}]
        found += [Case("embedding_bag", (TABLE,), {"input": ROWS, **o}) for o in of_mode]
        flat = {"input": FLAT, "offsets": OFFSETS}
        found += [Case("embedding_bag", (TABLE,), {**flat, **o}) for o in of_mode]
        ends = {"offsets": np.array([0, 3, 3, 4, 6]), "include_last_offset": True}
        found += [Case("embedding_bag", (TABLE,), {"input": FLAT, **ends, "mode": mode})]
    return found


TABLES = _tables()
EVERY = [*ACTIVATIONS, *NORMALIZATION, *LOSSES, *TABLES]

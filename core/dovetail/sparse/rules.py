"""Registration of the sparse layouts' rules and of their text and HTML representations.

The verbs that a rule can have are listed in `dovetail.layouts`.
"""

from __future__ import annotations

from typing import Any

import dovetail as dt

from . import (
    compressed_rules,
    elementwise,
    flattening,
    reductions,
    selection,
    show,
    sparse_products,
    view_rules,
)
from .blocks import BSR
from .compressed import CSC, CSR
from .construct import to_dense
from .tensor import COO, coo


def to_device(x: COO, device: dt.Device) -> COO:
    """Return the tensor with its positions and values copied to another device."""
    p = x.pattern
    coords = [r.to(device=device) for r in p.coords]
    moved = type(p)(
        coords, p.shape, p.count, device, unsorted_dims=p.unsorted_dims, unique=p.unique
    )
    return coo(moved, x.values().to(device=device))


def install() -> None:
    """Set the rules, the flattening and the representations of the layout classes."""
    rule_of: dict[str, Any] = {
        "apply": elementwise.elementwise,
        "softmax": elementwise.softmax,
        "log_softmax": elementwise.log_softmax,
        "reduce": reductions.reduction,
        "view": view_rules.view,
        "index": view_rules.index,
        "concat": view_rules.concat,
        "diagonal": view_rules.diagonal,
        "matmul": sparse_products.matmul,
        "kron": sparse_products.kron,
        "triangle": selection.triangle,
        "nonzero": selection.nonzero,
        "sort": selection.sort,
        "variance": reductions.variance,
        "to_device": to_device,
    }
    COO.rules = {
        verb: compressed_rules.accept_all_layouts(rule) for verb, rule in rule_of.items()
    } | {"to_dense": to_dense}
    CSR.rules = CSC.rules = BSR.rules = compressed_rules.rules(rule_of)
    flattening.install()
    for kind in (COO, CSR, CSC, BSR):
        representations = {
            "__repr__": show.represent,
            "__str__": show.represent,
            "_repr_html_": show.html,
        }
        for name, rule in representations.items():
            setattr(kind, name, rule)

"""What this layout says of each verb (see `dovetail.layouts`), and how its tensors look."""

from __future__ import annotations

import dovetail as dt

from . import elementwise, moves, products, reductions, show
from .construct import to_dense
from .tensor import COO, coo


def to_device(x: COO, device: dt.Device) -> COO:
    """The same entries on another device."""
    p = x.pattern
    coords = [r.to(device=device) for r in p.coords]
    moved = type(p)(
        coords, p.shape, p.count, device, unsorted_dims=p.unsorted_dims, unique=p.unique
    )
    return coo(moved, x.values().to(device=device))


def install() -> None:
    """Gives the tensors of this layout their rules."""
    COO.rules = {
        "apply": elementwise.elementwise,
        "softmax": elementwise.softmax,
        "log_softmax": elementwise.log_softmax,
        "reduce": reductions.reduction,
        "view": moves.view,
        "index": moves.index,
        "concat": moves.concat,
        "diagonal": moves.diagonal,
        "matmul": products.matmul,
        "to_device": to_device,
        "to_dense": to_dense,
    }
    for _name, _rule in {"__repr__": show.represent, "__str__": show.represent,
                         "_repr_html_": show.html}.items():  # fmt: skip
        setattr(COO, _name, _rule)

"""What this layout says of each verb (see `dovetail.layouts`)."""

from __future__ import annotations

from .construct import to_dense
from .tensor import COO

COO.rules = {"to_dense": to_dense}

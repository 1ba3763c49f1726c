"""Plugin of the layout CSR."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.extend import LayoutInfo, hookimpl, sparse_csr

from .compressed import to_sparse_csr
from .xfails import gaps


@hookimpl
def dovetail_layout_info() -> LayoutInfo:
    """Describe CSR; `plugin` adds its functions and methods, with those of COO."""
    return LayoutInfo(sparse_csr, from_dense=to_sparse_csr, keeps=LayoutInfo.keeps | {"diagonal"})


@hookimpl
def dovetail_conformance() -> Mapping[str, str]:
    """Return the declared gaps, for the layout kit."""
    return gaps()

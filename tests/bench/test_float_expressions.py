"""The count of wrong float expressions: none where kernels are legalised, some where not."""

from __future__ import annotations

from dataclasses import replace

import dovetail as dt
import pytest
from float_expressions import EXACT, EXPRESSIONS, count_wrong, operands

pytest.importorskip("dovetail_cpu_llvm")
from flushing_cpu import FlushingCpu
from partial_devices import installed

FLUSHED = "a + 0.0", "1 / sqrt(a)", "a < b ? a : b"


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_legalised_expression_is_right_where_plain_one_is_not(name: str) -> None:
    with installed(FlushingCpu) as (device,):
        backend = dt.plugins.open_device(device).backend
        can = backend.info.capabilities
        assert count_wrong(backend, name, operands(), can) == 0
        if name in FLUSHED:
            assert count_wrong(backend, name, operands(), replace(can, **EXACT)) > 100

"""Verification of the IR after every stage, while tests run.

Every kernel, from the builder that the planner uses or from a pass, is checked by `verify`; so are
the planner's decisions, after every pass of `fusion.passes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest

from ..fusion import passes
from ..fusion.decisions import Decisions
from ..fusion.verify import verify as verify_decisions
from ..ir import builder as kernel
from ..ir.verify import verify

STAGES = (kernel,)  # the modules that make kernels: the builder, and `Kernel.with_body` in passes
NAME, kernel_class = "Kernel", kernel.Kernel
counts = dict.fromkeys((stage.__name__ for stage in STAGES), 0)  # of kernels verified


@contextmanager
def verify_stages() -> Iterator[None]:
    """Replace the Kernel class of each stage by one that verifies; restore it on exit."""
    before = [getattr(stage, NAME) for stage in STAGES]
    for stage in STAGES:
        setattr(stage, NAME, _verify_after(stage.__name__))
    try:
        yield
    finally:
        for stage, original in zip(STAGES, before, strict=True):
            setattr(stage, NAME, original)


def _verify_after(stage: str) -> Any:
    """Return a factory of kernels that verifies each and counts it under `stage`."""

    def make(*args: Any, **options: Any) -> kernel.Kernel:
        """Build, verify and count a kernel."""
        built = kernel_class(*args, **options)
        verify(built)
        counts[stage] += 1
        return built

    return make


@contextmanager
def verify_passes() -> Iterator[None]:
    """Replace the passes of fusion by ones that verify their decisions; restore them on exit."""
    before = passes.PASSES
    passes.PASSES = tuple(map(_verify_after_pass, before))
    try:
        yield
    finally:
        passes.PASSES = before


def _verify_after_pass(run: Callable[[Decisions], None]) -> Callable[[Decisions], None]:
    """Wrap a fusion pass so that its decisions are verified, unless targets overlap."""

    @wraps(run)
    def run_and_verify(d: Decisions) -> None:
        """Run the pass, then verify unless targets overlap."""
        run(d)
        if not d.target_overlaps:
            verify_decisions(d, run.__name__)

    return run_and_verify


@pytest.fixture(autouse=True)
def verified_kernels() -> Iterator[None]:
    """Verify all kernels and fusion decisions while a test runs."""
    with verify_stages(), verify_passes():
        yield

"""The IR is verified after every stage, as long as tests run: whatever makes a kernel, the builder
that the planner uses or a pass, makes one that `verify` has seen. So are the planner's decisions,
after every pass of `fusion.passes`.
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
from ..loops import builder as kernel
from ..loops.verify import verify

STAGES = (kernel,)  # where kernels are made: by the builder, and by `Kernel.with_body` in passes
NAME, kernel_class = "Kernel", kernel.Kernel
counts = dict.fromkeys((stage.__name__ for stage in STAGES), 0)  # of kernels verified


@contextmanager
def every_stage() -> Iterator[None]:
    """Within it no stage lets a kernel through that breaks a rule of the loop language."""
    before = [getattr(stage, NAME) for stage in STAGES]
    for stage in STAGES:
        setattr(stage, NAME, _verified(stage.__name__))
    try:
        yield
    finally:
        for stage, made in zip(STAGES, before, strict=True):
            setattr(stage, NAME, made)


def _verified(stage: str) -> Any:
    def make(*parts: Any) -> kernel.Kernel:
        made = kernel_class(*parts)
        verify(made)
        counts[stage] += 1
        return made

    return make


@contextmanager
def every_pass() -> Iterator[None]:
    """Within it no pass of fusion leaves decisions that break a rule."""
    before = passes.PASSES
    passes.PASSES = tuple(map(_verified_pass, before))
    try:
        yield
    finally:
        passes.PASSES = before


def _verified_pass(run: Callable[[Decisions], None]) -> Callable[[Decisions], None]:
    @wraps(run)
    def verified(d: Decisions) -> None:
        run(d)
        if not d.overlaps:
            verify_decisions(d, run.__name__)

    return verified


@pytest.fixture(autouse=True)
def verified_kernels() -> Iterator[None]:
    """Verifies what a test makes, at every stage, and what is decided before."""
    with every_stage(), every_pass():
        yield

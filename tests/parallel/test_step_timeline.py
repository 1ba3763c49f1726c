"""The timeline of a step of training: what each worker does, when, and what it sends."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.extend import Request
from dovetail.parallel.reduction_tree import plan_reduction
from dovetail.parallel.step_timeline import Span, StepRecorder
from worker_groups import KINDS, run_groups

GROUPS = 8
TRAFFIC = ("send", "receive")


class Counter:
    """A transport that notes the bytes of each message."""

    def __init__(self, transport: Any) -> None:
        self.transport, self.sizes = transport, {kind: list[int]() for kind in TRAFFIC}

    def send(self, buffer: memoryview, *where: int) -> Request:
        self.sizes["send"].append(buffer.nbytes)
        request: Request = self.transport.send(buffer, *where)
        return request

    def receive(self, buffer: memoryview, *where: int) -> Request:
        self.sizes["receive"].append(buffer.nbytes)
        request: Request = self.transport.receive(buffer, *where)
        return request

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)


def loss(params: Any, x: dt.Tensor) -> tuple[dt.Tensor, int]:
    y = dt.nn.functional.batch_norm(x @ params["w"], None, None, training=True)
    return (y**3 + params["b"]).sum(), len(x)


def train(workers: dt.parallel.ProcessGroup, is_on: bool, statistics: str, n: int) -> Any:
    """Return the spans of a second step, the sizes of all its messages, and its results."""
    rng = np.random.default_rng(0)
    params = {"w": dt.asarray(rng.standard_normal((40, 30))), "b": dt.zeros(30, dtype="float64")}
    step: Any = dt.parallel.value_and_grad(
        loss,
        groups=GROUPS,
        group=workers,
        statistics=statistics,
        generator=dt.random.default_rng(0),
    )
    x = rng.standard_normal((n, 40))
    step(params, x)
    communicator = workers._communicator
    transport = communicator.transport
    communicator.transport = counter = Counter(transport)
    if is_on:
        step.timeline.spans = []
    value, grads = step(params, x)
    communicator.transport = transport
    return step.timeline.spans, counter.sizes, [value.tolist(), grads["w"].tolist()]


@pytest.mark.parametrize("statistics", ["group", "all"])
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_timeline_has_each_message_and_changes_no_bits(
    kind: str, size: int, statistics: str
) -> None:
    plain = run_groups(kind, size, lambda group: train(group, False, statistics, 21))
    traced = run_groups(kind, size, lambda group: train(group, True, statistics, 21))
    assert [results for *_, results in traced] == [results for *_, results in plain]
    assert [spans for spans, *_ in plain] == [None] * size
    for rank, (spans, sizes, _) in enumerate(traced):
        assert all(a.begin_ns <= a.end_ns <= b.begin_ns for a, b in pairwise(spans))
        for way in TRAFFIC:
            assert sorted(n for s in spans if s.kind == way for n in s.sizes) == sorted(sizes[way])
        own = {s.number for s in spans if s.kind == "compute"}
        assert own == set(range(rank, GROUPS, size))
        assert spans[-1].kind == "update"
    assert size == 1 or sum(map(len, traced[0][1].values())) > 0


@pytest.mark.parametrize("size", [2, 3])
def test_spans_are_the_steps_of_the_tree(size: int) -> None:
    traced = run_groups("threads", size, lambda group: train(group, True, "all", 5))
    for rank, (spans, *_) in enumerate(traced):
        steps = plan_reduction(GROUPS, size, rank, filled=5)
        for kind in ("compute", "add"):
            expected = {s.subtree for s in steps if s.kind == kind}
            assert {s.number for s in spans if s.kind == kind} == expected


def test_timeline_that_is_off_records_nothing() -> None:
    timeline = StepRecorder()
    with timeline.record("compute", 1) as span:
        span.add_messages(object())
    assert timeline.spans is None
    timeline.spans = []
    with timeline.record("compute", 1):
        pass
    (recorded,) = timeline.spans
    assert recorded == Span("compute", 1, recorded.begin_ns, recorded.end_ns)
    assert recorded.begin_ns < recorded.end_ns


def test_span_that_raises_neither_waits_nor_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    def synchronize() -> None:
        raise AssertionError("the span waited for its devices")

    monkeypatch.setattr(dt, "synchronize", synchronize)
    recorder = StepRecorder()
    recorder.spans = []
    with pytest.raises(ZeroDivisionError), recorder.record("forward"):
        1 / 0  # noqa: B018
    assert recorder.spans == []

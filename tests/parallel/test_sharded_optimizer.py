"""`parallel.ShardedOptimizer`: each worker has the state of a part of the parameters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest

run_threads = partial(dt.parallel.run, transport="threads", timeout=60)
SHAPES = [(3, 4), (4,), (50,), (2, 2, 2), (1,)]


def build() -> list[dt.Tensor]:
    rng = np.random.default_rng(0)
    params = [dt.asarray(rng.standard_normal(s, np.float32)) for s in SHAPES]
    return [p.requires_grad_() for p in [*params, dt.ones(3, dtype=dt.bfloat16)]]


def set_gradients(params: list[dt.Tensor], step: int) -> None:
    rng = np.random.default_rng(step)
    for p in params:
        p.grad = dt.asarray(rng.standard_normal(p.shape, np.float32)).astype(p.dtype)
    dt.nn.utils.clip_grad_norm_(params, 1.0)


KINDS: dict[str, Callable[..., Any]] = {
    "adam": partial(dt.optim.AdamW, lr=0.1, amsgrad=True, master_weights=True),
    "sgd": partial(dt.optim.SGD, lr=0.1, momentum=0.9),
    "adafactor": partial(dt.optim.Adafactor, lr=0.1),
    "nadam": partial(dt.optim.NAdam, lr=0.1),
}


def train(
    kind: str, steps: int = 3, path: Path | None = None, is_sharded: bool = True
) -> tuple[list[Any], int]:
    """Return the parameters after some steps, and the number of states on this worker."""
    params = build()
    optimizer = KINDS[kind](params)
    if is_sharded:
        optimizer = dt.parallel.ShardedOptimizer(optimizer)
    scheduler = dt.optim.lr_scheduler.StepLR(optimizer, 2)
    group, first = dt.parallel.current(), 0
    states = {"optimizer": optimizer, "scheduler": scheduler}
    if path is not None and path.exists():
        loaded = dt.checkpoint.load(path, **states, random=False)
        first = loaded["step"]
        for p, x in zip(params, loaded["params"], strict=True):
            p.data.copy_(x)
    for step in range(first, steps):
        set_gradients(params, step)
        optimizer.step()
        scheduler.step()
    if path is not None:
        dt.checkpoint.save(path, **states, params=params, step=steps, random=False, group=group)
    assert all(p.grad is not None for p in params)
    return [p.tolist() for p in params], len(optimizer.state)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_parameters_have_the_bits_of_the_plain_optimizer(kind: str, workers: int) -> None:
    plain, n = train(kind, is_sharded=False)
    outcomes = run_threads(train, [kind], workers=workers)
    assert [values for values, _ in outcomes] == [plain] * workers
    counts = [count for _, count in outcomes]
    assert sum(counts) == n and max(counts) <= max(2, n - workers + 1)


def test_processes_have_the_bits_of_the_plain_optimizer() -> None:
    plain, _ = train("adam", is_sharded=False)
    outcomes = dt.parallel.run(train, ["adam"], workers=2, timeout=60)
    assert [values for values, _ in outcomes] == [plain] * 2


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_checkpoint_of_three_workers_is_resumed_on_others(
    kind: str, workers: int, tmp_path: Path
) -> None:
    plain, n = train(kind, 5, is_sharded=False)
    path = tmp_path / "run.safetensors"
    run_threads(train, [kind, 2, path], workers=3)
    assert train(kind, 5, path.rename(tmp_path / "plain.safetensors"), False)[0] == plain
    run_threads(train, [kind, 2, path], workers=3)
    outcomes = run_threads(train, [kind, 5, path], workers=workers)
    assert [values for values, _ in outcomes] == [plain] * workers
    assert sum(count for _, count in outcomes) == n


def test_state_is_that_of_the_plain_optimizer() -> None:
    def state(is_sharded: bool) -> str:
        params = build()
        optimizer: dt.optim.Optimizer = dt.optim.Adam(params, lr=0.1)
        if is_sharded:
            optimizer = dt.parallel.ShardedOptimizer(optimizer)
        set_gradients(params, 0)
        params[1].grad = None
        optimizer.step()
        return repr(optimizer.state_dict())

    assert run_threads(state, [True], workers=3) == [state(False)] * 3


def test_parameters_are_dealt_by_size() -> None:
    def owners() -> list[int]:
        optimizer = dt.parallel.ShardedOptimizer(dt.optim.SGD(build()))
        optimizer.add_param_group({"params": [dt.ones(8).requires_grad_()]})
        return [*optimizer.owners.values()]

    # sizes 50, 12, 8, 4, 3, 1; then 8
    assert run_threads(owners, workers=2) == [[0, 1, 1, 1, 1, 1, 1]] * 2


def test_closure_computes_the_gradients_of_all_parameters() -> None:
    def work() -> list[Any]:
        params = [dt.ones(2).requires_grad_(), dt.ones(3).requires_grad_()]
        optimizer = dt.parallel.ShardedOptimizer(dt.optim.SGD(params, lr=0.5))

        def closure() -> dt.Tensor:
            optimizer.zero_grad()
            value = dt.square(params[0]).sum() + dt.square(params[1]).sum()
            value.backward()
            return value

        return [optimizer.step(closure).item(), *[p.tolist() for p in params]]

    assert run_threads(work, workers=2) == [[5.0, [0.0] * 2, [0.0] * 3]] * 2


def test_scaler_skips_a_step_on_all_workers() -> None:
    def work() -> list[float]:
        params = [dt.ones(1).requires_grad_(), dt.ones(1).requires_grad_()]
        optimizer = dt.parallel.ShardedOptimizer(dt.optim.Adam(params, lr=0.5))
        scaler = dt.amp.GradScaler(init_scale=2.0)
        values = []
        for factor in (float("inf"), 1.0):
            optimizer.zero_grad()
            scaler.scale(dt.concat(params).sum() * factor).backward()
            scaler.step(optimizer)
            scaler.update()
            values += [p.item() for p in params]
        return values

    assert run_threads(work, workers=2) == [[1.0, 1.0, 0.5, 0.5]] * 2


def test_wrong_optimizers_are_refused() -> None:
    params = build()[:1]
    stepped = dt.optim.SGD(params, momentum=0.9)
    set_gradients(params, 0)
    stepped.step()
    for optimizer, error, text in (
        (dt.optim.LBFGS(params), dt.ArgumentError, "got LBFGS"),
        (stepped, dt.ArgumentError, "must not have stepped"),
        (params, dt.ArgumentTypeError, "optimizer must be"),
        (
            dt.optim.SGD([*params, dt.ones(1, device="reference").requires_grad_()]),
            dt.ArgumentError,
            "on one device, got cpu, reference",
        ),
    ):
        with pytest.raises(error, match=text):
            dt.parallel.ShardedOptimizer(optimizer)  # type: ignore[arg-type]  # one is a list


def test_captured_step_is_refused() -> None:
    (p, *_) = build()
    optimizer = dt.parallel.ShardedOptimizer(dt.optim.SGD([p]))
    set_gradients([p], 0)
    with pytest.raises(dt.CaptureError, match="step must not be called in a captured function"):
        dt.jit(optimizer.step)()


def test_gradients_of_different_parameters_are_an_error() -> None:
    def work() -> None:
        params = build()[:2]
        optimizer = dt.parallel.ShardedOptimizer(dt.optim.SGD(params))
        set_gradients(params, 0)
        if dt.parallel.current().rank:
            params[0].grad = None
        optimizer.step()

    with pytest.raises(dt.ArgumentError, match=r"got \d gradients on worker \d and \d others"):
        run_threads(work, workers=2, timeout=2)


def test_disagreement_about_gradients_changes_no_parameter() -> None:
    def work() -> list[list[float]]:
        params = [dt.ones(2).requires_grad_(), dt.ones(2).requires_grad_()]
        optimizer = dt.parallel.ShardedOptimizer(dt.optim.SGD(params, lr=0.5))
        params[0].grad = dt.ones(2)
        if dt.parallel.current().rank == 0:
            params[1].grad = dt.ones(2)
        with pytest.raises(dt.ArgumentError, match="gradients of the same parameters"):
            optimizer.step()
        return [p.tolist() for p in params]

    assert run_threads(work, workers=2) == [[[1.0, 1.0]] * 2] * 2

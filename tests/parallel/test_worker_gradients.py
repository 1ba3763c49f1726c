"""`parallel.value_and_grad`: one digest of the weights for any number of workers."""

from __future__ import annotations

import os
import signal
import threading
import weakref
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.commands import demo_parallel as demo
from installed import INSTALLED

pytest.importorskip("safetensors")

GROUPS, STEPS = 8, 4
BUILDING = threading.Lock()
run_threads = partial(dt.parallel.run, transport="threads", timeout=60)


def read_pictures() -> tuple[np.ndarray, ...]:
    """Return 52 random pictures and labels; their second batch of 48 has only 4 examples."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((52, 1, 8, 8), np.float32), rng.integers(0, 10, 52)


def read_texts() -> tuple[np.ndarray, ...]:
    return (np.random.default_rng(0).integers(0, demo.LETTERS, (26, 9), dtype=np.int32),)


def build(network: Callable[[int], Any], width: int) -> Any:
    """Build a network from the same seed in each worker; threads share the random generator."""
    with BUILDING:
        dt.random.manual_seed(0)
        return network(width)


CONV = demo.Task(partial(build, demo.ConvNet, 4), demo.loss_of_digits, read_pictures)
TRANSFORMER = demo.Task(partial(build, demo.Transformer, 8), demo.loss_of_letters, read_texts)


def train(task: demo.Task, device: str | None = None) -> demo.Outcome:
    """Train a few steps: whole batches and short ones, of fewer examples than groups."""
    return demo.train(task, STEPS, GROUPS, 48 if task is CONV else 24, device)


@cache
def train_alone(name: str) -> demo.Outcome:
    return train(TASKS[name])


TASKS = {"conv": CONV, "transformer": TRANSFORMER}


@pytest.mark.parametrize("workers", [2, 3, 4, 8])
@pytest.mark.parametrize("name", TASKS)
def test_weights_do_not_depend_on_the_number_of_workers(name: str, workers: int) -> None:
    outcomes = run_threads(train, [TASKS[name]], workers=workers)
    alone = train_alone(name)
    assert [(out.digest, out.losses) for out in outcomes] == [
        (alone.digest, alone.losses)
    ] * workers


def train_by_name(name: str) -> demo.Outcome:
    return train(TASKS[name])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", TASKS)
def test_weights_of_processes_do_not_depend_on_their_threads(name: str, threads: int) -> None:
    outcomes = dt.parallel.run(train_by_name, [name], workers=2, threads=threads, timeout=60)
    assert {out.digest for out in outcomes} == {train_alone(name).digest}


@pytest.mark.skipif("opencl" not in INSTALLED, reason="dovetail_opencl is not installed")
def test_weights_do_not_depend_on_the_device() -> None:
    with dt.vendor_products(False):
        alone = train(CONV)
        outcomes = run_threads(train, [CONV, "opencl"], workers=2)
    assert {out.digest for out in outcomes} == {alone.digest}


# --- values ---------------------------------------------------------------------------------------


def loss_of_line(params: Any, batch: Any) -> tuple[dt.Tensor, dt.Tensor]:
    x, y, weight = batch
    return (weight * (params["w"] @ x.T + params["b"][0] - y) ** 2).sum(), weight.sum()


def line() -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    params = {"w": dt.asarray(rng.standard_normal(3)), "b": (dt.asarray(0.5),)}
    return params, (rng.standard_normal((11, 3)), rng.standard_normal(11), rng.uniform(1, 2, 11))


@pytest.mark.parametrize("jit", [False, True])
def test_functional_gradient_is_that_of_the_weighted_mean(jit: bool) -> None:
    def step() -> tuple[dt.Tensor, Any]:
        generator = dt.random.default_rng(0)
        return dt.parallel.value_and_grad(loss_of_line, groups=4, jit=jit, generator=generator)(
            *line()
        )

    params, batch = line()
    results = [result for w in (1, 3, 4) for result in run_threads(step, workers=w)]
    texts = {repr((v.tolist(), g["w"].tolist(), g["b"][0].tolist())) for v, g in results}
    assert len(texts) == 1

    def mean(params: Any) -> dt.Tensor:
        total, weight = loss_of_line(params, [dt.asarray(x) for x in batch])
        return total / weight

    value, gradient = dt.func.value_and_grad(mean)(params)
    np.testing.assert_allclose(results[0][0].numpy(), value.numpy(), rtol=1e-12)
    np.testing.assert_allclose(results[0][1]["w"].numpy(), gradient["w"].numpy(), rtol=1e-12)
    np.testing.assert_allclose(results[0][1]["b"][0].numpy(), gradient["b"][0].numpy(), rtol=1e-6)


def test_gradients_are_added_in_the_tree() -> None:
    terms = np.float32([1, 1e8, 3, -1e8, 5, -1e8, 11, 1e8])
    w = dt.asarray(1.0)
    step = dt.parallel.value_and_grad(lambda w, x: ((w * x).sum(), 1), groups=8)
    _, gradient = step(w, terms)
    level = terms
    while len(level) > 1:
        level = level[: len(level) // 2] + level[len(level) // 2 :]
    assert gradient.item() == level[0] / np.float32(8)
    assert gradient.item() != sum(terms, np.float32(0)) / np.float32(8)


def test_module_gets_gradients_and_the_mean_of_changed_buffers() -> None:
    model = dt.nn.BatchNorm1d(2)
    frozen = dt.full((2,), float("-inf"))
    model.register_buffer("mask", frozen)
    model.bias.requires_grad_(False)
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    step = dt.parallel.value_and_grad(lambda m, x: ((m(x) ** 3).sum(), len(x)), groups=2)
    _, gradients = step(model, x)
    assert [*gradients] == ["weight"] and model.weight.grad is gradients["weight"]
    assert model.bias.grad is None
    assert model.num_batches_tracked.item() == 1
    assert model.mask.tolist() == [float("-inf")] * 2
    means = [x[0::2].mean(0), x[1::2].mean(0)]
    np.testing.assert_allclose(
        model.running_mean.numpy(), 0.1 * (means[0] + means[1]) / 2, rtol=1e-6
    )


def test_captured_groups_have_the_bits_of_plain_ones() -> None:
    def train(jit: bool) -> str:
        model = build(demo.ConvNet, 4)
        step = dt.parallel.value_and_grad(
            demo.loss_of_digits, groups=4, jit=jit, generator=dt.random.default_rng(0)
        )
        for _ in range(3):
            step(model, read_pictures())
            for p in model.parameters():
                p.data.sub_(0.1 * p.grad)
        return demo.hash_weights(model)

    assert train(True) == train(False)


def test_worker_keeps_one_sum_for_each_level_of_the_tree() -> None:
    alive: list[Any] = []
    counts = []

    def loss(w: dt.Tensor, x: dt.Tensor) -> tuple[dt.Tensor, int]:
        return (w * x.sum()).sum(), len(x)

    step = dt.parallel.value_and_grad(loss, groups=32)
    compute = step.compute  # type: ignore[attr-defined]  # not public

    def tracked(*args: Any) -> Any:
        counts.append(sum(each() is not None for each in alive))
        vectors = compute(*args)
        alive.extend(map(weakref.ref, vectors))
        return vectors

    step.compute = tracked  # type: ignore[attr-defined]  # not public
    step(dt.ones(4), dt.arange(64.0))
    assert len(counts) == 32 and max(counts) <= 6


def test_unused_parameter_gets_zeros() -> None:
    params = [dt.ones(2), dt.ones(3)]
    step = dt.parallel.value_and_grad(lambda p, x: ((p[0] * x).sum(), 1), groups=1)
    _, gradients = step(params, np.ones((1, 2), np.float32))
    assert gradients[1].tolist() == [0.0] * 3


def test_halves_keep_their_dtype() -> None:
    w = dt.ones(2, dtype=dt.bfloat16)
    step = dt.parallel.value_and_grad(lambda w, x: ((w * x).sum(), len(x)), groups=2)
    value, gradient = step(w, dt.ones((4, 2), dtype=dt.bfloat16))
    assert (value.dtype, gradient.dtype) == (dt.float32, dt.bfloat16)
    assert gradient.tolist() == [1.0, 1.0]


# --- random numbers -------------------------------------------------------------------------------


def draw_noise(seed: int = 0, steps: int = 2) -> list[Any]:
    """Return the gradients of steps, which are the random numbers that the groups draw."""
    step = dt.parallel.value_and_grad(
        lambda w, x: ((w * dt.random.normal(x.shape[:1])).sum(), 1),
        groups=4,
        generator=dt.random.default_rng(seed),
    )
    return [step(dt.asarray(1.0), np.zeros(4, np.float32))[1].item() for _ in range(steps)]


def test_groups_draw_by_seed_step_and_group() -> None:
    first, second = draw_noise()
    assert first != second
    assert draw_noise(1)[0] != first
    assert all(run_threads(draw_noise, workers=w) == [[first, second]] * w for w in (1, 2, 4))


def test_default_generator_advances_alike_for_any_draws_of_the_loss() -> None:
    states = []
    for draws in (1, 5):
        dt.random.manual_seed(7)
        step = dt.parallel.value_and_grad(
            lambda w, x, n=draws: ((w * x * dt.random.normal((n,)).sum()).sum(), 1), groups=2
        )
        step(dt.asarray(1.0), np.ones(4, np.float32))
        states.append(dt.random.get_state())
    assert states == [(7, 2), (7, 2)]


def test_workers_of_different_seeds_are_refused() -> None:
    def work() -> None:
        draw_noise(dt.parallel.current().rank)

    with pytest.raises(dt.ArgumentError, match="same seed, got 0 on worker 0 and 1 on worker 1"):
        run_threads(work, workers=2)


# --- errors ---------------------------------------------------------------------------------------


def plain_loss(w: dt.Tensor, x: dt.Tensor) -> tuple[dt.Tensor, int]:
    return (w * x).sum(), len(x)


@pytest.mark.parametrize(
    ("loss", "batch", "error", "text"),
    [
        (
            plain_loss,
            np.ones((0, 2), np.float32),
            dt.ArgumentError,
            "at least one, along",
        ),
        (plain_loss, [np.ones(2), np.ones(3)], dt.ArgumentError, r"got \[2, 3\]"),
        (plain_loss, "text", dt.ArgumentTypeError, "batch must be"),
        (lambda w, x: (w * x).sum(), np.ones(2), dt.ArgumentTypeError, r"returns \(sum, weight\)"),
        (lambda w, x: (w * x, 1), np.ones(2), dt.ShapeError, "sum that loss returns must have one"),
    ],
)
def test_wrong_batches_and_losses_are_refused(
    loss: Callable[..., Any], batch: Any, error: type[Exception], text: str
) -> None:
    step = dt.parallel.value_and_grad(loss, groups=1)
    with pytest.raises(error, match=text):
        step(dt.asarray([1.0, 2.0]), batch)


@pytest.mark.parametrize("groups", [0, 3, 6, 1 << 16])
def test_groups_must_be_a_power_of_two(groups: int) -> None:
    with pytest.raises(dt.ArgumentError, match="value_and_grad: groups must"):
        dt.parallel.value_and_grad(plain_loss, groups=groups)


def test_groups_must_be_enough_for_all_workers() -> None:
    with pytest.raises(dt.ArgumentError, match="at least 3, the number of workers"):
        run_threads(lambda: dt.parallel.value_and_grad(plain_loss, groups=2), workers=3)


def test_call_in_a_captured_function_is_refused() -> None:
    step = dt.parallel.value_and_grad(plain_loss, groups=1)
    with pytest.raises(dt.CaptureError, match="pass jit=True"):
        dt.jit(step)(dt.asarray(1.0), dt.ones(2))


def test_error_in_the_loss_restores_buffers_and_the_generator() -> None:
    def fail(model: Any, x: dt.Tensor) -> tuple[dt.Tensor, int]:
        model(x + dt.random.normal(x.shape))
        raise KeyError("loss")

    model, state = dt.nn.BatchNorm1d(2), dt.random.get_state()
    with pytest.raises(KeyError):
        dt.parallel.value_and_grad(fail, groups=1, generator=dt.random.default_rng(0))(
            model, np.ones((4, 2), np.float32)
        )
    assert model.running_mean.tolist() == [0.0, 0.0]
    assert dt.random.get_state() == state


# --- resuming -------------------------------------------------------------------------------------


def train_and_save(path: Path, first: int, last: int) -> str:
    """Train from step `first` to step `last`, resuming from a file and saving to it."""
    workers = dt.parallel.current()
    rows = dt.data.TensorDataset(*map(dt.asarray, read_pictures()))
    model = build(demo.ConvNet, 4)
    workers.barrier()
    optimizer = dt.optim.Adam(model.parameters(), lr=1e-2)
    generator = dt.random.default_rng(5)
    sampler = dt.parallel.DealtSampler(rows, 16, groups=GROUPS)
    states = {"model": model, "optimizer": optimizer, "generator": generator, "sampler": sampler}
    if first:
        dt.checkpoint.load(path, **states, random=False)
    step = dt.parallel.value_and_grad(
        demo.loss_of_digits, groups=GROUPS, generator=generator, jit=True
    )
    done = first
    while done < last:
        for share in dt.data.DataLoader(rows, batch_sampler=sampler):
            step(model, share)
            optimizer.step()
            done += 1
            if done == last:
                break
    dt.checkpoint.save(path, **states, step=done, random=False, group=workers)
    return demo.hash_weights(model)


def test_run_is_resumed_with_other_workers_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    (whole,) = run_threads(train_and_save, [tmp_path / "whole.safetensors", 0, 7], workers=1)
    run_threads(train_and_save, [tmp_path / "parts.safetensors", 0, 3], workers=8)
    digests = run_threads(train_and_save, [tmp_path / "parts.safetensors", 3, 7], workers=2)
    assert digests == [whole] * 2


def train_until_killed(path: Path, workers: int) -> str:
    """Train to step 2 and save; then worker 1 of several kills itself in step 3."""
    train_and_save(path, 0, 2)
    group = dt.parallel.current()
    if group.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return train_and_save(path, 2, 4)


def test_run_continues_after_a_worker_is_killed(tmp_path: Path) -> None:
    (whole,) = run_threads(train_and_save, [tmp_path / "whole.safetensors", 0, 4], workers=1)
    path = tmp_path / "parts.safetensors"
    with pytest.raises(dt.parallel.WorkerError, match="rank 1"):
        dt.parallel.run(train_until_killed, [path, 2], workers=2, timeout=60)
    digests = run_threads(train_and_save, [path, 2, 4], workers=3)
    assert digests == [whole] * 3

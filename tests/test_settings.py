"""Settings of `with` blocks: per context, nested, reentrant, left in any order."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import dovetail as dt
import pytest
from dovetail import settings
from dovetail.tensor import tensor

X = dt.ones(3, device="reference")
M = dt.ones((2, 2), device="reference")


def runs_eagerly() -> bool:
    return (X + 1)._expr.op is None


def uses_no_vendor() -> bool:
    m = dt.ones((2, 2), device="reference")
    return dt.matmul(m, m)._expr.attrs is not None


def other_stream() -> bool:
    return dt.current_stream("reference") is not dt.default_stream("reference")


# a block with a non-default setting, and a check of it
BLOCKS: dict[str, tuple[Callable[[], Any], Callable[[], bool]]] = {
    "eager": (dt.eager, runs_eagerly),
    "autocast": (dt.autocast, lambda: dt.matmul(M, M).dtype is dt.bfloat16),
    "vendor_products": (partial(dt.vendor_products, False), uses_no_vendor),
    "no_grad": (dt.no_grad, lambda: not dt.is_grad_enabled()),
    "stream": (lambda: dt.Stream("reference"), other_stream),
    "device": (lambda: dt.device("elsewhere"), lambda: dt.default_device() == "elsewhere"),
}
each = pytest.mark.parametrize("name", BLOCKS)


@each
def test_block_applies_inside_and_ends_after_an_error(name: str) -> None:
    make, inside = BLOCKS[name]
    assert not inside()
    with pytest.raises(KeyError), make():
        assert inside()
        raise KeyError
    assert not inside()


@each
def test_block_object_is_reentrant(name: str) -> None:
    make, inside = BLOCKS[name]
    block = make()
    for _ in range(2):
        with block:
            with block:
                assert inside()
            assert inside()
        assert not inside()


@each
def test_overlapping_blocks_are_left_in_any_order(name: str) -> None:
    make, inside = BLOCKS[name]
    first, second = make(), make()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert inside()
    second.__exit__(None, None, None)
    assert not inside()
    with dt.enable_grad(), first:
        assert inside()
    assert not inside()


def test_overlapping_blocks_of_different_kinds_are_independent() -> None:
    off, on, at_once = dt.no_grad(), dt.enable_grad(), dt.eager()
    off.__enter__()
    at_once.__enter__()
    on.__enter__()
    assert dt.is_grad_enabled() and runs_eagerly()
    at_once.__exit__(None, None, None)
    assert dt.is_grad_enabled() and not runs_eagerly()
    on.__exit__(None, None, None)
    assert not dt.is_grad_enabled()
    off.__exit__(None, None, None)
    assert settings.current().blocks == ()


@each
def test_new_thread_starts_with_defaults_and_has_its_own_settings(name: str) -> None:
    make, inside = BLOCKS[name]
    shared, seen = make(), []
    entered, leave = threading.Event(), threading.Event()

    def work() -> None:
        seen.append(inside())
        with shared:  # like the other thread
            seen.append(inside())
            entered.set()
            leave.wait(10)
        seen.append(inside())

    thread = threading.Thread(target=work)
    with shared:
        thread.start()
        assert entered.wait(10)
    assert not inside()
    leave.set()
    thread.join()
    assert seen == [False, True, False] and not inside()


@each
def test_interleaved_tasks_have_their_own_settings(name: str) -> None:
    make, inside = BLOCKS[name]

    async def within(seen: list[bool]) -> None:
        with make():
            for _ in range(3):
                await asyncio.sleep(0)
                seen.append(inside())

    async def without(seen: list[bool]) -> None:
        for _ in range(4):
            await asyncio.sleep(0)
            seen.append(inside())

    async def main() -> tuple[list[bool], list[bool], bool]:
        a: list[bool] = []
        b: list[bool] = []
        await asyncio.gather(within(a), without(b))
        with make():
            task = asyncio.create_task(without(late := []))
        await task  # it has a copy of the settings at its creation
        return a, b, late == [True] * 4

    assert asyncio.run(main()) == ([True] * 3, [False] * 4, True)
    assert not inside()


def test_block_left_in_another_context_changes_nothing_there() -> None:
    block = dt.no_grad()
    contextvars.copy_context().run(block.__enter__)
    block.__exit__(None, None, None)
    assert dt.is_grad_enabled()


def test_recording_check_is_off_once_no_context_is_eager() -> None:
    """The depth that `make` compares says whether any context differs, a copied one too."""
    with dt.eager(), dt.no_grad():
        kept: contextvars.Context | None = contextvars.copy_context()
    assert not runs_eagerly() and kept is not None and kept.run(runs_eagerly)
    assert settings.flags.depth == 0
    kept = None
    gc.collect()
    dt.ones(1, device="reference")
    assert settings.flags.depth == settings.DEPTH_LIMIT


def test_freed_views_do_not_count() -> None:
    views = [dt.ones(1, device="reference").numpy() for _ in range(100)]
    assert settings.flags.depth == 0
    del views
    gc.collect()
    dt.ones(1, device="reference")
    assert settings.flags.depth == settings.DEPTH_LIMIT


def test_long_chains_are_bounded_while_another_thread_is_eager(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[int] = []
    evaluate = tensor.run.evaluate
    monkeypatch.setattr(tensor.run, "evaluate", lambda e, *a: (begun.append(1), evaluate(e, *a)))
    with dt.eager():
        context = contextvars.copy_context()  # any context with other settings
    assert context.run(runs_eagerly)
    begun.clear()
    x = X
    for _ in range(settings.DEPTH_LIMIT):
        x = x + 1
    assert begun == []
    x = x + 1
    assert begun == [1] and x._expr.op is None


@dt.no_grad()
def countdown(n: int) -> list[bool]:
    return [dt.is_grad_enabled(), *(countdown(n - 1) if n else [])]


def test_decorated_function_may_call_itself() -> None:
    assert countdown(3) == [False] * 4 and dt.is_grad_enabled()


def numbers() -> Iterator[bool]:
    with dt.no_grad():
        yield dt.is_grad_enabled()


def test_abandoned_generator_restores_its_settings() -> None:
    g = numbers()
    assert next(g) is False
    g.close()
    assert dt.is_grad_enabled()


def test_block_inside_a_custom_function_keeps_recording_off() -> None:
    class Double(dt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            with dt.eager():
                x = x * 1
            assert not dt.is_grad_enabled()
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = dt.ones(2, device="reference").requires_grad_()
    Double.apply(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2.0, 2.0]


def test_default_device_and_generator_belong_to_the_process() -> None:
    before, state = dt.default_device(), dt.random.get_state()
    found: list[object] = []
    try:
        dt.set_default_device("reference")
        dt.random.manual_seed(5)
        asking = threading.Thread(
            target=lambda: found.extend((dt.default_device(), dt.random.get_state()))
        )
        asking.start()
        asking.join()
    finally:
        dt.set_default_device(before)
        dt.random.set_state(state)
    assert found == [dt.device("reference"), (5, 0)]


def test_deterministic_switch_holds_in_all_threads_and_for_captures() -> None:
    seen = []

    @dt.jit
    def product(x: dt.Tensor) -> dt.Tensor:
        seen.append(uses_no_vendor())
        return dt.matmul(x, x)

    m = dt.ones((2, 2), device="reference")
    answers: list[bool] = []
    assert not dt.are_deterministic_algorithms_enabled()
    try:
        with dt.no_grad():
            dt.use_deterministic_algorithms(False)
            product(m)
            dt.use_deterministic_algorithms(True, warn_only=True)
            product(m)
            assert uses_no_vendor()
        thread = threading.Thread(target=lambda: answers.append(uses_no_vendor()))
        thread.start()
        thread.join()
        assert uses_no_vendor() and answers == [True]
        assert dt.are_deterministic_algorithms_enabled()
        with dt.vendor_products(True):
            assert not uses_no_vendor()
    finally:
        dt.use_deterministic_algorithms(False)
    with dt.no_grad():
        product(m)
    assert seen == [False, True] and product.captures == 2 and not uses_no_vendor()
    with pytest.raises(dt.ArgumentTypeError, match="mode"):
        dt.use_deterministic_algorithms("warn")  # type: ignore[arg-type]

"""Fixtures and options of the whole test suite: devices, sampling of parametrized cases."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from importlib.util import find_spec
from typing import Any
from zlib import crc32

import dovetail as dt
import numpy as np
import pytest
from dovetail import tracebacks
from dovetail.testing.verified import verified_kernels
from installed import INSTALLED
from sampling import PART, PART_OF_LARGE, sample
from skips import complete_reason
from slow import BEGUN, SLOW_PART, is_left_out, processor_seconds, write_slow

__all__ = ["device", "verified_kernels"]

# If PyData's sparse is not installed, Dask would import the folder of that name in a checkout;
# in processes of its own it still does.
_sparse = find_spec("sparse")
if _sparse is not None and _sparse.origin is None:
    sys.modules["sparse"] = None  # type: ignore[assignment]  # no module is imported by this name
    collect_ignore = ["functions/test_dask_distributed.py"]

pytest.register_assert_rewrite("captured", "cstyle_cases", "fake_device")


tracebacks.keeps_frames = True  # a failed test shows where
# Each process that a test starts would compile the library's sources: 0.9 s on a Zen 4, 2026-12-01.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# No automatic full collections, which walk the heap of pytest: a fifth of the processor time on a
# Zen 4, 2026-12-02. `frozen_heap` makes one for each module; young objects are collected as usual.
gc.set_threshold(*gc.get_threshold()[:2], 1000)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts background jobs
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "of each parametrized test one case in N, one at least; 1: all. Unless something is "
    text += f"chosen by `::`, -k or -m, N is {PART}, and {PART_OF_LARGE} for the largest tests"
    parser.addoption("--part", type=int, metavar="N", help=text)
    text = f"of the functions in slow_tests.txt one in N; {SLOW_PART} if nothing is chosen, else 1"
    parser.addoption("--slow-part", type=int, metavar="N", help=text)
    text = "write tests/support/slow_tests.txt: the test functions that took a second or more"
    parser.addoption("--write-slow", action="store_true", help=text)


def sampling_factors(config: pytest.Config) -> tuple[int, int]:
    """Return (n, m) if one case in n runs, and one in m of the largest tests.

    A run of selected tests runs all of their cases.
    """
    if (asked := config.getoption("--part")) is not None:
        return max(int(asked), 1), max(int(asked), 1)
    named = config.option.keyword or any("::" in a for a in config.args)
    is_whole = named or "not exhaustive" not in config.option.markexpr
    return (1, 1) if is_whole else (PART, PART_OF_LARGE)


def is_plain_run(config: pytest.Config) -> bool:
    """Return True if no option chooses cases; `--part 24` of CI is not plain."""
    n, m = sampling_factors(config)
    return m > n


def slow_part(config: pytest.Config) -> int:
    """Return n if one in n of the slow functions runs."""
    return int(config.getoption("--slow-part") or (SLOW_PART if is_plain_run(config) else 1))


def pytest_report_header(config: pytest.Config) -> str:
    (n, m), slow = sampling_factors(config), slow_part(config)
    if n == slow == 1:
        return "all cases"
    of_large = f", of the largest one in {m}" if m > n else ""
    of_slow = f", of tests that take a second one in {slow}" if slow > 1 else ""
    return f"of parametrized tests one case in {n}{of_large}{of_slow} (--part 1: all)"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without the garbage collector, which would walk all cases again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None, object, object]:
    """Keep a sample of a test's cases, the same in every run and process.

    The others never become items: 73,000 of them took 17 s in each process (Zen 4, 2026-12-02).
    """
    result = yield
    config, test = metafunc.config, metafunc.definition
    factors, cases = sampling_factors(config), metafunc._calls
    if len(cases) > 1 and factors != (1, 1):
        if "not exhaustive" in config.option.markexpr:  # cases that -m leaves out are not sampled
            runs = [c for c in cases if all(m.name != "exhaustive" for m in c.marks)]
            is_left_out = test.get_closest_marker("exhaustive") is not None
            cases[:] = cases[:1] if is_left_out else runs or cases[:1]
        kept = {*sample([f"{test.nodeid}[{c.id}]" for c in cases], *factors)}
        cases[:] = [c for c in cases if f"{test.nodeid}[{c.id}]" in kept]
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a part of the slow tests, the same in every run and process."""
    part = slow_part(config)
    config.hook.pytest_deselected(items=[i for i in items if is_left_out(i.nodeid, part)])
    items[:] = [item for item in items if not is_left_out(item.nodeid, part)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    item.stash[BEGUN] = processor_seconds()
    return (yield)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Seed the module's generator, so that a case draws the same numbers in any selection."""
    module = getattr(item, "module", None)
    for name in ("rng", "RNG", "_rng"):
        if isinstance(generator := getattr(module, name, None), np.random.Generator):
            seeded = np.random.default_rng(crc32(item.nodeid.encode()))
            generator.bit_generator.state = seeded.bit_generator.state


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if config.getoption("--write-slow"):
        reports = [r for group in terminalreporter.stats.values() for r in group]
        ended = [r for r in reports if getattr(r, "when", "") == "teardown"]
        write_slow((r.nodeid, dict(r.user_properties)["processor"]) for r in ended)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Record the processor time; say in the reason of a skipped test what helps."""
    if call.when == "teardown":
        item.user_properties.append(("processor", processor_seconds() - item.stash[BEGUN]))
    report = yield
    complete_reason(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Say in the reason of a skipped file what helps."""
    report = yield
    complete_reason(report)
    return report


@pytest.fixture(scope="session")
def thinned(request: pytest.FixtureRequest) -> Callable[[Sequence[Any], int], Sequence[Any]]:
    """Return a function that keeps one in n of a test's own cases if tests are sampled."""
    whole = sampling_factors(request.config)[0] == 1
    return lambda cases, n: cases if whole else cases[::n]


@pytest.fixture(scope="session")
def is_plain(request: pytest.FixtureRequest) -> bool:
    """Return True if the run has no options that choose cases; `--part 24` of CI is not plain."""
    return is_plain_run(request.config)


@pytest.fixture(scope="module", autouse=True)
def frozen_heap() -> None:
    """Freeze existing objects, so that collections skip those of earlier modules; it saves a
    second.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(params=["reference", "cpu"])
def device(request: pytest.FixtureRequest) -> Iterator[dt.Device]:
    """Yield a device, which is also the default one while the test runs."""
    if request.param != "reference" and request.param not in INSTALLED:
        pytest.skip(
            f"the backend for {request.param} is not installed: pip install dovetail-cpu-llvm"
        )
    before = dt.default_device()
    yield dt.set_default_device(request.param)
    dt.set_default_device(before)

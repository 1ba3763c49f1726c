"""The conformance kit as a pytest plugin: the device under test, its gaps, and the certificate.

It is loaded by `option` when a device is named; with a layout's name too it judges that layout, on
that device, by the cases of `layout_*.py`, with a dtype's that dtype by `dtype_*.py`. Where
dovetail is on the path without having been installed, `-p dovetail.testing.plugin` does the same.
"""

from __future__ import annotations

import os
import shlex
import time
import zlib
from collections.abc import Generator, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from .. import Tensor as Tensor  # loads the core: cases are made of its tables when collected
from ..device_class import device
from ..dtypes import DType
from ..errors import DovetailError
from ..plugins.device_handle import OpenedDevice
from ..plugins.registry import open_device, registry
from .certificate import FLOATS_PROPERTY, REPAIRS_PROPERTY, Certificate
from .dtype import BlockKit, BlocksSubject, DTypeKit, DTypeSubject, load_dtype_subject
from .kit import Kit, has_dtype
from .layout import LayoutKit, LayoutSubject, UndeclaredRefusal, ValuesDiffer, load_layout_subject
from .option import pytest_addoption
from .verified import verified_kernels

KIT_MODULE_PREFIX = "dovetail.testing."
BLOCK_LEVEL = "dtype_blocks"  # the level of block formats
REPRODUCE_SECTION = "to reproduce"  # a section of pytest's reports
# properties of pytest's reports
CASE_PROPERTY = "dovetail-case"
COMPARISONS_PROPERTY = "dovetail-comparisons"
COMPANION_LAUNCHES_PROPERTY = "dovetail-elsewhere"
WORKER_COUNTS = "dovetail-counted"  # the counts of a worker of pytest-xdist
DEVICE_KEY: pytest.StashKey[OpenedDevice] = pytest.StashKey()
CERTIFICATE_KEY: pytest.StashKey[Certificate] = pytest.StashKey()
LAYOUT_KEY: pytest.StashKey[LayoutSubject] = pytest.StashKey()
DTYPE_KEY: pytest.StashKey[DTypeSubject | BlocksSubject] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    """Open the device, disable the disk cache, start a certificate; do nothing without a device.

    Raises: UsageError if the device or the plugin under test cannot be loaded.
    """
    name = config.getoption("--dovetail-device")
    if not name:
        return
    config.addinivalue_line("markers", "xdist_group(name): cases that share programs")
    os.environ["DOVETAIL_CACHE_MIB"] = (
        "0"  # a backend that is being changed must not run what it compiled before
    )
    try:
        opened = open_device(device(name))
    except DovetailError as error:
        raise pytest.UsageError(f"--dovetail-device={name}: {error}") from error
    config.stash[DEVICE_KEY] = opened
    record = registry.probe(opened.device.type)
    try:
        gaps: Mapping[str, str] = registry.call_texts_hook(record, "dovetail_conformance")
    except DovetailError as error:
        raise pytest.UsageError(str(error)) from error
    layout = config.getoption("--dovetail-layout")
    if layout:
        judged = config.stash[LAYOUT_KEY] = _load_layout(layout)
        record, gaps = judged.record, judged.gaps
    named = config.getoption("--dovetail-dtype")
    if named:
        brought = config.stash[DTYPE_KEY] = _load_dtype(named)
        record, gaps = brought.record, brought.gaps
    plugin = f"{record.distribution} {record.version}".strip()
    sample = max(1, config.getoption("--dovetail-sample"))
    config.stash[CERTIFICATE_KEY] = Certificate(
        opened.backend.info, plugin, gaps, sample, layout or ""
    )
    config.stash[CERTIFICATE_KEY].dtype = named or ""


def _load_layout(layout: str) -> LayoutSubject:
    """Load the layout under test. Raises: UsageError if the layout cannot be loaded."""
    try:
        return load_layout_subject(layout)
    except DovetailError as error:
        raise pytest.UsageError(f"--dovetail-layout={layout}: {error}") from error


def _load_dtype(name: str) -> DTypeSubject | BlocksSubject:
    """Load the dtype under test. Raises: UsageError if the dtype cannot be loaded."""
    try:
        return load_dtype_subject(name)
    except DovetailError as error:
        raise pytest.UsageError(f"--dovetail-dtype={name}: {error}") from error


def case_name(item: pytest.Item) -> str:
    """Return a case's name in gaps and certificates: "scalar_ops.arithmetic.add-int8"."""
    level = _kit_level(item).removeprefix("layout_").removeprefix("dtype_")
    name_parts = [level, *item.name.rstrip("]").split("[", 1)]
    return ".".join(part.removeprefix("test_") for part in name_parts)


def _kit_level(item: pytest.Item) -> str:
    """Return the module of a case without the kit's prefix, such as "test_scalar_ops"."""
    module: str = item.module.__name__  # type: ignore[attr-defined]  # of a test function
    return module.removeprefix(KIT_MODULE_PREFIX)


def _is_kit_case(item: pytest.Item) -> bool:
    """Return True if a pytest item is defined in a module of the kit."""
    module = getattr(item, "module", None)
    return module is not None and module.__name__.startswith(KIT_MODULE_PREFIX)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Drop cases of missing dtypes, mark declared gaps, and draw the sample.

    Raises: UsageError for gaps of cases that do not exist.
    """
    certificate = config.stash.get(CERTIFICATE_KEY, None)
    if certificate is None:
        return
    certificate.collected_cases = sum(map(_is_kit_case, items))
    capabilities = certificate.device.capabilities
    selected, left_out, sampled = [], [], set()
    unused = set(certificate.gaps)
    for item in items:
        if not _is_kit_case(item):
            selected.append(item)
            continue
        name = case_name(item)
        item.add_marker(pytest.mark.xdist_group(_program_group(item)))
        unused -= _mark_gaps(item, name, certificate.gaps)
        if not (
            all(has_dtype(capabilities, d) for d in _find_dtypes(item))
            and _is_supported_case(config, item)
        ):
            certificate.unsupported_cases += 1
            left_out.append(item)
        elif (
            zlib.crc32(name.encode()) % certificate.sample == 0
            or _case_function(name) not in sampled
            or _is_float_expression(name)
        ):
            sampled.add(_case_function(name))
            selected.append(item)
        else:
            left_out.append(item)
    if unused and _is_full_collection(config, items):
        certificate.unknown_gaps = sorted(unused)
        if not hasattr(config, "workeroutput"):  # a worker of pytest-xdist cannot say so itself
            raise pytest.UsageError(certificate.nonconformance)
    config.hook.pytest_deselected(items=left_out)
    items[:] = selected


def _program_group(item: pytest.Item) -> str:
    """Return the group of cases that share programs: those of one row, or of one scalar op."""
    params = getattr(item, "callspec", None)
    values = {} if params is None else params.params
    return str(values.get("name") or values.get("op") or item.name)


def _is_full_collection(config: pytest.Config, items: list[pytest.Item]) -> bool:
    """Return True if all files of the kit were collected, and all that is in them."""
    files = {item.path for item in items if _is_kit_case(item)}
    kinds = {"--dovetail-layout": "layout_*.py", "--dovetail-dtype": "dtype_*.py"}
    cases = next((files for o, files in kinds.items() if config.getoption(o)), "test_*.py")
    every = set(Path(__file__).parent.glob(cases))
    return files >= every and not any("::" in argument for argument in config.args)


def _mark_gaps(item: pytest.Item, name: str, gaps: Mapping[str, str]) -> set[str]:
    """Mark a case as strict xfail for each matching gap; return the matching patterns."""
    matching = {pattern for pattern in gaps if fnmatchcase(name, pattern)}
    raises = (
        (UndeclaredRefusal, ValuesDiffer) if item.config.getoption("--dovetail-layout") else None
    )
    for pattern in matching:
        reason = f"declared gap: {gaps[pattern]}"
        item.add_marker(pytest.mark.xfail(reason=reason, strict=True, raises=raises))
    return matching


def _is_supported_case(config: pytest.Config, item: pytest.Item) -> bool:
    """Return True if the dtype or the layout under test, if there is one, can run the case."""
    named = config.stash.get(DTYPE_KEY, None)
    if named is not None and isinstance(named, DTypeSubject) == (_kit_level(item) == BLOCK_LEVEL):
        return False
    judged, call = config.stash.get(LAYOUT_KEY, None), getattr(item, "callspec", None)
    return (
        judged is None
        or call is None
        or judged.accepts_case(call.params, config.stash[DEVICE_KEY].device)
    )


def _is_float_expression(name: str) -> bool:
    """Return True for a case that each sample has: compilers rewrite some expressions only."""
    function = _case_function(name)
    return function == "scalar_ops.nothing_is_contracted_or_reassociated" and "-grid" in name


def _case_function(name: str) -> str:
    """Return level and function of a case's name, without the parameters."""
    return ".".join(name.split(".")[:2])


def _find_dtypes(item: pytest.Item) -> Iterator[DType]:
    """Yield the dtypes among a case's parameters."""
    call = getattr(item, "callspec", None)
    return (p for p in (call.params.values() if call else ()) if isinstance(p, DType))


@pytest.fixture
def kit(request: pytest.FixtureRequest) -> Iterator[Kit]:
    """Yield one case's view of the device; fail a case that has compared nothing."""
    opened = request.config.stash.get(DEVICE_KEY, None)
    if opened is None:
        pytest.fail(
            "the conformance kit needs a device: give --dovetail-device=NAME", pytrace=False
        )
    judged = request.config.stash.get(LAYOUT_KEY, None)
    named = request.config.stash.get(DTYPE_KEY, None)
    line = reproduction(request.node, str(opened.device))
    case_kit = Kit(opened, line) if judged is None else LayoutKit(opened, line, subject=judged)
    if isinstance(named, DTypeSubject):
        case_kit = DTypeKit(opened, line, subject=named)
    elif named is not None:
        case_kit = BlockKit(opened, line, blocks=named)
    before = case_kit.companion_launches
    yield case_kit
    request.node.user_properties.append((COMPARISONS_PROPERTY, case_kit.comparisons))
    request.node.user_properties.append(
        (COMPANION_LAUNCHES_PROPERTY, case_kit.companion_launches - before)
    )
    if not case_kit.comparisons and not getattr(request.node, "failed_already", False):
        pytest.fail("this case compared nothing", pytrace=False)


def reproduction(node: pytest.Item, name: str) -> str:
    """Return one line for a shell that runs one case again."""
    case = shlex.quote(f"{node.module.__name__}::{node.name}")  # type: ignore[attr-defined]  # of a test function
    layout = node.config.getoption("--dovetail-layout")
    chosen = f"--dovetail-device={name}" + (f" --dovetail-layout={layout}" if layout else "")
    dtype = node.config.getoption("--dovetail-dtype")
    chosen += f" --dovetail-dtype={dtype}" if dtype else ""
    return f"python -m pytest -p dovetail.testing.plugin {chosen} --pyargs {case}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the case's name to the report, and on failure the line that reproduces it."""
    report = yield
    opened = item.config.stash.get(DEVICE_KEY, None)
    if opened is None or not _is_kit_case(item):
        return report
    report.user_properties = [*report.user_properties, (CASE_PROPERTY, case_name(item))]
    if call.excinfo is not None:
        item.failed_already = True  # type: ignore[attr-defined]  # noted for `kit`
    if report.failed:
        report.sections.append((REPRODUCE_SECTION, reproduction(item, str(opened.device))))
    return report


class OutcomeRecorder:
    """A recorder of the outcome of each case, in the process that sees all of them."""

    def __init__(self, certificate: Certificate) -> None:
        self.certificate = certificate

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the outcome of one phase of a case, and at teardown its counts."""
        properties = dict(report.user_properties)
        # with its worker of pytest-xdist
        crashed = report.failed and CASE_PROPERTY not in properties
        name = str(properties.get(CASE_PROPERTY, report.nodeid if crashed else ""))
        outcome = _phase_outcome(report)
        if name and outcome:
            reproduce = dict(report.sections).get(REPRODUCE_SECTION, "")
            self.certificate.record_outcome(name, outcome, reproduce, _failure_message(report))
        if report.when == "teardown":
            if isinstance(floats := properties.get(FLOATS_PROPERTY), dict):
                self.certificate.floats = floats
            if isinstance(repairs := properties.get(REPAIRS_PROPERTY), dict):
                self.certificate.repairs = repairs
            self.certificate.comparisons += int(str(properties.get(COMPARISONS_PROPERTY, 0)))
            self.certificate.companion_launches += int(
                str(properties.get(COMPANION_LAUNCHES_PROPERTY, 0))
            )

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record an error for a file that could not be collected."""
        if report.failed:
            self.certificate.record_outcome(report.nodeid, "error", "", str(report.longrepr))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        """Record the counts of a worker of pytest-xdist, which collects for itself."""
        counted = getattr(node, "workeroutput", {}).get(WORKER_COUNTS)
        if counted is not None:
            c = self.certificate
            c.collected_cases, c.unsupported_cases, c.unknown_gaps = counted


def _failure_message(report: pytest.TestReport) -> str:
    """Return the first line of a report's failure, at most 500 characters, or ""."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message if crash is not None else report.longrepr or "")
    return (text.strip().splitlines() or [""])[0][:500]


def _phase_outcome(report: pytest.TestReport) -> str:
    """Return the outcome that a report of one phase adds to its case, or "" if none."""
    if report.failed:
        strict = "[XPASS(strict)]" in str(report.longrepr)
        return "unexpected pass" if strict else "failed" if report.when == "call" else "error"
    if report.skipped:
        return "gap" if hasattr(report, "wasxfail") else "skipped"
    return "passed" if report.when == "call" else ""


def pytest_sessionstart(session: pytest.Session) -> None:
    """Register the recorder of outcomes, if there is a certificate."""
    certificate = session.config.stash.get(CERTIFICATE_KEY, None)
    if certificate is not None:
        session.config.pluginmanager.register(OutcomeRecorder(certificate), "dovetail-outcomes")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the certificate, or send a worker's counts; fail a run without a valid verdict."""
    certificate = session.config.stash.get(CERTIFICATE_KEY, None)
    if certificate is None or session.config.option.collectonly:
        return
    if hasattr(session.config, "workeroutput"):
        counted = (
            certificate.collected_cases,
            certificate.unsupported_cases,
            certificate.unknown_gaps,
        )
        session.config.workeroutput[WORKER_COUNTS] = counted
        return
    if certificate.nonconformance:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    certificate.status = int(session.exitstatus)
    path = session.config.getoption("--dovetail-report")
    if path:
        certificate.write(path)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print counts, digest and levels of the run, and why the device does not conform."""
    certificate = config.stash.get(CERTIFICATE_KEY, None)
    if certificate is None or config.option.collectonly:
        return
    on_what = certificate.layout or certificate.dtype
    terminalreporter.write_line(
        f"dovetail conformance of {on_what and f'{on_what} on '}"
        f"{certificate.device.type}:{certificate.device.index} "
        f"({certificate.device.name}): {certificate.executed} cases, "
        f"{certificate.comparisons} comparisons, "
        f"digest {certificate.digest[:16]}, {time.time() - certificate.started_at:.0f} s"
    )
    for level, counts in certificate.levels.items():
        outcomes = ", ".join(f"{n} {outcome}" for outcome, n in counts.items())
        terminalreporter.write_line(f"  {level}: {outcomes}")
    if certificate.companion_launches:
        companion = certificate.device.companion
        terminalreporter.write_line(
            f"  {certificate.companion_launches} launches were done by its companion, {companion}"
        )
    if certificate.nonconformance:
        terminalreporter.write_line(f"not conforming: {certificate.nonconformance}")


__all__ = ["Kit", "kit", "pytest_addoption", "verified_kernels"]

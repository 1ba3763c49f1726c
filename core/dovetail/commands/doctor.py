"""`dovetail doctor`: check every plugin, each in a separate process.

A plugin that hangs or crashes does not affect the others.

A healthy plugin is imported, probed and opened, and it compiles and runs one kernel. The exit
status is 0 if every plugin is healthy, or only lacks a device on this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import struct
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

from ..backend import limits
from ..backend.interface import Backend
from ..build_info import config
from ..command_line import CommandParser, positive_seconds
from ..dtypes import float32
from ..errors import PluginError
from ..install_source import backend_distributions, install_command, reinstall_command
from ..ir.builder import Kernel, KernelBuilder
from ..ir.language import load
from ..ir.legalize import legalize
from ..plugins import validate_hooks
from ..plugins.dtype_registry import registry as dtypes
from ..plugins.fallback_device import CompanionProgram, companion_of, unwrap_backend
from ..plugins.plugin_state import BROKEN_STATES, PluginRecord, PluginState
from ..plugins.registry import open_device, registry
from ..tensor import layout_registry as layouts

if TYPE_CHECKING:
    from ..backend.interface import Program

TIME_LIMIT = 20.0  # seconds for one plugin
PROCESSES_MAX = 4  # plugins examined: most of them wait
PLUGIN_COLUMNS = 18  # characters: a name is never cut, and the table fits a terminal of 80
WHOLE_WORDS: Any = {"break_long_words": False, "break_on_hyphens": False}
FINDING_PREFIX = "dovetail-finding:"  # marks the finding in a process's output, which plugins share
HEALTHY_STATES = (PluginState.OPEN.value, PluginState.UNAVAILABLE.value, PluginState.BLOCKED.value)
_COUNT = 1000


@dataclass
class Finding:
    """The doctor's findings about one device type, layout or dtype.

    `state` is a `plugins.State`, or hung or crashed. `complaints` are faults beside it, and
    `remarks` possible ones.
    """

    type: str
    state: str
    distribution: str = ""
    version: str = ""
    file: str = ""
    reason: str = ""
    hint: str = ""
    traceback: str = ""
    milliseconds: float = 0.0
    devices: list[str] = field(default_factory=list)
    kernel: str = ""
    diagnostics: dict[str, str] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def is_healthy(self) -> bool:
        """Return True if nothing is wrong with the plugin itself."""
        return self.state in HEALTHY_STATES and not self.complaints


# --- in the plugin's own process
def inspect_plugin(type: str) -> Finding:
    """Probe a device, layout or dtype plugin here; run a kernel on a device; return findings."""
    if type in layouts.registry.records():
        return _make_finding(layouts.registry.probe(type))
    if type in dtypes.records():
        return _make_finding(dtypes.probe(type))
    record = registry.probe(type)
    kernel = ""
    complaints: list[str] = []
    remarks: list[str] = []
    if record.state is PluginState.AVAILABLE:
        name = f"{type}:{record.devices[0].index}"
        try:
            opened = open_device(name)
            complaints += validate_hooks.find_signature_mismatches(unwrap_backend(opened.backend))
            remarks += validate_hooks.find_misspelled_methods(unwrap_backend(opened.backend))
            kernel = run_kernel(name)
            complaints += find_load_complaints(name)
        except Exception as error:
            if record.state not in BROKEN_STATES:  # else `open_device` has stored the reason
                record.fail(PluginState.OPEN_FAILED, str(error), "", error)
            record.hint = f"tell the authors of {record.distribution}"
    finding = _make_finding(record)
    finding.kernel, finding.complaints, finding.remarks = kernel, complaints, remarks
    if record.state in (PluginState.OPEN, PluginState.UNAVAILABLE):
        _add_hook_results(record, finding)
    return finding


def _add_hook_results(record: PluginRecord, finding: Finding) -> None:
    """Store a plugin's diagnostics in `finding`; add a complaint for each hook that fails."""
    for hook in (validate_hooks.DIAGNOSTICS_HOOK, validate_hooks.GAPS_HOOK):
        try:
            texts = registry.call_texts_hook(record, hook)
        except PluginError as error:
            finding.complaints.append(str(error))
        except Exception as error:
            finding.complaints.append(f"{hook} raised {type(error).__name__}: {error}")
        else:
            if hook == validate_hooks.DIAGNOSTICS_HOOK:
                finding.diagnostics = texts


def run_kernel(name: str) -> str:
    """Compile and run y = x * 2 + 1, and return a text with the times.

    Raises: RuntimeError if the numbers are wrong, or an error of the backend.
    """
    started = time.perf_counter()
    backend = open_device(name).backend
    program = backend.compile(_build_kernel(backend))
    compiled = time.perf_counter()
    _run_program(name, program)
    finished = time.perf_counter()
    companion = companion_of(open_device(name).backend)
    companion_text = (
        f" on {companion.device}" if companion and isinstance(program, CompanionProgram) else ""
    )
    return (
        f"compiled in {(compiled - started) * 1e3:.1f} ms, "
        f"ran in {(finished - compiled) * 1e3:.2f} ms{companion_text}"
    )


def _run_program(name: str, program: Program) -> None:
    """Run y = x * 2 + 1 on a device. Raises: RuntimeError if the result is wrong."""
    opened = open_device(name)
    backend, nbytes = opened.backend, 4 * _COUNT
    numbers = [float(i) for i in range(_COUNT)]
    x, y = opened.allocator.allocate(nbytes), opened.allocator.allocate(nbytes)
    backend.copy_in(x.handle, x.offset, memoryview(struct.pack(f"{_COUNT}f", *numbers)))
    arguments = (x.handle, x.offset, y.handle, y.offset)
    limits.launch_within_limits(backend, program, arguments, (_COUNT,), (_COUNT,))
    result = bytearray(nbytes)
    backend.copy_out(memoryview(result), y.handle, y.offset)
    if list(struct.unpack(f"{_COUNT}f", result)) != [v * 2 + 1 for v in numbers]:
        raise RuntimeError(f"{name} computed a wrong result for x * 2 + 1")


def find_load_complaints(name: str) -> list[str]:
    """Return a line if a program's binary does not load and run; none if it does or is None.

    The core works without it, but every process would compile every kernel anew, without a warning.
    """
    backend = open_device(name).backend
    binary = backend.compile(_build_kernel(backend)).binary
    if binary is None:
        return []
    try:
        _run_program(name, backend.load(_build_kernel(backend), binary))
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        return [f"load rejects the binary that compile returned, so nothing is cached: {what}"]
    return []


def _build_kernel(backend: Backend) -> Kernel:
    """Build the kernel y = x * 2 + 1, legalised for a backend."""
    b = KernelBuilder("doctor")
    x, y = b.buffer("x", float32, "r"), b.buffer("y", float32, "w")
    i = b.axis(b.int("n"))
    b.store(y, i, load(x, i) * 2.0 + 1.0)
    return legalize(b.build(), backend.info.capabilities)


def _make_finding(record: PluginRecord) -> Finding:
    """Convert a plugin's record to a finding, without running the plugin's code."""
    return Finding(
        type=record.type,
        state=record.state.value,
        distribution=record.distribution,
        version=record.version,
        file=record.file,
        reason=record.reason,
        hint=record.hint,
        traceback=record.traceback,
        milliseconds=round(record.milliseconds, 1),
        devices=[
            f"{d.type}:{d.index} {d.name}" + (f", companion {d.companion}" if d.companion else "")
            for d in record.devices
        ],
    )


# --- in the doctor's process
def examine_plugin(record: PluginRecord, time_limit: float = TIME_LIMIT) -> Finding:
    """Run `inspect_plugin` in a new process, unless the plugin's state is already known.

    A hang or a crash of the process becomes a finding.
    """
    if record.state is not PluginState.DISCOVERED:
        return _make_finding(record)
    finding = _make_finding(record)
    finding.hint = f"{reinstall_command(record.distribution)}, or pip uninstall it"
    command = [sys.executable, "-m", "dovetail.commands.doctor", "--inspect", record.type]
    # Strictness would let one plugin fail another's examination.
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environ["DOVETAIL_STRICT_PLUGINS"] = "0"
    status, printed, complaints = _run_process(command, environ, time_limit)
    answer_lines = [x for x in printed.splitlines() if x.startswith(FINDING_PREFIX)]
    if status is None:
        finding.state, finding.reason = "hung", f"it did not answer within {time_limit:g} s"
        finding.traceback = complaints
    elif status == 0 and answer_lines:
        try:
            return Finding(**json.loads(answer_lines[-1].removeprefix(FINDING_PREFIX)))
        except (ValueError, TypeError) as error:  # a plugin may print anything
            finding.state, finding.reason = "crashed", f"its answer cannot be read: {error}"
    else:
        finding.state, finding.traceback = "crashed", complaints
        finding.reason = f"its process ended with {_status_text(status)}"
    return finding


def _run_process(
    command: Sequence[str], environ: Mapping[str, str], time_limit: float
) -> tuple[int | None, str, str]:
    """Run a command; return exit status (None after `time_limit` seconds), output and errors.

    The output goes to files, and all of the process's children are ended: one that lives on would
    hold a pipe open.
    """
    text = partial(tempfile.TemporaryFile, "w+", encoding="utf-8", errors="replace")
    with text() as out, text() as errors:
        process = subprocess.Popen(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
            start_new_session=True,
        )
        try:
            status: int | None = process.wait(time_limit)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            _kill_process(process)
        out.seek(0)
        errors.seek(0)
        return status, out.read(), errors.read()


def _kill_process(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its process group, and wait for the process."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def _status_text(status: int) -> str:
    """Return "status N", or "signal NAME" for a process that a signal ended."""
    names = {s.value: s.name for s in signal.Signals}
    return f"signal {names.get(-status, -status)}" if status < 0 else f"status {status}"


def main(arguments: Sequence[str]) -> int:
    """Examine all plugins in processes and print the findings; return 0 if all are healthy."""
    options = parser().parse_args(arguments)
    if options.inspect:
        print(f"\n{FINDING_PREFIX}{json.dumps(asdict(inspect_plugin(options.inspect)))}")
        return 0
    every = (registry, layouts.registry, dtypes)
    plugin_records = [record for plugins in every for record in plugins.records().values()]
    quiet = Console(stderr=True)
    with ThreadPoolExecutor(PROCESSES_MAX) as pool:
        coming = pool.map(lambda record: examine_plugin(record, options.time_limit), plugin_records)
        tracked = track(coming, "examining", len(plugin_records), console=quiet, transient=True)
        findings = list(tracked)
    if options.json:
        print(json.dumps(_build_report(findings), indent=2))
    else:
        _print_findings(findings)
    return 0 if all(f.is_healthy for f in findings) else 1


def parser() -> CommandParser:
    """Build the argument parser of this command."""
    options = CommandParser(prog="dovetail doctor", description=__doc__)
    options.add_argument("--json", action="store_true", help="print JSON")
    options.add_argument(
        "--time-limit",
        type=positive_seconds,
        default=TIME_LIMIT,
        help="stop after this many seconds per plugin (default: %(default)g)",
    )
    options.add_argument("--inspect", metavar="TYPE", help=argparse.SUPPRESS)
    return options


def _missing_backends(findings: Sequence[Finding]) -> dict[str, str]:
    """Return type and package of the known backends that are not installed."""
    have = {f.type for f in findings}
    return {type: package for type, package in backend_distributions().items() if type not in have}


def _build_report(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the findings and the Python version as plain data for JSON."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "hot_path": config()["hot_path"],
        "well": all(f.is_healthy for f in findings),
        "plugins": [{**asdict(f), "well": f.is_healthy} for f in findings],
        "not_installed": _missing_backends(findings),
    }


def _print_findings(findings: Sequence[Finding]) -> None:
    """Print the findings as a table, followed by remarks and packages to install."""
    console = Console(soft_wrap=True)
    python = f"Python {platform.python_version()} on {platform.platform()}"
    hot_path = "compiled" if config()["hot_path"] == "compiled" else "not compiled: runs as Python"
    console.print(f"{python}; the hot path is {hot_path}", highlight=False)
    table = Table("type", "state", box=SIMPLE_HEAD)
    table.add_column("plugin", no_wrap=True)
    for heading in ("devices", "kernel"):
        table.add_column(heading, overflow="fold")
    for f in findings:
        plugin = textwrap.fill(f"{f.distribution} {f.version}", PLUGIN_COLUMNS, **WHOLE_WORDS)
        cells = (f.type, f.state, plugin, "\n".join(f.devices), f.kernel)
        table.add_row(*map(escape, cells))
    console.print(table)
    for f in findings:
        for line in _format_remarks(f):
            console.print(line, markup=False, highlight=False)
    for type, package in _missing_backends(findings).items():
        console.print(f"{type}: not installed: {install_command(package)}", highlight=False)


def _format_remarks(f: Finding) -> list[str]:
    """Return the lines below the table for one plugin: diagnostics, errors, warnings and hint."""
    lines = [f"{f.type}: {k}: {v}" for k, v in f.diagnostics.items()]
    lines += [f"{f.type}: error: {line}" for line in f.complaints]
    lines += [f"{f.type}: warning: {line}" for line in f.remarks]
    if f.reason:
        lines.append(f"{f.type}: {f.state}: {f.reason}")
        lines += [f"    {line}" for line in f.traceback.strip().splitlines()]
    if f.hint:
        lines.append(f"    To fix it: {f.hint}")
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Results of hooks and signatures of methods that the core does not expect are reported."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dovetail.commands.doctor import Finding
from dovetail.device_class import device
from dovetail.dtypes import float32
from dovetail.errors import PluginError
from dovetail.plugins import hooks, validate_hooks
from dovetail.plugins.entry import GROUP, PluginEntry
from dovetail.plugins.registry import DeviceRegistry
from places import ROOT

PLUGIN = """
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from dovetail.backend.reference import ReferenceBackend, ReferenceProgram
from dovetail.extend import *

class Mine(ReferenceBackend):
    pass

@hookimpl
def dovetail_backend_info() -> BackendInfo:
    return BackendInfo("mine", "1")

@hookimpl
def dovetail_probe(config: Mapping[str, str]) -> Sequence[DeviceInfo]:
    return [replace(ReferenceBackend.info, type="mine")]

@hookimpl
def dovetail_open(info: DeviceInfo, config: Mapping[str, str]) -> Backend:
    return Mine()
"""
DIAGNOSTICS = """
@hookimpl
def dovetail_diagnostics():
    return ["driver 42"]
"""
RAISES = """
@hookimpl
def dovetail_diagnostics():
    raise OSError("no such tool")
"""
GAPS = """
@hookimpl
def dovetail_conformance():
    return {"streams.*": 3}
"""
CALLS = """
@hookimpl
def dovetail_library_calls(device):
    return [("matmul", print)]
"""
UNMARKED = """
def dovetail_diagnostics():
    return {"driver": "42"}
"""
COPY = """
def copy_out(self, target, handle, offset):
    ReferenceBackend.copy_out(self, target, handle, offset)
Mine.copy_out = copy_out
"""
MISSPELT = """
Mine.sychronize = lambda self, stream=None: None
"""
LOAD = """
class WithBinary(ReferenceProgram):
    binary = b"made"
Mine.compile = lambda self, kernel: WithBinary(kernel)
def load(self, kernel, binary):
    raise TypeError("this is no path")
Mine.load = load
"""
COMPLAINTS = {
    "diagnostics": (DIAGNOSTICS, "dovetail_diagnostics: expected a mapping of strings"),
    "raises": (RAISES, "dovetail_diagnostics raised OSError: no such tool"),
    "gaps": (GAPS, "dovetail_conformance: expected a mapping of strings to strings, got a dict"),
    "copy": (COPY, "call copy_out(target, handle, offset, stream): too many"),
    "load": (LOAD, "so nothing is cached: TypeError: this is no path"),
}
REFUSED = {
    "calls": (CALLS, "functions, got [('matmul', a"),
    "unmarked": (
        UNMARKED,
        '"dovetail_diagnostics" must be marked as a hook; put @hookimpl before it',
    ),
}


def write(site: Path, more: str) -> None:
    """Write a plugin for a device type "mine" whose module ends with these lines."""
    info = site / "mine-1.0.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    info.joinpath("entry_points.txt").write_text(f"[{GROUP}]\nmine = plugin_of_answers\n")
    site.joinpath("plugin_of_answers.py").write_text(PLUGIN + more)


def inspected(site: Path) -> Finding:
    """Return the finding of the doctor's own process."""
    path = os.pathsep.join([str(site), str(ROOT / "core"), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-m", "dovetail.commands.doctor", "--inspect", "mine"],
        env={**os.environ, "PYTHONPATH": path, "DOVETAIL_BACKENDS": ""},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return Finding(**json.loads(done.stdout.partition("dovetail-finding:")[2]))


@pytest.mark.parametrize("wrong", COMPLAINTS)
def test_doctor_names_the_error_and_the_working_rest(wrong: str, tmp_path: Path) -> None:
    code, said = COMPLAINTS[wrong]
    write(tmp_path, code)
    finding = inspected(tmp_path)
    assert finding.state == "open" and finding.devices and not finding.is_healthy
    [complaint] = finding.complaints
    assert said.replace('"', "'") in complaint.replace('"', "'")
    assert finding.kernel.startswith("compiled in")


def test_misspelt_method_is_reported(tmp_path: Path) -> None:
    write(tmp_path, MISSPELT)
    finding = inspected(tmp_path)
    assert finding.is_healthy and not finding.complaints
    assert finding.remarks == ['the core never calls "sychronize"; did you mean "synchronize"?']


@pytest.mark.parametrize("wrong", REFUSED)
def test_opening_a_device_with_a_wrong_hook_result_raises(
    wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, said = REFUSED[wrong]
    write(tmp_path, code)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "plugin_of_answers", raising=False)
    registry = DeviceRegistry(find=lambda: [PluginEntry("mine", "plugin_of_answers")], environ={})
    with pytest.raises(PluginError) as e:
        registry.open(device("mine"))
    assert said in str(e.value)


def test_valid_hook_results_are_accepted() -> None:
    assert validate_hooks.validate_texts("dovetail_diagnostics", None) == {}
    assert validate_hooks.validate_texts("dovetail_diagnostics", {"driver": "1"}) == {"driver": "1"}
    assert validate_hooks.validate_routines("library_calls", {("matmul", float32): len})
    for bad in ({"matmul": len}, {("matmul", "float32"): len}, {("matmul", float32): 3}):
        with pytest.raises(PluginError, match="library_calls: expected a mapping"):
            validate_hooks.validate_routines("library_calls", bad)


def test_hook_types_equal_the_pluggy_specification() -> None:
    typed: dict[str, Any] = dict(vars(hooks.BackendHooks))
    typed["dovetail_library_calls"] = hooks.LibraryCallsHook.__call__
    typed["dovetail_diagnostics"] = hooks.DiagnosticsHook.__call__
    typed["dovetail_conformance"] = hooks.ConformanceHook.__call__
    for name in hooks.HOOKS:
        ours, theirs = (
            inspect.signature(typed[name]),
            inspect.signature(getattr(hooks.BackendHookSpecs, name)),
        )
        assert [*ours.parameters][1:] == [*theirs.parameters], name
        assert ours.return_annotation == theirs.return_annotation, name

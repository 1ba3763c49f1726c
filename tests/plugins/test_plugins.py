"""The life cycle of plugins: healthy ones, and each kind of broken one (see `broken_plugins`)."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from broken_kinds import KINDS, Kind
from dovetail.commands import doctor as doctor_module
from dovetail.device_class import default_device, device, set_default_device
from dovetail.dtypes import float32
from dovetail.errors import DeviceError, PluginError, UnavailableError
from dovetail.install_source import backend_distributions, reinstall_command
from dovetail.plugins.entry import GROUP, PluginEntry
from dovetail.plugins.plugin_state import PluginRecord, PluginState
from dovetail.plugins.registry import DeviceRegistry, open_device
from installed import INSTALLED
from places import ROOT

device_module = importlib.import_module("dovetail.device_class")

SOURCES = Path(__file__).parent / "broken_plugins"
CORE = ROOT / "core"
Install = Callable[..., None]


def write_distribution(site: Path, name: str, type: str, module: str, group: str = GROUP) -> None:
    """Write a distribution that offers one backend, as pip would install it."""
    info = site / f"{name.replace('-', '_')}-3.1.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 3.1\n")
    info.joinpath("entry_points.txt").write_text(f"[{group}]\n{type} = {module}\n")


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Return a function that installs plugins of `broken_plugins`, each as its own distribution."""
    monkeypatch.syspath_prepend(str(SOURCES))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("DOVETAIL_BACKENDS", raising=False)

    def install(*types: str, group: str = GROUP, prefix: str = "dist-") -> None:
        for type in types:
            write_distribution(tmp_path, prefix + type, type, f"plugin_{type}", group)

    yield install
    for dev in device_module.opened_devices():
        if dev.type in ("healthy", "reference"):
            dev.opened = None


@pytest.fixture(autouse=True)
def from_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let hints name index packages; tests/plugins/test_core_alone.py covers hints of a
    checkout.
    """
    monkeypatch.setattr(sys.modules["dovetail.install_source"], "find_checkout", lambda: None)


def fresh(**environ: str) -> DeviceRegistry:
    return DeviceRegistry(environ=environ)


def refused(registry: DeviceRegistry, name: str) -> str:
    """Return the error text of opening a broken plugin, which must be the same twice."""
    with pytest.raises((PluginError, DeviceError)) as first:
        registry.open(device(name))
    with pytest.raises(type(first.value)) as second:
        registry.open(device(name))
    assert str(first.value) == str(second.value)
    return str(first.value)


# --- devices


def test_devices_are_unique_and_have_short_reprs() -> None:
    assert device("opencl:1") is device("opencl:1") is device(device("opencl:1"))
    assert device("cpu") is device("cpu:0") is not device("cpu:1")
    assert repr(device("opencl:1")) == 'device("opencl:1")' and str(device("cpu:0")) == "cpu"
    assert len({device("cpu"), device("cpu:0"), "cpu"}) == 1, "a device equals its name"
    assert len({device("cpu"), device("cpu:1"), "opencl"}) == 3


@pytest.mark.parametrize("spec", ["", "CPU", "cpu:", "cpu:-1", ":0", "cpu:0:0", 3, b"cpu"])
def test_malformed_names_raise(spec: Any) -> None:
    with pytest.raises(DeviceError, match="expected a device name"):
        device(spec)


def test_default_device_from_environment_and_setter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_module, "process_default", None)
    monkeypatch.setenv("DOVETAIL_DEFAULT_DEVICE", "opencl:1")
    assert default_device() is device("opencl:1")
    set_default_device("reference")
    assert device(None) is device("reference")


# --- working plugins


def test_healthy_plugin_is_discovered_probed_and_opened(install: Install) -> None:
    install("healthy")
    registry = fresh(DOVETAIL_HEALTHY_COUNT="3")
    assert registry.records()["healthy"].state is PluginState.DISCOVERED
    record = registry.probe("healthy")
    assert record.state is PluginState.AVAILABLE and record.milliseconds > 0
    assert (record.distribution, record.version) == ("dist-healthy", "3.1")
    assert record.file.endswith("plugin_healthy.py")
    assert [str(d) for d in registry.devices() if d.type == "healthy"] == [
        "healthy",
        "healthy:1",
        "healthy:2",
    ]
    opened = registry.open(device("healthy:2"))
    assert opened is registry.open(device("healthy:2")) is device("healthy:2").opened
    assert opened.library_calls == {("matmul", float32): len}
    assert opened.allocator.allocate(10).nbytes == 10
    assert registry.probe("healthy").state is PluginState.OPEN
    assert registry.call(record, "dovetail_diagnostics") == {"driver": "42"}
    assert registry.call(record, "dovetail_conformance") is None


def test_discovery_imports_nothing(install: Install) -> None:
    install("import_error", "healthy")
    sys.modules.pop("plugin_healthy", None)
    fresh().records()
    assert "plugin_healthy" not in sys.modules


def test_broken_plugins_affect_no_others(install: Install) -> None:
    install("import_error", "misspelt_hook", "wrong_argument", "raising_probe", "healthy")
    registry = fresh()
    for name in list(registry.records()):
        registry.probe(name)
    assert registry.open(device("healthy")).backend is not None
    assert "healthy" in {d.type for d in registry.devices()}


def test_reference_is_always_available() -> None:
    assert open_device("reference") is open_device("reference:0")


def test_threads_open_a_device_once(install: Install) -> None:
    install("healthy")
    registry, got = fresh(), set()
    threads = [
        threading.Thread(target=lambda: got.add(registry.open(device("healthy")))) for _ in range(8)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(got) == 1


# --- broken plugins


def test_unknown_type_error_names_known_and_similar_types(install: Install) -> None:
    install("healthy")
    text = refused(fresh(), "heathly")
    assert "installed: " in text and "reference" in text and 'did you mean "healthy"?' in text
    assert "pip install" not in text, "anybody may have registered such a name"
    assert "dovetail doctor" in text
    # "cpu" is similar, and not the intended one
    assert "did you mean" not in refused(fresh(), "gpu")


def test_extras_of_dovetail_map_device_types_to_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = ('dovetail-cpu-llvm; extra == "cpu"', 'dovetail-tensor[cpu,onnx]; extra == "all"')
    lines = ["rich", *ours, 'pytest>=8; extra == "test"']
    monkeypatch.setattr("importlib.metadata.requires", lambda name: lines)
    assert backend_distributions() == {"cpu": "dovetail-cpu-llvm"}
    nothing = DeviceRegistry(find=list, environ={})
    assert "pip install dovetail-cpu-llvm" in refused(nothing, "cpu:9")
    assert "pip install" not in refused(nothing, "odd_card")
    assert "pip install" not in refused(nothing, "test")


def test_only_dovetail_distributions_are_named_in_a_command(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's plugin may have the name of an unrelated package in the index."""
    lines = ['dovetail-cpu-llvm; extra == "cpu"']
    monkeypatch.setattr("importlib.metadata.requires", lambda name: lines)
    assert reinstall_command("dovetail-cpu-llvm") == "pip install --upgrade dovetail-cpu-llvm"
    assert reinstall_command("dovetail-tensor") == "pip install --upgrade dovetail-tensor"
    install("import_error", "newer", "healthy", group="dovetail.backends.v9")
    for type in ("import_error", "newer", "healthy"):
        commands = re.findall(r"pip install .*?(?=,|$)", refused(fresh(), type), re.M)
        assert all(c == "pip install --upgrade dovetail-tensor" for c in commands), commands


def test_unknown_default_device_error_names_the_variable() -> None:
    registry = DeviceRegistry(find=list, environ={"DOVETAIL_DEFAULT_DEVICE": "odd_card:2"})
    assert "DOVETAIL_DEFAULT_DEVICE selects it" in refused(registry, "odd_card:2")
    assert "DOVETAIL_DEFAULT_DEVICE" not in refused(registry, "other")


def test_index_out_of_range_lists_the_devices(install: Install) -> None:
    install("healthy")
    text = refused(fresh(), "healthy:7")
    assert '"healthy:7"' in text and "healthy:0 (" in text and "healthy:1 (" in text


# device type -> final state, and a part of its error
BROKEN = {
    "import_error": (
        PluginState.IMPORT_FAILED,
        [
            "plugin_import_error.py",
            "import a_driver_that_is_not_there",
            "reinstall dist-import_error",
        ],
    ),
    "misspelt_hook": (
        PluginState.IMPORT_FAILED,
        ['"dovetail_porbe"', 'did you mean "dovetail_probe"'],
    ),
    "wrong_argument": (PluginState.IMPORT_FAILED, ["settings", "dovetail_probe"]),
    "no_open": (PluginState.IMPORT_FAILED, ["every plugin must implement"]),
    "other_name": (PluginState.IMPORT_FAILED, ['"someone_else"', "dist-other_name"]),
    "newer": (PluginState.API_MISMATCH, ["1.99", "1.0", "pip install --upgrade dovetail-tensor"]),
    "raising_probe": (PluginState.PROBE_FAILED, ["the bus is on fire", "plugin_raising_probe.py"]),
    "empty_probe": (PluginState.PROBE_FAILED, ["Unavailable(reason, hint)"]),
    "unavailable": (PluginState.UNAVAILABLE, ["no such card", "buy one"]),
    "failing_open": (PluginState.OPEN_FAILED, ["the door is locked", "plugin_failing_open.py"]),
    "opens_nothing": (PluginState.OPEN_FAILED, ["must return a Backend, got 'a backend'"]),
}


@pytest.mark.parametrize("type", BROKEN)
def test_broken_plugin_error_has_a_reason_and_a_remedy(type: str, install: Install) -> None:
    install(type)
    registry = fresh()
    text = refused(registry, type)
    state, expected = BROKEN[type]
    assert registry.probe(type).state is state
    assert text.startswith(f'device type "{type}" {SENTENCES[state]}: ')
    for part in [*expected, "To fix it: "]:
        assert part in text


SENTENCES = {
    PluginState.DISCOVERED: "is discovered",
    PluginState.BLOCKED: "is blocked",
    PluginState.API_MISMATCH: "is not compatible with this dovetail",
    PluginState.CONFLICT: "is in conflict",
    PluginState.IMPORT_FAILED: "could not be loaded",
    PluginState.PROBE_FAILED: "could not be probed",
    PluginState.UNAVAILABLE: "is unavailable",
    PluginState.AVAILABLE: "is available",
    PluginState.OPEN: "is open",
    PluginState.OPEN_FAILED: "could not be opened",
}


@pytest.mark.parametrize("state", PluginState)
def test_record_error_is_a_sentence(state: PluginState) -> None:
    record = PluginRecord("toy", (), plugin_kind="layout")
    record.fail(state, "the door is locked")
    said = str(record.error())
    assert said == f'layout "toy" {SENTENCES[state]}: the door is locked'


def test_unavailable_plugin_raises_unavailable_error(install: Install) -> None:
    install("unavailable")
    with pytest.raises(UnavailableError):
        fresh().open(device("unavailable"))


@pytest.mark.parametrize("version", ["0", "2"])
def test_other_major_version_is_reported(version: str, install: Install) -> None:
    install("healthy", group=f"dovetail.backends.v{version}")
    registry = fresh()
    text = refused(registry, "healthy")
    assert registry.probe("healthy").state is PluginState.API_MISMATCH
    assert f"interface {version}" in text and "pip install --upgrade" in text


def test_two_distributions_of_one_type_conflict(install: Install, tmp_path: Path) -> None:
    install("healthy")
    write_distribution(tmp_path, "rival-healthy", "healthy", "plugin_noisy")
    registry = fresh()
    text = refused(registry, "healthy")
    assert registry.probe("healthy").state is PluginState.CONFLICT
    assert "dist-healthy" in text and "rival-healthy" in text and "pip uninstall" in text


def test_plugin_may_be_blocked_before_import(install: Install) -> None:
    install("import_error", "healthy")
    registry = fresh(DOVETAIL_BACKENDS="healthy, other")
    text = refused(registry, "import_error")
    assert registry.probe("import_error").state is PluginState.BLOCKED
    assert "DOVETAIL_BACKENDS" in text and "import a_driver" not in text
    assert registry.probe("healthy").state is PluginState.AVAILABLE
    assert registry.probe("reference").state is PluginState.AVAILABLE


def test_strict_plugins_raise_for_any_broken_plugin(install: Install) -> None:
    install("healthy", "unavailable")
    assert fresh(DOVETAIL_STRICT_PLUGINS="1").open(device("healthy"))
    device("healthy").opened = None
    install("import_error")
    with pytest.raises(PluginError, match="import_error"):
        fresh(DOVETAIL_STRICT_PLUGINS="1").open(device("healthy"))
    assert fresh(DOVETAIL_STRICT_PLUGINS="0").open(device("healthy"))


# --- many kinds of broken plugins, none of which affects another device


@pytest.fixture
def broken(install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return a function that installs some of `KINDS`, with a short limit for import and probe."""
    monkeypatch.setenv("DOVETAIL_PROBE_SECONDS", "0.5")

    def install(*kinds: str) -> None:
        for kind in kinds:
            KINDS[kind].write(tmp_path, kind)
            value = ":".join(filter(None, [f"plugin_{kind}", KINDS[kind].attribute]))
            write_distribution(tmp_path, f"dist-{kind}", kind, value)

    yield install
    for kind in KINDS:
        sys.modules.pop(f"plugin_{kind}", None)


def test_no_kind_of_broken_plugin_affects_other_devices(broken: Install, install: Install) -> None:
    broken(*KINDS)
    install("healthy")
    registry = fresh()
    started = time.monotonic()
    usable = {d.type for d in registry.devices()}
    assert time.monotonic() - started < 60
    opening = {kind for kind, k in KINDS.items() if k.state is PluginState.OPEN_FAILED}
    assert usable & KINDS.keys() == opening
    assert usable >= {"healthy", "reference", *INSTALLED} - {"cuda"}
    assert registry.open(device("healthy")).backend and registry.open(device("reference")).backend


def test_each_kind_of_broken_plugin_has_its_error(broken: Install) -> None:
    broken(*KINDS)
    registry, wrong = fresh(), []
    for kind, expected in KINDS.items():
        text = refused(registry, kind)
        state = registry.probe(kind).state
        if state is not expected.state or expected.text not in text or f"dist-{kind}" not in text:
            wrong.append((kind, state, text))
        text.encode()  # as on a terminal
        assert len(registry.probe(kind).reason) < 1000
    assert not wrong, "\n\n".join(f"{k}: {s}: {t[:400]}" for k, s, t in wrong)
    assert len(KINDS) >= 50


@pytest.mark.exhaustive
def test_doctor_names_every_kind_of_broken_plugin(broken: Install, tmp_path: Path) -> None:
    broken(*KINDS)
    done = doctor(tmp_path, "--json", "--time-limit", "30")
    assert done.returncode == 1, done.stderr
    found = {p["type"]: p for p in json.loads(done.stdout)["plugins"]}
    assert not [kind for kind in KINDS if found[kind]["well"]]
    assert found["reference"]["well"] and all(found[type]["well"] for type in INSTALLED - {"cuda"})


def test_device_names_are_made_printable(broken: Install, tmp_path: Path) -> None:
    name = r"return [replace(READY, name='card\n\x1b[31m\udc80')]"
    Kind(PluginState.OPEN, "", probe=name).write(tmp_path, "colourful")
    write_distribution(tmp_path, "dist-colourful", "colourful", "plugin_colourful")
    (found,) = fresh().probe("colourful").devices
    assert found.name == "card\ufffd\ufffd[31m\ufffd"


@pytest.mark.parametrize("name", ["Upper", "with space", "a:1", "ünïcödé", "-", "9lives"])
def test_entry_point_name_must_be_a_device_type(
    name: str, install: Install, tmp_path: Path
) -> None:
    Kind(PluginState.OPEN, "").write(tmp_path, "misnamed")
    plugin = tmp_path / "plugin_misnamed.py"
    plugin.write_text(plugin.read_text().replace("TYPE = 'misnamed'", f"TYPE = {name!r}"))
    write_distribution(tmp_path, "dist-misnamed", name, "plugin_misnamed")
    sys.modules.pop("plugin_misnamed", None)
    registry = fresh()
    assert "reference" in {d.type for d in registry.devices()}
    (record,) = [r for r in registry.records().values() if r.distribution == "dist-misnamed"]
    assert registry.probe(record.type).state is PluginState.PROBE_FAILED
    assert "expected a device name" in record.reason


@pytest.mark.parametrize("file", ["METADATA", "entry_points.txt"])
@pytest.mark.parametrize("content", [b"\xff\xfe\x00", None, b"[", b"no section = 1"])
def test_distribution_with_unreadable_metadata(
    file: str, content: bytes | None, install: Install, tmp_path: Path
) -> None:
    install("healthy", "unavailable")
    broken = tmp_path / "dist_unavailable-3.1.dist-info" / file
    broken.unlink() if content is None else broken.write_bytes(content)
    registry = fresh()
    assert {"healthy", "reference"} <= {d.type for d in registry.devices()}


def test_ctrl_c_ends_the_wait_for_a_probe(broken: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    broken("probe_hangs")
    monkeypatch.setenv("DOVETAIL_PROBE_SECONDS", "60")
    registry, before = fresh(), signal.signal(signal.SIGINT, signal.default_int_handler)
    main = threading.get_ident()
    timer = threading.Timer(0.5, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            registry.devices()
    finally:
        signal.signal(signal.SIGINT, before)
        timer.join()
    monkeypatch.setenv("DOVETAIL_PROBE_SECONDS", "0.1")
    assert registry.probe("probe_hangs").state is PluginState.PROBE_FAILED


def test_late_probe_error_names_its_position(broken: Install) -> None:
    broken("probe_hangs")
    record = fresh().probe("probe_hangs")
    assert record.reason.startswith("dovetail_probe did not return within 0.5 s")
    assert "time.sleep(1000)" in record.traceback


def test_probe_may_use_other_devices(install: Install, tmp_path: Path) -> None:
    probe = "import dovetail as dt\nassert dt.ones(3, device='reference').sum().item() == 3\n"
    Kind(PluginState.OPEN, "", probe=probe + "return [READY]").write(tmp_path, "asking_others")
    write_distribution(tmp_path, "dist-asking", "asking_others", "plugin_asking_others")
    assert fresh().probe("asking_others").state is PluginState.AVAILABLE


def test_slowly_opening_device_blocks_no_other(install: Install, tmp_path: Path) -> None:
    wait = "go_on.wait(30)\nreturn ReferenceBackend()"
    kind = Kind(PluginState.OPEN, "", top="go_on = threading.Event()", open=wait)
    kind.write(tmp_path, "slow_opening")
    write_distribution(tmp_path, "dist-slow", "slow_opening", "plugin_slow_opening")
    install("healthy")
    registry = fresh()
    registry.probe("slow_opening")
    opening = threading.Thread(target=registry.open, args=(device("slow_opening"),))
    opening.start()
    started = time.monotonic()
    assert registry.open(device("healthy")) and registry.records() and registry.probe("reference")
    assert time.monotonic() - started < 10 and opening.is_alive()
    sys.modules["plugin_slow_opening"].go_on.set()
    opening.join()
    assert device("slow_opening").opened is not None
    device("slow_opening").opened = None


# --- the doctor


def doctor(site: Path, *arguments: str, backends: str = "") -> subprocess.CompletedProcess[str]:
    """Run `dovetail doctor`, which opens all installed backends unless some are named."""
    path = os.pathsep.join(map(str, (CORE, site, SOURCES)))
    return subprocess.run(
        [sys.executable, "-m", "dovetail.commands.cli", "doctor", *arguments],
        env={**os.environ, "PYTHONPATH": path, "DOVETAIL_BACKENDS": backends, "COLUMNS": "200"},
        cwd=site,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_doctor_survives_every_broken_plugin(install: Install, tmp_path: Path) -> None:
    broken = ["hanging_probe", "hanging_child", "crashing_probe", "dying_probe"]
    broken += ["import_error", "wrong_numbers", "failing_open"]
    installed = [*broken, "healthy", "noisy", "unavailable"]
    install(*installed)
    done = doctor(tmp_path, "--json", "--time-limit", "12", backends=",".join(installed))
    assert done.returncode == 1, done.stderr
    found = {p["type"]: p for p in json.loads(done.stdout)["plugins"]}
    assert all(not found[type]["well"] for type in broken)
    assert found["hanging_probe"]["state"] == "hung" and "12 s" in found["hanging_probe"]["reason"]
    assert (
        found["crashing_probe"]["state"] == "crashed" and "7" in found["crashing_probe"]["reason"]
    )
    assert found["hanging_child"]["state"] == "hung" and "asking" in str(found["hanging_child"])
    assert found["dying_probe"]["state"] == "crashed" and "SIGSEGV" in str(found["dying_probe"])
    assert found["noisy"]["well"] and found["noisy"]["kernel"].startswith("compiled in")
    assert "a_driver_that_is_not_there" in found["import_error"]["traceback"]
    assert "wrong result" in found["wrong_numbers"]["reason"]
    locked = found["failing_open"]
    assert locked["reason"] == "OSError: the door is locked"
    # the line that raises, and the exception
    assert locked["traceback"].count("the door is locked") == 2
    assert locked["hint"] == "tell the authors of dist-failing_open"
    assert found["healthy"]["well"] and found["healthy"]["kernel"].startswith("compiled in")
    assert found["healthy"]["diagnostics"] == {"driver": "42"}
    assert found["unavailable"]["well"] and found["unavailable"]["hint"] == "buy one"


ODD = """
from plugin_healthy import *
from dovetail.extend import BackendInfo, DeviceInfo, hookimpl
@hookimpl
def dovetail_backend_info():
    return BackendInfo("odd", "1", (1, 0), "")
@hookimpl
def dovetail_probe(config):
    return [DeviceInfo("odd", 0, "card [/no tag] [red]", "odd")]
"""


def test_device_names_are_not_interpreted_as_markup(install: Install, tmp_path: Path) -> None:
    (tmp_path / "plugin_odd.py").write_text(ODD)
    install("odd")
    done = doctor(tmp_path, backends="odd")
    assert "Traceback" not in done.stderr, done.stderr
    assert "card [/no tag] [red]" in done.stdout


@pytest.mark.parametrize("answer", ["", "[]", '{"kind": 1}', "{", "9" * 5000])
def test_forged_answer_of_a_plugin_is_rejected(
    answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = (0, f"{doctor_module.FINDING_PREFIX}{answer}\n", "")
    monkeypatch.setattr(doctor_module, "_run_process", lambda *arguments: printed)
    record = PluginRecord("healthy", (PluginEntry("healthy", "plugin_healthy"),))
    finding = doctor_module.examine_plugin(record)
    assert (
        finding.state == "crashed" and "cannot be read" in finding.reason and not finding.is_healthy
    )


def test_doctor_succeeds_if_devices_are_merely_absent(install: Install, tmp_path: Path) -> None:
    install("unavailable")
    done = doctor(tmp_path, backends="unavailable")
    ours = [line for line in done.stdout.splitlines() if "unavailable" in line]
    assert done.returncode == 0, done.stdout + done.stderr
    assert any("no such card" in line for line in ours) and "buy one" in done.stdout

"""The `dovetail` command."""

from __future__ import annotations

import importlib.util

import pytest
from dovetail.commands import cli
from dovetail.commands.devices import main as device_list
from dovetail.commands.memory_report import main as memory_report


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    for name in ("demo", "devices", "doctor", "memory", "new-backend", "test-backend"):
        assert name in text


def test_unknown_command_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["devics"])
    assert end.value.code == 2 and "devics" in capsys.readouterr().err


def test_command_of_a_later_version_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(cli.COMMANDS, "demo", ("dovetail.not_written_yet", "nothing"))
    assert cli.main(["demo", "--fast"]) == 2
    assert "is not in this version" in capsys.readouterr().err


def test_import_error_within_a_command_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cli.COMMANDS, "demo", ("json.tool.missing", "nothing"))
    with pytest.raises(ModuleNotFoundError):
        cli.main(["demo"])


def test_remaining_arguments_go_to_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["doctor", "--help"])
    assert "--time-limit" in capsys.readouterr().out


def test_devices_lists_the_reference(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert device_list([]) == 0
    assert "NumPy interpreter" in capsys.readouterr().out


def test_memory_measures_a_device(capsys: pytest.CaptureFixture[str]) -> None:
    assert memory_report(["reference", "--mib", "2"]) == 0
    text = capsys.readouterr().out
    assert "copy in" in text and "GiB/s" in text and "cache hits" in text


@pytest.mark.parametrize("command", ["devices", "doctor", "memory"])
def test_modules_of_commands_exist(command: str) -> None:
    assert importlib.util.find_spec(cli.COMMANDS[command][0]) is not None

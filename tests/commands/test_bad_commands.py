"""Every command with bad input prints one line on stderr and exits with status 2, without a
traceback.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dovetail.command_line import (
    PICTURE_SUFFIXES,
    CommandParser,
    describe_write_error,
    format_error,
)
from dovetail.commands import cli
from dovetail.commands.completion import tree
from dovetail.commands.demo import DEMO_PARTS
from dovetail.errors import InternalError, PluginError

KITS = ("backend", "dtype", "layout")
# The command line, and a part of its message. FILE exists, FOLDER is a folder, GONE is in
# a folder that does not exist.
BAD = [
    ("nothing", "unknown command 'nothing'"),
    ("devics", "did you mean 'devices'?"),
    ("--nonsense", "COMMAND"),
    ("demo nothing", "unknown part 'nothing'; expected one of kernels, "),
    ("demo --device nope", 'no backend for "nope"'),
    ("demo --device reference:7", 'no device "reference:7"'),
    ("demo --device CPU!", "expected a device name"),
    ("demo --out FILE", "already exists; overwrite it with --force"),
    ("demo --out FOLDER", "is a folder"),
    ("demo -o GONE/x.png", "does not exist"),
    ("demo --quik", "unrecognized arguments: --quik; see dovetail demo --help"),
    *((f"demo {part} --device nope", 'no backend for "nope"') for part in DEMO_PARTS),
    *((f"demo {part} --nonsense", "--nonsense") for part in DEMO_PARTS),
    *((f"demo {part} -o GONE/x.png", "does not exist") for part in DEMO_PARTS if part != "scale"),
    ("demo -o a.xyz", "a.xyz is not a picture; the name must end in .png, "),
    ("demo -o a", "the name must end in"),
    *(
        (f"demo {part} -o a.xyz", "the name must end in")
        for part in DEMO_PARTS
        if part != "scale"
    ),
    ("demo scale --folder GONE", "does not exist"),
    ("demo scale --memory 0", "a whole number of at least 1, got '0'"),
    ("demo scale --memory 3", "must be at least 4 MiB"),
    ("demo train --epochs 0", "a whole number of at least 1"),
    ("demo language --steps two", "a whole number of at least 1, got 'two'"),
    ("devices now", "unrecognized arguments: now"),
    ("doctor --time-limit -1", "seconds above 0"),
    ("memory nope", 'no backend for "nope"'),
    ("memory GONE.json", "No such file"),
    ("memory FILE", "FILE"),
    ("memory FILE --replay nope", ""),
    ("memory FILE -o FILE", "exists"),
    ("memory --mib -1", "a whole number of at least 1"),
    ("memory reference --record", "and SCRIPT"),
    ("memory reference --record out.json GONE.py", "does not exist"),
    ("memory reference --record GONE/out.json FILE", "does not exist"),
    ("memory nope --record out.json FILE", 'no backend for "nope"'),
    ("new-backend", "NAME"),
    ("new-backend UP", "must consist of a-z"),
    ("new-backend reference", "exists"),
    ("new-backend odd_card --into FOLDER", "File exists"),
    ("new-backend odd_card --into FILE", "the folder 'FILE' does not exist"),
    ("new-backend odd_card -o GONE", "the folder 'GONE' does not exist"),
    ("new-backend numpy", "name the device"),
    ("new-backend queue", "name the device"),
    ("completion", "SHELL"),
    ("completion cmd", "invalid choice: 'cmd'"),
    *((f"test-{kit}", "required") for kit in (*KITS, "op")),
    *((f"test-{kit} x --report GONE/x.json", "does not exist") for kit in KITS),
    *((f"test-{kit} x --report FILE", "exists") for kit in KITS),
    *((f"test-{kit} x --sample 0", "number of at least 1") for kit in KITS),
    ("test-op gelu", "an op is named as module:name"),
    ("test-op no.such:op", "no.such cannot be imported"),
    ("test-op json:nothing", "nothing"),
    ("test-op math:sin", "dovetail test-op: math:sin has no examples"),
    ("test-op math:pi", "dovetail test-op: math:pi is a float"),
]  # fmt: skip


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the paths for the words in capitals."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.json").write_text("[")
    (tmp_path / "folder" / "dovetail-odd_card").mkdir(parents=True)
    return {"FILE": "there.json", "FOLDER": "folder", "GONE": "gone"}


def status(line: str, paths: dict[str, str]) -> int:
    for word, path in paths.items():
        line = line.replace(word, path)
    try:
        return cli.main(line.split())
    except SystemExit as end:
        return int(end.code or 0)


@pytest.mark.parametrize(("line", "words"), BAD, ids=[line for line, _ in BAD])
def test_bad_input_is_reported_in_one_line(
    line: str, words: str, paths: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(line, paths) == 2
    out, errors = capsys.readouterr()
    for word, path in paths.items():
        words = words.replace(word, path)
    assert errors.startswith("dovetail") and errors.count("\n") == 1, errors
    assert words in errors and out == "", errors


def test_matplotlib_writes_every_accepted_picture_format(tmp_path: Path) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure(figsize=(1, 1))
    figure.subplots().plot([1, 2])
    for suffix in PICTURE_SUFFIXES:
        figure.savefig(tmp_path / f"a{suffix}")
        assert (tmp_path / f"a{suffix}").stat().st_size > 0


def test_picture_suffix_may_be_in_capitals(tmp_path: Path) -> None:
    parser = CommandParser(prog="x")
    parser.add_picture(Path("x.png"))
    assert parser.parse_args(["-o", str(tmp_path / "A.PNG")]).out == tmp_path / "A.PNG"


def test_every_command_and_part_has_a_case_of_bad_input() -> None:
    tried = {tuple(line.split()[:2]) for line, _ in BAD}
    assert {c for c, *_ in tried} >= {*cli.COMMANDS}
    assert {p for c, *rest in tried if c == "demo" for p in rest} >= {*DEMO_PARTS}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("test-backend nope", 'no backend for "nope"'),
        ("test-backend NOPE", "got 'NOPE'; did you mean"),
        ("test-dtype nope", "nope"),
        ("test-dtype nope --device NOPE", "got 'NOPE'; did you mean"),
        ("test-layout nope", "no layout 'nope'"),
        ("test-backend cpu --frob", "unrecognized arguments: --frob; see dovetail test-backend"),
        ("test-layout sparse_coo -k", "argument -k: expected one argument"),
        ("test-backend reference -k and(", "Wrong expression passed to '-k'"),
        ("test-backend reference -n 2x", "invalid parse_numprocesses value"),
    ],
)
def test_kit_of_an_unknown_device_or_layout_fails(line: str, words: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dovetail", *line.split()],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 2
    assert words in done.stderr and "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert done.stderr.startswith(f"dovetail {line.split()[0]}: "), done.stderr


@pytest.mark.parametrize(
    "line", ["demo", "demo text", "demo kernels", "demo scale", "demo language"]
)
def test_missing_packages_are_reported_in_one_line(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name, *rest: None if "." not in name else 1
    )
    assert status(line, {}) == 2
    out, errors = capsys.readouterr()
    assert errors.startswith(f"dovetail {line}: ") and "must be installed: pip" in errors, errors
    assert 'pip install "dovetail-tensor[' in errors and errors.count("\n") == 1 and out == ""


def test_why_not_explains_an_unwritable_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "does not exist" in describe_write_error(Path(os.devnull) / "x.png")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert (
        describe_write_error(tmp_path / "x.png")
        == f"{tmp_path / 'x.png'} cannot be written: permission denied"
    )
    monkeypatch.undo()
    assert describe_write_error(tmp_path / "x.png") == ""


def test_default_file_is_overwritten_and_force_allows_any_file(paths: dict[str, str]) -> None:
    made: Any = tree(cli.COMMANDS)
    from dovetail.commands.demo_kernels import parser

    Path("kernels.png").write_text("")
    assert parser().parse_args([]).out == Path("kernels.png")
    Path("there.png").write_text("")
    assert parser().parse_args(["--out", "there.png", "--force"]).out == Path("there.png")
    assert made.parse_args(["demo", "kernels", "--full"]).full


def test_one_line_shortens_errors_and_keeps_the_remedy() -> None:
    long = 'device type "x" is broken: it does not load\nTraceback\n  File\nTo fix it: reinstall it'
    assert format_error(PluginError(long)) == (
        'device type "x" is broken: it does not load; To fix it: reinstall it'
    )
    assert format_error(FileNotFoundError(2, "No such file", "x")) == "x: No such file"
    assert format_error(ValueError()) == "ValueError"


def test_internal_error_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(arguments: object) -> int:
        raise InternalError("ours")

    monkeypatch.setattr(cli, "_find", lambda module: fails)
    with pytest.raises(InternalError):
        cli.main(["devices"])


def test_error_names_the_part_of_the_demo(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(arguments: object) -> int:
        raise PermissionError(13, "Permission denied", "/there")

    monkeypatch.setattr(cli, "_find", lambda module: fails)
    assert cli.main(["demo", "scale", "--folder", "/there"]) == 2
    assert capsys.readouterr().err == "dovetail demo scale: /there: Permission denied\n"
    assert cli.main(["demo", "--full"]) == 2
    assert capsys.readouterr().err == "dovetail demo: /there: Permission denied\n"


def test_interrupt_is_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_find", lambda module: stopped)
    assert cli.main(["devices"]) == 130
    assert capsys.readouterr().err == "dovetail devices: interrupted\n"


def test_error_of_a_recorded_script_shows_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.py").write_text("raise ValueError('mine')\n")
    assert cli.main(["memory", "reference", "--record", "out.json", "broken.py"]) == 1
    errors = capsys.readouterr().err
    assert "Traceback" in errors and "ValueError: mine" in errors and Path("out.json").exists()


# --- help, version, completion


def test_python_m_dovetail_equals_the_command(tmp_path: Path) -> None:
    def said(*arguments: str) -> str:
        command = [sys.executable, "-m", "dovetail", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
        return done.stdout

    assert said("--version") == "dovetail 0.1.0\n"
    text = said()
    assert text == said("--help")
    for name, (_, help) in cli.COMMANDS.items():
        assert name in text and help in " ".join(text.split())
    for name, (_, help) in DEMO_PARTS.items():
        assert [line for line in text.splitlines() if f"demo {name}" in line and help in line]


COMPLETE = """
eval "$({python} -m dovetail completion bash)"
complete() {{
    COMP_WORDS=(dovetail "$@"); COMP_CWORD=$#; COMPREPLY=()
    _shtab_dovetail; echo "${{COMPREPLY[@]}}"
}}
complete de
complete demo tr
complete demo kernels --de
complete test-layout sparse_coo --device refe
complete new-backend --kind acc
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_commands_parts_options_and_devices(tmp_path: Path) -> None:
    pytest.importorskip("shtab")
    done = subprocess.run(
        ["bash", "-c", COMPLETE.format(python=sys.executable)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    found = [line.split() for line in done.stdout.splitlines()]
    wanted = [["demo", "devices"], ["train"], ["--device"], ["reference"], ["accelerator"]]
    assert found == wanted, done.stdout + done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish", "tcsh"])
def test_completion_script_exists_for_other_shells(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("shtab")
    assert cli.main(["completion", shell]) == 0
    assert "test-layout" in capsys.readouterr().out


def test_completion_without_shtab_names_the_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = sys.modules["importlib.util"].find_spec  # type: ignore[attr-defined]
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "shtab" else found(name)
    )
    assert cli.main(["completion", "bash"]) == 2
    assert 'pip install "dovetail-tensor[completion]"' in capsys.readouterr().err

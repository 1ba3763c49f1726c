"""`dovetail new-backend`: the generated package is small, tidy, and a working backend."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dovetail import extend
from dovetail.commands import cli
from dovetail.commands.new_backend import (
    TEMPLATE,
    TEMPLATE_KINDS,
    check_name,
    files,
    main,
    new_backend,
)
from dovetail.errors import ArgumentError
from extend_names import NAMES as EXTEND
from kit_levels import QUICK_LEVELS
from places import ROOT, TESTS

NAME = "toyc"
NAMES = {"host": NAME, "accelerator": "toyq"}
CORE = ROOT / "core"
LIMITS = {"host": 200, "accelerator": 600}  # total lines of all files
LATE = TESTS / "commands" / "children" / "late_accelerator.py"
every_kind = pytest.mark.parametrize("kind", [*TEMPLATE_KINDS])


def compiler() -> str | None:
    """Return the C compiler that the generated package finds, by its own rule."""
    found: dict[str, Any] = {}
    source = (TEMPLATE / "host" / "dovetail_NAME" / "compile.py").read_text()
    exec(compile(source, "compile.py", "exec"), found)
    return " ".join(found["find_compiler"]() or [])


needs_compiler = pytest.mark.skipif(
    not compiler(), reason="no C compiler was found here: install gcc or clang, or set CC"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for sys.path with the generated packages as pip would install them."""
    folder, source = (tmp_path_factory.mktemp(name) for name in ("site", "source"))
    packages = [str(new_backend(name, source, kind)) for kind, name in NAMES.items()]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation"]
    command += ["--no-deps", "--no-index", "--disable-pip-version-check"]
    command += ["--target", str(folder), *packages]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def run(site: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), str(CORE)])
    cleared = {k: v for k, v in os.environ.items() if not k.startswith("DOVETAIL_")}
    return subprocess.run(
        [sys.executable, *arguments],
        env={**cleared, "PYTHONPATH": path, **environ},
        capture_output=True, text=True, timeout=1400, check=False,
    )  # fmt: skip


# --- the text of the package


@every_kind
def test_generated_package_is_short(kind: str) -> None:
    name = NAMES[kind]
    sizes = {str(path): len(text.splitlines()) for path, text in files(name, kind)}
    modules = ["__init__", "compile", "device", "plugin", *(["driver"] if kind != "host" else [])]
    assert set(sizes) == {
        "README.md", "pyproject.toml", *(f"dovetail_{name}/{m}.py" for m in modules)
    }  # fmt: skip
    assert 100 < sum(sizes.values()) <= LIMITS[kind], sizes


def test_default_kind_is_host() -> None:
    assert [*files(NAME)] == [*files(NAME, "host")] and {*TEMPLATE_KINDS} == {*NAMES}


@every_kind
def test_generated_package_has_no_template_text(kind: str, tmp_path: Path) -> None:
    folder = new_backend(NAME, tmp_path / "deep" / "down", kind)
    written = {p.relative_to(folder) for p in folder.rglob("*") if p.is_file()}
    assert written == {path for path, _ in files(NAME, kind)} and folder.name == "dovetail-toyc"
    for path in written:
        text = (folder / path).read_text()
        assert not re.search(r"\bNAME\b|_NAME", text) and max(map(len, text.splitlines())) <= 100


@every_kind
def test_generated_package_imports_only_public_names(kind: str) -> None:
    for path, text in files(NAME, kind):
        for node in ast.walk(ast.parse(text) if path.suffix == ".py" else ast.Module([], [])):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dovetail"):
                assert node.module in ("dovetail.extend", "dovetail")
                wanted = {a.name for a in node.names}
                assert wanted <= (EXTEND if node.module != "dovetail" else {"extend"})


def test_only_the_driver_contains_the_simulation() -> None:
    texts = {path.stem: text for path, text in files(NAME, "accelerator") if path.suffix == ".py"}
    driver = texts.pop("driver")
    for text in texts.values():
        for name in re.findall(r"\bdriver\.(\w+)", text):
            assert re.search(rf"^(class |def |){name}\b", driver, re.M) and name[0] != "_"
        assert not re.search(r"import (ctypes|threading|queue)\b", text)


@every_kind
def test_readme_names_existing_parts(kind: str) -> None:
    texts = dict(files(NAME, kind))
    code = "\n".join(text for path, text in texts.items() if path.suffix == ".py")
    names = re.findall(r"`(\w+)`", texts[Path("README.md")].partition("|--")[2])
    known = {*re.findall(r"\w+", code), *dir(extend.CStyle), *dir(extend.Backend), *EXTEND}
    assert len(names) > 15 and [n for n in names if n not in known] == []


def test_wheel_of_dovetail_contains_the_templates() -> None:
    settings = (CORE.parent / "pyproject.toml").read_text()
    match = re.search(r"^dovetail = (\[\"py.typed.*\])$", settings, re.M)
    assert match is not None
    carried = {p for pattern in json.loads(match[1]) for p in TEMPLATE.parent.parent.glob(pattern)}
    wanted = {p for p in TEMPLATE.rglob("*") if p.suffix in (".md", ".py", ".toml")}
    assert len(wanted) == 13 and wanted <= carried


# --- names and places


@pytest.mark.parametrize("name", ["", "Fpga", "my-dev", "9lives", "a b", "x:1", "../x", "é", "a\n"])
def test_invalid_device_type_names_raise(name: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="a device type must consist of"):
        new_backend(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_existing_device_type_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError, match="'reference' already exists"):
        check_name("reference")
    monkeypatch.setattr(
        "dovetail.commands.new_backend.backend_distributions", lambda: {"warp": "dovetail-warp"}
    )
    with pytest.raises(ArgumentError, match=r"'warp' already exists; .*pip install .*warp"):
        check_name("warp")
    check_name("weft")


def test_installed_package_name_raises(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "dovetail_taken.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ArgumentError, match="dovetail_taken is already installed"):
        check_name("taken")


def test_existing_files_are_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([NAME, "--into", str(tmp_path)]) == 0
    assert f"pip install -e {tmp_path}" in capsys.readouterr().out
    mine = tmp_path / "dovetail-toyc" / "README.md"
    mine.write_text("mine")
    assert main([NAME, "--into", str(tmp_path)]) == 2
    assert "exists" in capsys.readouterr().err and mine.read_text() == "mine"


def test_new_backend_command_reports_a_bad_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["new-backend", "Not A Name"]) == 2
    assert "must consist of a-z" in capsys.readouterr().err


def test_kind_option_selects_the_template(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["toyq", "--kind", "accelerator", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "dovetail-toyq" / "dovetail_toyq" / "driver.py").exists()
    capsys.readouterr()
    for arguments in (["--help"], ["toyq", "--kind", "toaster"]):
        with pytest.raises(SystemExit):
            main(arguments)
        said = "".join(capsys.readouterr())
        assert all(word in said for word in ("--kind", *TEMPLATE_KINDS)), said


# --- the backend


PROGRAM = """
import sys
import numpy as np
import dovetail as dt

def work(device):
    x = dt.asarray(np.linspace(-30, 30, 10_001, dtype=np.float32), device=device)
    y = dt.asarray(np.arange(-5000, 5001, dtype=np.int64), device=device)
    half = dt.asarray(np.linspace(-9, 9, 777).astype(np.float16), device=device)
    yield dt.tanh(x * 2 + 1) / (1 + x * x)
    yield dt.exp(x).sum()
    yield (y * y * y * y * y * 12345).sum()
    yield y // 7 + y % 7
    yield dt.reshape(x[1:], (100, 100)).sum(axis=0)
    yield dt.sin(half) * half
    yield x[::-3] < 0.25
    yield dt.argmax(dt.cos(x))

for found, expected in zip(work(sys.argv[1]), work("reference"), strict=True):
    a, b = found.numpy(), expected.numpy()
    assert str(found.device) == sys.argv[1] and a.dtype == b.dtype and a.shape == b.shape
    assert a.tobytes() == b.tobytes(), (a, b)
    print(a.dtype, a.size)
"""


@needs_compiler
@every_kind
def test_program_has_the_bits_of_the_reference(kind: str, site: Path, tmp_path: Path) -> None:
    cold = run(site, "-c", PROGRAM, NAMES[kind], DOVETAIL_CACHE_DIR=str(tmp_path))
    assert cold.returncode == 0, cold.stdout + cold.stderr
    assert len(cold.stdout.splitlines()) == 8
    kept = [p for p in tmp_path.glob("kernels/*/*") if p.is_file()]
    assert len(kept) >= 8, "binaries are kept on disk"
    for path in kept:
        assert path.read_bytes()[32:36] in (b"\x7fELF", b"\xcf\xfa\xed\xfe"), "shared objects"
    warm = run(site, "-c", PROGRAM, NAMES[kind], DOVETAIL_CACHE_DIR=str(tmp_path), PATH="")
    no_compiler = "no C compiler was found" in warm.stderr
    assert no_compiler and warm.returncode, "without a compiler the device is unavailable"
    again = run(site, "-c", PROGRAM, NAMES[kind], DOVETAIL_CACHE_DIR=str(tmp_path))
    assert again.stdout == cold.stdout and again.returncode == 0, again.stderr


@every_kind
def test_missing_compiler_is_reported_with_a_remedy(kind: str, site: Path) -> None:
    code = f"import dovetail as dt; dt.zeros(3, device={NAMES[kind]!r}).numpy()"
    done = run(site, "-c", code, CC="no-such-compiler")
    assert done.returncode == 1 and "UnavailableError" in done.stderr
    assert "CC is 'no-such-compiler'" in done.stderr and "install gcc or clang" in done.stderr


@needs_compiler
@every_kind
def test_compile_error_shows_kernel_and_log(kind: str, site: Path, tmp_path: Path) -> None:
    code = f"import dovetail as dt; print((dt.zeros(3, device={NAMES[kind]!r}) + 1).numpy())"
    bad = f"{compiler()} -include no_such_header.h"
    done = run(site, "-c", code, CC=bad, DOVETAIL_CACHE_DIR=str(tmp_path))
    assert done.returncode == 1 and "CompileError" in done.stderr
    assert "no_such_header.h" in done.stderr and "void kernel_" in done.stderr


@needs_compiler
def test_accelerator_executes_late_and_in_order(site: Path, tmp_path: Path) -> None:
    late = {"DOVETAIL_TOYQ_LATE_US": "5000", "DOVETAIL_CACHE_DIR": str(tmp_path)}
    done = run(site, "-W", "ignore::DeprecationWarning", str(LATE), **late)
    assert done.returncode == 0 and done.stdout == "in order\n", done.stdout + done.stderr


def conformance(name: str, site: Path, report: Path, *options: str) -> dict[str, Any]:
    """Return the certificate of a run of the kit."""
    done = run(
        site, "-m", "dovetail.commands.cli", "test-backend", name, "--report", str(report), *options
    )
    assert report.exists(), done.stdout + done.stderr
    certificate: dict[str, Any] = json.loads(report.read_text())
    assert done.returncode == 0 and certificate["conforms"], done.stdout[-20_000:]
    return certificate


@needs_compiler
@every_kind
def test_sampled_kit_passes(kind: str, site: Path, tmp_path: Path, is_plain: bool) -> None:
    options = ("--sample", "9999", *(QUICK_LEVELS if is_plain else ()))
    certificate = conformance(NAMES[kind], site, tmp_path / "report.json", *options)
    assert certificate["device"]["type"] == NAMES[kind] and certificate["sample"] == 9999
    assert certificate["cases"] > 60 and certificate["comparisons"] > 500


@needs_compiler
@pytest.mark.exhaustive
@pytest.mark.timeout(1500)
def test_whole_kit_passes(site: Path, tmp_path: Path) -> None:
    certificate = conformance(NAME, site, tmp_path / "report.json", "-n", "2")
    assert certificate["cases"] > 4000 and certificate["whole"]


@needs_compiler
@pytest.mark.exhaustive
@pytest.mark.timeout(1500)
def test_larger_sample_of_the_kit_passes_on_an_accelerator(site: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    certificate = conformance(NAMES["accelerator"], site, report, "--sample", "40", "-n", "2")
    assert certificate["cases"] > 200 and certificate["sample"] == 40

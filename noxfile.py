"""All checks of the project as sessions of nox, in the Python environment that is active.

    nox -l                        the sessions
    nox -s lint types             two of them
    nox -s unit -- tests/jit      a session with arguments
    nox -s kit -- cpu opencl      the conformance kit on devices

Of tests and kits a part is run, which is the same each time; WHOLE=1 runs all. CERTIFICATES=FOLDER
keeps what the kits found.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nox

nox.options.default_venv_backend = "none"
nox.options.error_on_missing_interpreters = True

WHOLE = bool(os.environ.get("WHOLE"))
CERTIFICATES = Path(os.environ.get("CERTIFICATES") or "certificates").resolve()
PACKAGES = [
    f"dovetail{name}"
    for name in ("", "_cpu_llvm", "_opencl", "_cuda", "_vulkan", "_webgpu", "_dtypes")
]
COMPILED = (
    "capture", "engine", "graph", "jit", "memory", "plugins", "tensor",
    "backends/cpu_llvm/test_launch.py", "backends/cpu_llvm/test_command_list.py",
)  # fmt: skip
# Tests of programs and of files alone, which a second build does not change.
BUILD_INDEPENDENT = (
    "tutorials", "examples", "docs_site", "commands/test_new_backend.py", "test_type_checkers.py",
    "test_tests.py", "test_packages.py", "test_namespace.py",
)  # fmt: skip
# One case of the kit in how many is run. A kernel takes a compiler run of 0.1 s on PoCL and on
# generated backends, and the interpreter takes a second to merge two lists of positions. The
# interpreter is compared with itself, and each other kit runs it again.
KIT_SAMPLES = {
    "reference": 12, "cpu": 4, "opencl": 12, "opencl:1": 48, "cuda": 12, "vulkan": 48,
    "webgpu": 120, "generated": 48, "accelerator": 120,
}  # fmt: skip
LAYOUT_SAMPLES = {
    ("sparse_coo", "reference"): 16, ("sparse_coo", "cpu"): 4, ("sparse_coo", "opencl"): 16,
    ("sparse_csr", "cpu"): 16, ("sparse_csc", "cpu"): 16, ("sparse_bsr", "cpu"): 16,
    ("sharded", "cpu"): 16,
}  # fmt: skip
# Devices whose kit is left out where their driver is missing: the files of PoCL and of Mesa.
DRIVER_FILES = {
    "opencl:1": ("/etc/OpenCL/vendors", "pocl*.icd"),
    "vulkan": ("/usr/share/vulkan/icd.d", "lvp*.json"),
    "webgpu": ("/usr/share/vulkan/icd.d", "lvp*.json"),
}
HANG_OPTIONS = ("-o", "faulthandler_timeout=400", "-o", "faulthandler_exit_on_timeout=true")
HUNG = "Timeout (0:06:40)!"  # what faulthandler writes after that
KIT_LIMIT = ("timeout", "-k", "30", "1200") if shutil.which("timeout") else ()


def run_tests(session: nox.Session, *options: str, **environment: str) -> None:
    """Run pytest. What hangs inside a driver, where no signal arrives, ends with all stacks.

    Intel's OpenCL compiler may wait for itself (docs/internals/backends.md). Tests that hung are
    run once more, alone; any other failure is a failure.
    """
    whole = ("--part", "1") if WHOLE else ()
    command = [sys.executable, "-m", "pytest", *whole, *options, *HANG_OPTIONS]
    session.log(" ".join(command))
    output = list[str]()
    with subprocess.Popen(
        command,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            output.append(line)
    if process.returncode == 0:
        return
    text = "".join(output)
    failures = len(re.findall(r"^(?:FAILED|ERROR) ", text, re.MULTILINE))
    if not failures or failures != text.count(HUNG):
        session.error(f"pytest ended with {process.returncode}")
    session.log("hung once, tried again")
    session.run(*command, "--lf", "-n", "0", env=environment)


@nox.session
def lint(session: nox.Session) -> None:
    """Check formatting, the rules of ruff, generated files and the list of public names."""
    for command in ("sizes", "faces", "names", "metadata"):
        session.run("python", f"tools/{command}.py", "--check")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Check types, as strictly as mypy does."""
    session.run("mypy", "--strict", *(x for name in PACKAGES for x in ("-p", name)))


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site; a warning is an error."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["mkdocs", "build", "--strict", "--quiet", "--site-dir", folder]
        session.run(*command, env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session
def unit(session: nox.Session) -> None:
    """Run the tests; without arguments, twice as many as README.md's command."""
    sampled = () if WHOLE else ("--part", "24", "--slow-part", "2")
    run_tests(session, *(session.posargs or sampled))


@nox.session
def pages(session: nox.Session) -> None:
    """Look at the site in a browser."""
    run_tests(session, "-m", "exhaustive", "tests/docs_site")


@nox.session
def pure(session: nox.Session) -> None:
    """Run the tests of what can be compiled, as Python."""
    chosen = ["--part", "48", *(f"tests/{name}" for name in COMPILED)]
    if WHOLE:
        chosen = [f"--ignore=tests/{name}" for name in BUILD_INDEPENDENT]
    run_tests(session, *(session.posargs or chosen), DOVETAIL_PURE="1")


@nox.session
def wheel(session: nox.Session) -> None:
    """Build and check the packages; use the compiled wheels in a clean environment."""
    session.run("python", "tools/packages.py", "--quick")
    run_tests(session, "-m", "exhaustive", "tests/test_compiled.py")


@nox.session
def pythons(session: nox.Session) -> None:
    """Test what the versions of Python differ in."""
    session.run("tools/pythons", *(session.posargs or ("3.12", "3.13", "3.14")), external=True)


@nox.session
def faults(session: nox.Session) -> None:
    """Show that the kits find planted faults; of devices with limits, on the one with all."""
    tests = [f"tests/testing/test_{name}_catches.py" for name in ("kit", "layout_kit")]
    chosen = "not Small or SmallWords"
    run_tests(session, "--part", "16", "-m", "exhaustive", "-k", chosen, *tests)
    if WHOLE:
        run_tests(session, "-m", "exhaustive", "tests/backends/cuda/test_compiles.py")


@nox.session
def kit(session: nox.Session) -> None:
    """Run the conformance kits of devices and layouts, and print a line for each."""
    devices = list(session.posargs or KIT_SAMPLES)
    for device, (folder, pattern) in DRIVER_FILES.items():
        if device in devices and not any(Path(folder).glob(pattern)):
            session.log(f"no {pattern} in {folder}: the kit of {device} is left out")
            devices.remove(device)
    if "webgpu" in devices and importlib.util.find_spec("wgpu") is None:
        session.log("no wheel of wgpu: the kit of webgpu is left out")
        devices.remove("webgpu")
    CERTIFICATES.mkdir(parents=True, exist_ok=True)
    names = list[str]()
    with tempfile.TemporaryDirectory() as folder:
        for device in devices:
            _run_kit(session, device, Path(folder))
            names.append(device)
    for (layout, device), sample in LAYOUT_SAMPLES.items():
        if device in devices:
            names.append(f"{layout}-{device}")
            _run(session, "test-layout", layout, names[-1], sample, "--device", device)
    part = "" if WHOLE else " ".join(names)
    session.run("python", "tools/certificates.py", str(CERTIFICATES), "--part", part, *names)


def _run_kit(session: nox.Session, device: str, folder: Path) -> None:
    """Run the kit of a device; of a generated one, what `dovetail new-backend` writes, unedited."""
    kind = {"generated": "host", "accelerator": "accelerator"}.get(device)
    if kind is not None:
        session.run("dovetail", "new-backend", device, "--kind", kind, "--into", str(folder))
        package = str(folder / f"dovetail-{device}")
        session.run("python", "-m", "pip", "install", "--quiet", "--no-deps", package)
    environment, options = {}, list[str]()
    if device == "cuda" and shutil.which("nvidia-smi") is None:
        path = os.pathsep.join(["tests", *filter(None, [os.environ.get("PYTHONPATH")])])
        environment, options = {"PYTHONPATH": path}, ["-p", "cuda_double.plugin"]
    _run(session, "test-backend", device, device, KIT_SAMPLES[device], *options, **environment)
    if kind is not None:  # tests have devices of these names, too
        session.run("python", "-m", "pip", "uninstall", "--quiet", "--yes", f"dovetail-{device}")


def _run(
    session: nox.Session, command: str, subject: str, certificate: str, sample: int, *options: str,
    **environment: str,
) -> None:  # fmt: skip
    report = str(CERTIFICATES / f"{certificate}.json")
    chosen = [] if WHOLE else ["--sample", str(sample)]
    session.run(
        *KIT_LIMIT, "dovetail", command, subject, "--force", "--report", report, "-n", "2",
        *options, *chosen, env=environment, external=True,
        success_codes=[0, 1, 124, 137],  # the certificate, or that there is none, says the rest
    )  # fmt: skip


@nox.session
def timing(session: nox.Session) -> None:
    """Run the tests of time, which need a machine that does nothing else."""
    session.run("python", "-m", "pytest", "-m", "timing", "-n", "0")


@nox.session
def coverage(session: nox.Session) -> None:
    """Measure which lines the tests of some packages run."""
    # Without the kit's entry point, which imports dovetail before coverage begins.
    tests = session.posargs or ("tests/graph", "tests/engine")
    session.run(
        "python", "-m", "pytest", "-q", "-p", "no:dovetail", "--cov", *tests,
        env={"DOVETAIL_PURE": "1"},
    )  # fmt: skip

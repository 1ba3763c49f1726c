"""Build the wheels and sdists of all four distributions, and check them as an index user would.

    python tools/packages.py [--into FOLDER] [--quick] [--release]

`--quick`: build with the installed tools; download and install nothing.
`--release`: check for an upload: placeholders are not allowed as addresses of the project.

The wheels of the core and of cpu are built without their compiled modules; tests/test_compiled.py
tests those.
"""

from __future__ import annotations

import argparse
import email.message
import email.parser
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

from metadata import compatible

ROOT = Path(__file__).parent.parent
DISTRIBUTIONS = {
    "dovetail-tensor": ROOT,
    "dovetail-cpu-llvm": ROOT / "backends/cpu_llvm",
    "dovetail-opencl": ROOT / "backends/opencl",
    "dovetail-cuda": ROOT / "backends/cuda",
    "dovetail-vulkan": ROOT / "backends/vulkan",
    "dovetail-webgpu": ROOT / "backends/webgpu",
    "dovetail-dtypes": ROOT / "dtypes",
}
CORE = "dovetail-tensor"
PYTHONS = ("3.11", "3.12", "3.13")
LINKS = {"Documentation", "Source", "Issues", "Changes"}
IGNORED_PATTERNS = (
    "*.so",
    "*.pyd",
    "*.egg-info",
    "__pycache__",
    "build",
    "dist",
    ".*",
    "tests",
    "docs",
)
PLACEHOLDER = ".invalid/"
PROGRAM = """
import dovetail as dt
x = dt.ones((2, 3), device={device!r})
print(dt.tanh(x).sum().item() > 4.5, x.device, dt.__version__)
"""
BUILD_SUFFIXES = (
    ".pxd",
    ".pyx",
)  # in the sdist, which is built from; no user of a wheel reads them


def main() -> int:
    """Build and check the distributions; print the problems; return 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, help="folder for the files; default: a temporary one")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--release", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        dist = (args.into or Path(work, "dist")).absolute()
        for name, folder in DISTRIBUTIONS.items():
            build(copy_sources(folder, Path(work, "sources", name)), dist, args.quick)
        problems = check_distributions(dist, args.release)
        if not problems and not args.quick:
            check_installation(dist, Path(work, "user"))
    for line in problems:
        print(line, file=sys.stderr)
    print(f"{len(DISTRIBUTIONS)} distributions: {'wrong' if problems else 'well'}")
    return bool(problems)


def copy_sources(folder: Path, to: Path) -> Path:
    """Copy the sources of one distribution, without build outputs, and return the copy."""
    ignored_folders = ("backends", "bench", "changes", "examples") if folder == ROOT else ()
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns(*IGNORED_PATTERNS, *ignored_folders))
    return to


def build(source: Path, dist: Path, quick: bool) -> None:
    """Build the sdist, and the wheel from the sdist."""
    here = ["--no-isolation", "--skip-dependency-check"] if quick else []
    command = [sys.executable, "-m", "build", *here, "--outdir", str(dist), str(source)]
    run(command, DOVETAIL_PURE="1")


def run(command: list[str], **environ: str) -> str:
    """Run a command and return its output; raise SystemExit with all output if it fails."""
    clear = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "DOVETAIL_PURE")}
    done = subprocess.run(
        command, env={**clear, **environ}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def check_distributions(dist: Path, release: bool = False) -> list[str]:
    """Return a line for each problem of the wheels and sdists in a folder."""
    files = sorted(map(str, dist.iterdir()))
    run([sys.executable, "-m", "twine", "check", "--strict", *files])
    problems, versions = [], set()
    for name, folder in DISTRIBUTIONS.items():
        stem = name.replace("-", "_")
        wheels, sdists = [*dist.glob(f"{stem}-[0-9]*.whl")], [*dist.glob(f"{stem}-[0-9]*.tar.gz")]
        if len(wheels) != 1 or len(sdists) != 1:
            problems.append(f"{name}: {len(wheels)} wheels and {len(sdists)} sdists")
            continue
        with zipfile.ZipFile(wheels[0]) as wheel, tarfile.open(sdists[0]) as sdist:
            wheel_files = {*wheel.namelist()}
            sdist_files = {n.partition("/")[2] for n in sdist.getnames()}
            (path,) = (n for n in wheel_files if n.endswith(".dist-info/METADATA"))
            metadata_message = email.parser.BytesParser().parsebytes(wheel.read(path))
        versions.add(metadata_message["Version"])
        found = [
            *metadata(metadata_message, name, release),
            *contents(folder, wheel_files, sdist_files),
        ]
        problems += [f"{name}: {line}" for line in found]
    if len(versions) != 1:
        problems.append(f"versions differ: {', '.join(sorted(versions))}")
    return problems


def metadata(message: email.message.Message, name: str, release: bool = False) -> list[str]:
    """Return the problems of the metadata that an index shows for a distribution."""
    problems = []
    text = str(message.get_payload())
    if message["Description-Content-Type"] != "text/markdown" or len(text) < 400:
        problems.append("its page has no text")
    if links := relative_links(text):
        problems.append(f"links of its page lead nowhere on an index: {', '.join(links)}")
    if message["License-Expression"] != "BSD-3-Clause" or message.get_all("License-File") != [
        "LICENSE"
    ]:
        problems.append("it names no licence")
    links = dict(line.split(", ", 1) for line in message.get_all("Project-URL", []))
    if {*links} != LINKS:
        problems.append(f"it has no link {', '.join(sorted(LINKS - {*links}))}")
    if release and any(PLACEHOLDER in url for url in (*links.values(), text)):
        problems.append("its addresses are placeholders: see docs/releasing.md")
    classes = message.get_all("Classifier", [])
    if {f"Programming Language :: Python :: {v}" for v in PYTHONS} - {*classes}:
        problems.append(f"its classifiers do not name Python {', '.join(PYTHONS)}")
    if message["Requires-Python"] != f">={PYTHONS[0]}":
        problems.append(f"Requires-Python is {message['Requires-Python']}")
    wanted = compatible(str(message["Version"]))
    requires = message.get_all("Requires-Dist", [])
    ours = [r for r in requires if re.match(r"dovetail-[\w-]+(?![\w[-])", r)]
    for line in ours:
        given = re.sub(r"^[\w-]+", "", line.partition(";")[0].strip())
        if {*given.split(",")} != {*wanted.split(",")}:
            problems.append(f"{line!r} does not ask for {wanted}")
    if len(ours) != (len(DISTRIBUTIONS) - 1 if name == CORE else 1):
        problems.append(f"it asks for {len(ours)} of dovetail's distributions")
    return problems


def relative_links(page: str) -> list[str]:
    """Return the targets of links and pictures in Markdown that are neither URLs nor anchors."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page, flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]*)|\b(?:src|srcset|href)=\"([^\"]*)", text)
    return [a or b for a, b in targets if not re.match(r"https?:|mailto:|#", a or b)]


def contents(folder: Path, wheel_files: set[str], sdist_files: set[str]) -> list[str]:
    """Return the sources that a wheel or an sdist lacks, and the extra packages of the wheel."""
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    places = project.get("package-dir", {})
    wanted = {}
    for package in project["packages"]:
        root, *rest = package.split(".")
        for path in (
            (folder / places.get("", ".") / places.get(root, root)).joinpath(*rest).iterdir()
        ):
            if path.suffix in (".py", ".pyi", ".pxd", ".pyx", ".c") or path.name == "py.typed":
                wanted["/".join([*package.split("."), path.name])] = path.relative_to(folder)
    in_wheel = {name for name in wanted if not name.endswith(BUILD_SUFFIXES)}
    lacks = sorted(in_wheel - wheel_files)
    lacks += sorted(str(path) for path in wanted.values() if path.as_posix() not in sdist_files)
    wrong = [f"{name} is missing" for name in lacks]
    wrong += [f"{name} is missing" for name in ("LICENSE", "README.md") if name not in sdist_files]
    if not any(name.endswith("/licenses/LICENSE") for name in wheel_files):
        wrong.append("the wheel has no LICENSE")
    roots = {package.partition(".")[0] for package in project["packages"]}
    alien = {n.partition("/")[0] for n in wheel_files if ".dist-info/" not in n} - roots
    alien |= {name for name in wheel_files if name.endswith(BUILD_SUFFIXES)}
    return wrong + [f"the wheel holds {name}" for name in sorted(alien)]


def check_installation(dist: Path, user: Path) -> None:
    """Install the wheels, then the sdists, as a user would, and run a short program on each."""
    venv.create(user, with_pip=True)
    python = str(user / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    pip = [python, "-m", "pip", "install", "-q", "--find-links", str(dist)]
    run([*pip, CORE])  # without a backend, only the reference device works
    output = run([python, "-W", "error", "-c", PROGRAM.format(device="reference")])
    assert output.startswith("True reference "), output
    run([*pip, f"{CORE}[cpu]"])
    output = run([python, "-W", "error", "-c", PROGRAM.format(device=None)])
    assert output.startswith("True cpu "), output
    names = "print(sorted(r for r in dovetail.plugins.registry.records()))"
    others = [f"dovetail-{name}" for name in ("opencl", "cuda", "vulkan", "webgpu")]
    run([*pip, "--no-deps", *others])
    output = run([python, "-c", f"import dovetail\n{names}"])
    assert output == "['cpu', 'cuda', 'opencl', 'reference', 'vulkan', 'webgpu']\n", output
    run([*pip, "--no-deps", "dovetail-dtypes"])
    output = run([python, "-c", "import dovetail as dt; print(dt.ones(1).astype('int8_32'))"])
    assert "int8_32" in output, output
    run([python, "-m", "pip", "uninstall", "-q", "-y", *DISTRIBUTIONS])
    sdists = [str(path) for path in sorted(dist.glob("*.tar.gz"))]
    run([*pip, "--no-deps", *sdists], DOVETAIL_PURE="1")
    output = run([python, "-c", PROGRAM.format(device=None)])
    assert output.startswith("True cpu "), output


if __name__ == "__main__":
    sys.exit(main())

"""Builds the wheels and sdists of all four distributions, and checks what a user of an index gets.

    python tools/packages.py [--into FOLDER] [--quick] [--release]

`--quick`: what is installed here builds them, nothing is downloaded, and nothing is installed.
`--release`: as for the index: the addresses of the project have to be real ones.

The wheels of the core and of cpu are built without their compiled parts; tests/test_compiled.py has
those.
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

ROOT = Path(__file__).parent.parent
DISTRIBUTIONS = {
    "dovetail": ROOT,
    "dovetail-cpu-llvm": ROOT / "backends/cpu_llvm",
    "dovetail-opencl": ROOT / "backends/opencl",
    "dovetail-cuda": ROOT / "backends/cuda",
}
PYTHONS = ("3.11", "3.12", "3.13")
LINKS = {"Documentation", "Source", "Issues", "Changes"}
LEFT_OUT = ("*.so", "*.pyd", "*.egg-info", "__pycache__", "build", "dist", ".*", "tests", "docs")
PLACEHOLDER = ".invalid/"
PROGRAM = """
import dovetail as dt
x = dt.ones((2, 3), device={device!r})
print(dt.tanh(x).sum().item() > 4.5, x.device, dt.__version__)
"""


def main() -> int:
    """0 if all is as it should be; else 1, and what is not is printed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, help="where the files go; nowhere, without it")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--release", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        dist = (asked.into or Path(work, "dist")).absolute()
        for name, folder in DISTRIBUTIONS.items():
            build(copied(folder, Path(work, "sources", name)), dist, asked.quick)
        wrong = checked(dist, asked.release)
        if not wrong and not asked.quick:
            installed(dist, Path(work, "user"))
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{len(DISTRIBUTIONS)} distributions: {'wrong' if wrong else 'well'}")
    return bool(wrong)


def copied(folder: Path, to: Path) -> Path:
    """A copy of the sources of one distribution, with nothing that was made of them."""
    others = ("backends", "bench", "changes", "examples") if folder == ROOT else ()
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns(*LEFT_OUT, *others))
    return to


def build(source: Path, dist: Path, quick: bool) -> None:
    """The sdist, and the wheel that is made of it."""
    here = ["--no-isolation", "--skip-dependency-check"] if quick else []
    command = [sys.executable, "-m", "build", *here, "--outdir", str(dist), str(source)]
    run(command, DOVETAIL_PURE="1")


def run(command: list[str], **environ: str) -> str:
    """What a command prints. Raises: SystemExit with all that it said, if it fails."""
    clear = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "DOVETAIL_PURE")}
    done = subprocess.run(
        command, env={**clear, **environ}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def checked(dist: Path, release: bool = False) -> list[str]:
    """What is wrong with the files in a folder, a line each."""
    files = sorted(map(str, dist.iterdir()))
    run([sys.executable, "-m", "twine", "check", "--strict", *files])
    wrong, versions = [], set()
    for name, folder in DISTRIBUTIONS.items():
        stem = name.replace("-", "_")
        wheels, sdists = [*dist.glob(f"{stem}-[0-9]*.whl")], [*dist.glob(f"{stem}-[0-9]*.tar.gz")]
        if len(wheels) != 1 or len(sdists) != 1:
            wrong.append(f"{name}: {len(wheels)} wheels and {len(sdists)} sdists")
            continue
        with zipfile.ZipFile(wheels[0]) as wheel, tarfile.open(sdists[0]) as sdist:
            held = {*wheel.namelist()}
            packed = {n.partition("/")[2] for n in sdist.getnames()}
            (path,) = (n for n in held if n.endswith(".dist-info/METADATA"))
            said = email.parser.BytesParser().parsebytes(wheel.read(path))
        versions.add(said["Version"])
        found = [*metadata(said, name, release), *contents(folder, held, packed)]
        wrong += [f"{name}: {line}" for line in found]
    if len(versions) != 1:
        wrong.append(f"versions differ: {', '.join(sorted(versions))}")
    core = (ROOT / "core/dovetail/__init__.py").read_text("utf-8")
    if not versions <= {*re.findall(r'^__version__ = "(.*?)"', core, re.MULTILINE)}:
        wrong.append("dovetail.__version__ is another one")
    return wrong


def metadata(said: email.message.Message, name: str, release: bool = False) -> list[str]:
    """What is wrong with what an index shows of a distribution."""
    wrong = []
    text = str(said.get_payload())
    if said["Description-Content-Type"] != "text/markdown" or len(text) < 400:
        wrong.append("its page has no text")
    if said["License-Expression"] != "BSD-3-Clause" or said.get_all("License-File") != ["LICENSE"]:
        wrong.append("it names no licence")
    links = dict(line.split(", ", 1) for line in said.get_all("Project-URL", []))
    if {*links} != LINKS:
        wrong.append(f"it has no link {', '.join(sorted(LINKS - {*links}))}")
    if release and any(PLACEHOLDER in url for url in (*links.values(), text)):
        wrong.append("its addresses are placeholders: see docs/releasing.md")
    classes = said.get_all("Classifier", [])
    if {f"Programming Language :: Python :: {v}" for v in PYTHONS} - {*classes}:
        wrong.append(f"its classifiers do not name Python {', '.join(PYTHONS)}")
    if said["Requires-Python"] != f">={PYTHONS[0]}":
        wrong.append(f"Requires-Python is {said['Requires-Python']}")
    wanted = pin(str(said["Version"]))
    ours = [r for r in said.get_all("Requires-Dist", []) if re.match(r"dovetail\b(?!\[)", r)]
    for line in ours:
        given = re.sub(r"^[\w-]+", "", line.partition(";")[0].strip())
        if {*given.split(",")} != {*wanted.split(",")}:
            wrong.append(f"{line!r} does not ask for {wanted}")
    if len(ours) != (len(DISTRIBUTIONS) - 1 if name == "dovetail" else 1):
        wrong.append(f"it asks for {len(ours)} of dovetail's distributions")
    return wrong


def pin(version: str) -> str:
    """The versions that go together with one: as docs/versions.md has it."""
    major, minor = map(int, version.split(".")[:2])
    return f">={major}.{minor},<{major}.{minor + 1}" if major == 0 else f">={major},<{major + 1}"


def contents(folder: Path, held: set[str], packed: set[str]) -> list[str]:
    """What a wheel and an sdist lack of the sources, or hold beside them."""
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    places = project.get("package-dir", {})
    wanted = {}
    for package in project["packages"]:
        root, *rest = package.split(".")
        for path in (folder / places.get(root, root)).joinpath(*rest).iterdir():
            if path.suffix in (".py", ".pyi", ".pxd", ".pyx", ".c") or path.name == "py.typed":
                wanted["/".join([*package.split("."), path.name])] = path.relative_to(folder)
    lacks = sorted(name for name in wanted if name not in held)
    lacks += sorted(str(path) for path in wanted.values() if path.as_posix() not in packed)
    wrong = [f"{name} is missing" for name in lacks]
    wrong += [f"{name} is missing" for name in ("LICENSE", "README.md") if name not in packed]
    if not any(name.endswith("/licenses/LICENSE") for name in held):
        wrong.append("the wheel has no LICENSE")
    roots = {package.partition(".")[0] for package in project["packages"]}
    alien = {n.partition("/")[0] for n in held if ".dist-info/" not in n} - roots
    return wrong + [f"the wheel holds {name}" for name in sorted(alien)]


def installed(dist: Path, user: Path) -> None:
    """Installs what was built as a user would, and runs three lines; the sdists, too."""
    venv.create(user, with_pip=True)
    python = str(user / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    pip = [python, "-m", "pip", "install", "-q", "--find-links", str(dist)]
    run([*pip, "dovetail"])  # alone: the interpreter
    said = run([python, "-W", "error", "-c", PROGRAM.format(device="reference")])
    assert said.startswith("True reference "), said
    run([*pip, "dovetail[cpu]"])
    said = run([python, "-W", "error", "-c", PROGRAM.format(device=None)])
    assert said.startswith("True cpu "), said
    names = "print(sorted(r for r in dovetail.plugins.registry.records()))"
    run([*pip, "--no-deps", "dovetail-opencl", "dovetail-cuda"])
    said = run([python, "-c", f"import dovetail\n{names}"])
    assert said == "['cpu', 'cuda', 'opencl', 'reference']\n", said
    run([python, "-m", "pip", "uninstall", "-q", "-y", *DISTRIBUTIONS])
    sdists = [str(path) for path in sorted(dist.glob("*.tar.gz"))]
    run([*pip, "--no-deps", *sdists], DOVETAIL_PURE="1")
    said = run([python, "-c", PROGRAM.format(device=None)])
    assert said.startswith("True cpu "), said


if __name__ == "__main__":
    sys.exit(main())

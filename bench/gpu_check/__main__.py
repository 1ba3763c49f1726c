"""`python bench/gpu_check`: everything that has to be seen on a real GPU, in one command.

Runs the conformance kit, the demo and the measurements on this machine's GPU, through CUDA and,
where its driver offers one, through OpenCL, and writes docs/gpu-runs/<gpu>-<date>.md. Installs
nothing, and needs no network: the working tree is used as it is, with NumPy, cuda-bindings and
NVRTC of the machine, and with the wheels in bench/gpu_check/wheels for what it lacks, which
`python bench/gpu_check --pack` fetches beforehand (`--pack 3.12`: for that Python there). Where
there is no GPU it says why, and writes nothing.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from page import page
from tree import NEEDED, ROOT, WHEELS, search_path

HERE = Path(__file__).resolve().parent
RUNS = ROOT / "docs" / "gpu-runs"
STEPS = ("demo", "figures", "kit")


class Check:
    """One run, step by step. The page is written anew after each, so that what was found stays."""

    def __init__(self, folder: Path, asked: argparse.Namespace) -> None:
        self.folder, self.asked = folder, asked
        self.run: dict[str, Any] = {"kits": {}, "figures": {}, "problems": []}
        found = [*search_path(folder / "metadata"), os.environ.get("PYTHONPATH", "")]
        path = os.pathsep.join(filter(None, found))
        self.environ = {**os.environ, "PYTHONPATH": path, "DOVETAIL_CACHE_DIR": str(folder)}

    def command(
        self, what: str, *arguments: str, minutes: float
    ) -> subprocess.CompletedProcess[str] | None:
        """A finished command of this Python; None, and a line among the problems, if it hung."""
        limit = 60 * (self.asked.minutes or minutes)
        try:
            return subprocess.run(
                [sys.executable, *arguments],
                env=self.environ, capture_output=True, text=True, timeout=limit, cwd=self.folder,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            self.run["problems"].append(f"{what}: not done after {limit / 60:g} minutes")
            return None

    def plugins(self) -> dict[str, Any]:
        """What the doctor says, by device type."""
        done = self.command("doctor", "-m", "dovetail.commands.cli", "doctor", "--json", minutes=3)
        if done is None or not done.stdout.strip():
            raise SystemExit(f"dovetail doctor did not answer:\n{done and done.stderr}")
        return {p["type"]: p for p in json.loads(done.stdout)["plugins"]}

    def devices(self, plugins: dict[str, Any]) -> list[str]:
        """The names under which a GPU can be had: of cuda, and of opencl where it lists one."""
        gpu = re.compile("NVIDIA|GeForce|Tesla|Quadro|Radeon|gfx", re.IGNORECASE)
        found = [line.split(" ")[0] for line in plugins["cuda"]["devices"][:1]]
        others = plugins.get("opencl", {}).get("devices", [])
        return found + [line.split(" ")[0] for line in others if gpu.search(line)][:1]

    def kit(self, device: str) -> None:
        """The conformance kit."""
        report = self.folder / f"kit-{device}.json"
        workers = ["-n", "8"] if importlib.util.find_spec("xdist") else []
        options = [device, f"--report={report}", f"--sample={self.asked.sample}", *workers]
        done = self.command(
            f"kit on {device}", "-m", "dovetail.commands.cli", "test-backend", *options, minutes=8
        )
        if report.exists():
            self.run["kits"][device] = json.loads(report.read_text())
        elif done is not None:
            self.run["problems"].append(f"kit on {device}: `{_last(done)}`")

    def demo(self, devices: list[str]) -> None:
        """The demo, whose digests must be equal on all devices; the reference is one of them."""
        chosen = [f"--device={d}" for d in ("reference", *devices)]
        done = self.command("demo", "-m", "dovetail.commands.cli", "demo", *chosen, minutes=4)
        if done is not None:
            verdict = (
                "" if done.returncode == 0 else f"\nexit status {done.returncode}: {_last(done)}"
            )
            self.run["demo"] = _plain(done.stdout)[-6000:] + verdict

    def figures(self, device: str) -> None:
        """The measurements."""
        options = [device, f"--elements={self.asked.elements}"]
        done = self.command(f"figures of {device}", str(HERE / "figures.py"), *options, minutes=8)
        if done is not None and done.returncode == 0:
            self.run["figures"][device] = json.loads(done.stdout.splitlines()[-1])
        elif done is not None:
            self.run["problems"].append(f"figures of {device}: `{_last(done)}`")

    def write(self) -> Path:
        """Writes the page, and says where."""
        self.asked.out.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"\W+", "-", self.run["gpu"]).strip("-").lower()
        path: Path = self.asked.out / f"{name}-{self.run['date']}.md"
        path.write_text(page(self.run))
        return path


def _last(done: subprocess.CompletedProcess[str]) -> str:
    return ([*done.stdout.splitlines(), *done.stderr.splitlines()] or ["no output"])[-1][:300]


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def setting(plugin: dict[str, Any], known: str | None) -> dict[str, str]:
    """Commit, versions and driver."""
    git = [
        "git",
        "-C",
        str(ROOT),
        "describe",
        "--always",
        "--dirty=+",
        "--abbrev=40",
        "--exclude=*",
    ]
    try:
        found = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
        commit = known or found  # a copy of the tree may lie in a checkout of something else
    except (OSError, subprocess.CalledProcessError):
        commit = known or "unknown: no git here"
    ask = ["nvidia-smi", "--query-gpu=driver_version,memory.total", "--format=csv,noheader"]
    try:
        driver = subprocess.run(
            ask, capture_output=True, text=True, check=True
        ).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        driver = "unknown: no nvidia-smi here"
    return {
        "commit": commit, "driver, memory": driver, "Python": platform.python_version(),
        **{k: str(v) for k, v in plugin["diagnostics"].items()},
        "first kernel": plugin["kernel"],
    }  # fmt: skip


def pack(version: str) -> int:
    """Fetches the wheels that a machine without a network may lack, for a Python on Linux."""
    pip = ["pip", "download", "--no-deps", "--only-binary=:all:", "--implementation=cp"]
    tags = [f"--platform=manylinux_2_{n}_x86_64" for n in (28, 27, 24, 17, 12)]
    options = [f"--python-version={version}", *tags, "--platform=manylinux2014_x86_64"]
    command = [sys.executable, "-m", *pip, *options, "--dest", str(WHEELS), *NEEDED]
    return subprocess.call(command)


def main() -> int:
    """0 if there is a GPU on which everything ran; 1 if something failed there; 2 without a GPU."""
    parser = argparse.ArgumentParser(prog="python bench/gpu_check", description=__doc__)
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    parser.add_argument(
        "--pack", nargs="?", const=here, metavar="PYTHON",
        help="fetch wheels for that Python, where there is a network, and end",
    )  # fmt: skip
    parser.add_argument("--sample", type=int, default=1, help="one in so many cases of the kit")
    parser.add_argument("--elements", type=int, default=1 << 28, help="of the large arrays")
    parser.add_argument("--steps", nargs="+", default=STEPS, choices=STEPS, help="only these")
    parser.add_argument("--minutes", type=float, help="limit of each step")
    parser.add_argument("--commit", help="of the tree, where there is no git to ask")
    parser.add_argument("--out", type=Path, default=RUNS, help="folder of the page")
    asked = parser.parse_args()
    if asked.pack:
        return pack(asked.pack)
    with tempfile.TemporaryDirectory() as folder:
        check = Check(Path(folder), asked)
        plugins = check.plugins()
        if not plugins["cuda"]["devices"]:
            cuda = plugins["cuda"]
            print(f"No GPU to check: {cuda['reason']}\n{cuda['hint']}", file=sys.stderr)
            return 2
        return everything(check, plugins)


def everything(check: Check, plugins: dict[str, Any]) -> int:
    """All steps on all devices, quick ones first."""
    devices = check.devices(plugins)
    check.run["gpu"] = plugins["cuda"]["devices"][0].split(" ", 1)[1]
    check.run["date"] = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    check.run["setting"] = setting(plugins["cuda"], check.asked.commit)
    if "demo" in check.asked.steps:
        check.demo(devices)
    path = check.write()
    for name in ("figures", "kit"):
        for device in devices if name in check.asked.steps else ():
            getattr(check, name)(device)
            path = check.write()
    print(path.read_text())
    good = all(k["conforms"] for k in check.run["kits"].values()) and not check.run["problems"]
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

"""Makes the working tree importable as if its distributions were installed: metadata for entry
points in a folder, and a path. For machines without a network, where nothing is to be installed.
"""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROJECTS = (ROOT, *sorted(p.parent for p in ROOT.glob("backends/*/pyproject.toml")))
VERSION = re.findall(r'__version__ = "(.+?)"', (ROOT / "core/dovetail/__init__.py").read_text())[0]
WHEELS = Path(__file__).resolve().parent / "wheels"  # `python bench/gpu_check --pack`
NEEDED = (
    "pluggy", "platformdirs", "optree", "typing-extensions", "rich", "markdown-it-py", "mdurl",
    "pygments", "pytest", "iniconfig", "packaging", "pytest-xdist", "execnet", "pytest-timeout",
    "cuda-pathfinder", "pyopencl", "pytools", "siphash24",
)  # fmt: skip


def search_path(folder: Path) -> list[str]:
    """What PYTHONPATH is to hold. Writes metadata, and what this Python lacks, into `folder`."""
    carried = folder / "carried"
    for wheel in sorted(WHEELS.glob("*.whl")):
        if not _installed(wheel.name.partition("-")[0]):
            zipfile.ZipFile(wheel).extractall(carried)
    for project in PROJECTS:
        _describe(tomllib.loads((project / "pyproject.toml").read_text()), folder)
    sources = [ROOT / "core", *PROJECTS[1:]]
    return [str(folder), *map(str, sources), str(carried)]


def _installed(distribution: str) -> bool:
    try:
        return bool(importlib.metadata.version(distribution))
    except importlib.metadata.PackageNotFoundError:
        return False


def _describe(content: dict[str, object], folder: Path) -> None:
    project: dict[str, object] = content["project"]  # type: ignore[assignment]
    name, version = str(project["name"]), VERSION
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    groups: dict[str, dict[str, str]] = project.get("entry-points", {})  # type: ignore[assignment]
    lines = []
    for group, entries in groups.items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")

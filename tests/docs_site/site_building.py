"""Build the documentation as a site, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def build(tree: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Run `mkdocs build --strict` on a tree; pages go to `site`."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=tree, capture_output=True, text=True, timeout=250, check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip

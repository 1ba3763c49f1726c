"""Where tests find what they read."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent
ROOT = TESTS.parent
PACKAGES = tuple(ROOT / "examples" / name for name in ("float8", "int4"))  # plugins of dtypes
GOLDEN = TESTS / "loops" / "golden"  # kernels as text

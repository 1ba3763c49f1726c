"""Prints one line for each certificate of the conformance kit in a folder; 1 unless all of those
that are named conform, over the whole kit but for those that may have been run in part.

    python tools/certificates.py FOLDER [--part "NAME ..."] NAME ...
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path


def main() -> int:
    """Prints the lines; 0 if all is well."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", type=str.split, default=[])
    parser.add_argument("names", nargs="+")
    asked = parser.parse_args()
    return max(line(asked.folder / f"{name}.json", name in asked.part) for name in asked.names)


def line(path: Path, part: bool) -> int:
    """Prints one line; 0 if that device conforms."""
    if not path.exists():
        print(f"{path.stem:14} no certificate: the kit did not come to its end")
        return 1
    found = json.loads(path.read_text())
    well = found["conforms"] and (found["whole"] or part)
    verdict = "conforms" if found["conforms"] else "does NOT conform"
    verdict += "" if found["whole"] else ", run in part" if part else ", but was run in PART"
    counts = ", ".join(f"{n} {outcome}" for outcome, n in sorted(found["counts"].items()))
    print(
        f"{path.stem:14} {verdict}: {counts};"
        f" {found['comparisons']} comparisons, {found['seconds']:.0f} s, {found['device']['name']}"
    )
    for failure in found["failures"][:20]:
        print(f"    {failure['case']}: {failure['message'][:160]}\n      {failure['reproduce']}")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())

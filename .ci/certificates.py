"""Prints one line for each certificate of the conformance kit in a folder; 1 unless all of those
that are named conform, over the whole kit.

    python .ci/certificates.py FOLDER NAME ...
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(folder: Path, names: list[str]) -> int:
    """Prints the lines; 0 if all is well."""
    return max([line(folder / f"{name}.json") for name in names], default=1)


def line(path: Path) -> int:
    """Prints one line; 0 if that device conforms."""
    if not path.exists():
        print(f"{path.stem:14} no certificate: the kit did not come to its end")
        return 1
    found = json.loads(path.read_text())
    well = found["conforms"] and found["whole"]
    verdict = "conforms" if well else "was run in PART" if found["conforms"] else "does NOT conform"
    counts = ", ".join(f"{n} {outcome}" for outcome, n in sorted(found["counts"].items()))
    print(
        f"{path.stem:14} {verdict}: {counts};"
        f" {found['comparisons']} comparisons, {found['seconds']:.0f} s, {found['device']['name']}"
    )
    for failure in found["failures"][:20]:
        print(f"    {failure['case']}: {failure['message'][:160]}\n      {failure['reproduce']}")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))

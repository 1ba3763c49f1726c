"""Print one line for each certificate of the conformance kit in a folder.

    python tools/certificates.py FOLDER [--part "NAME ..."] NAME ...

The exit status is 0 if every named device conforms over the whole kit, else 1. A device named after
`--part` may have been run over a part of the kit.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path


def main() -> int:
    """Print the lines; return 0 if all devices conform, else 1."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", type=str.split, default=[])
    parser.add_argument("names", nargs="+")
    args = parser.parse_args()
    return max(
        print_certificate(args.folder / f"{name}.json", name in args.part) for name in args.names
    )


def print_certificate(path: Path, allows_part: bool) -> int:
    """Print one line and the failures; return 0 if that device conforms, else 1."""
    if not path.exists():
        print(f"{path.stem:14} no certificate: the kit did not come to its end")
        return 1
    certificate = json.loads(path.read_text())
    passes = certificate["conforms"] and (certificate["whole"] or allows_part)
    verdict = "conforms" if certificate["conforms"] else "does NOT conform"
    verdict += (
        "" if certificate["whole"] else ", run in part" if allows_part else ", but was run in PART"
    )
    counts = ", ".join(f"{n} {outcome}" for outcome, n in sorted(certificate["counts"].items()))
    print(
        f"{path.stem:14} {verdict}: {counts};"
        f" {certificate['comparisons']} comparisons, {certificate['seconds']:.0f} s, "
        f"{certificate['device']['name']}"
    )
    for failure in certificate["failures"][:20]:
        print(f"    {failure['case']}: {failure['message'][:160]}\n      {failure['reproduce']}")
    return 0 if passes else 1


if __name__ == "__main__":
    sys.exit(main())

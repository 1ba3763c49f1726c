"""Copy the project's version and addresses to every file that repeats them.

    python tools/metadata.py [VERSION] [--check]

The sources are `__version__` in core/dovetail/__init__.py and `[project.urls]` in pyproject.toml.
VERSION: the new version of a release; the date of the release is today.
`--check`: write nothing; name the files that differ, and return 1 if there are any.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
CORE = "core/dovetail/__init__.py"
VERSION = r'(?<=^__version__ = ")[^"]+'
URLS = r"(?<=^\[project\.urls\])(.*\n)(?:\w+ = .*\n)+"  # the first line may have a comment
PIN = r'(?<=")(dovetail-[a-z-]+)[<>=][^"]*'


def main() -> int:
    """Write the files, or compare them; return 1 if `--check` finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version", nargs="?")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    changed = changes(ROOT, args.version)
    if args.check:
        for path in changed:
            print(f"{path} differs: run tools/metadata.py", file=sys.stderr)
        return bool(changed)
    for path, text in changed.items():
        (ROOT / path).write_text(text, "utf-8")
    return 0


def changes(root: Path, version: str | None = None) -> dict[str, str]:
    """Return {path: new text} of the files that repeat the version or an address otherwise."""
    today = [("CITATION.cff", r"(?<=^date-released: ).+", datetime.date.today().isoformat())]
    dates = today if version else []
    version = version or re.findall(VERSION, (root / CORE).read_text("utf-8"), re.MULTILINE)[0]
    urls = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["urls"]
    lines = "".join(f'{name} = "{url}"\n' for name, url in urls.items())
    edits = [
        *dates,
        (CORE, VERSION, version),
        ("backends/*/dovetail_*/__init__.py", VERSION, version),
        ("dtypes/dovetail_*/__init__.py", VERSION, version),
        ("CITATION.cff", r"(?<=^version: ).+", version),
        ("CITATION.cff", r"(?<=^url: ).+", urls["Documentation"]),
        ("CITATION.cff", r"(?<=^repository-code: ).+", urls["Source"]),
        ("pyproject.toml", PIN, rf"\g<1>{compatible(version)}"),
        *(
            (f"{folder}/pyproject.toml", PIN, rf"\g<1>{compatible(version)}")
            for folder in ("backends/*", "dtypes")
        ),
        *(
            (f"{folder}/pyproject.toml", URLS, rf"\g<1>{lines}")
            for folder in ("backends/*", "dtypes")
        ),
        (".github/ISSUE_TEMPLATE/config.yml", r"(?<= url: ).+(?=/security/)", urls["Source"]),
    ]
    texts: dict[Path, str] = {}
    for pattern, old, new in edits:
        for path in sorted(root.glob(pattern)):
            text = texts.get(path) or path.read_text("utf-8")
            texts[path], count = re.subn(old, new, text, flags=re.MULTILINE)
            if not count:
                raise SystemExit(f"{path}: {old} is missing")
    return {
        path.relative_to(root).as_posix(): text
        for path, text in texts.items()
        if text != path.read_text("utf-8")
    }


def compatible(version: str) -> str:
    """Return the range of compatible versions, as docs/versions.md defines it."""
    major, minor = map(int, version.split(".")[:2])
    return f">={major}.{minor},<{major}.{minor + 1}" if major == 0 else f">={major},<{major + 1}"


if __name__ == "__main__":
    sys.exit(main())

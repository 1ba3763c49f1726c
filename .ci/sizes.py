"""Prints how many lines each backend has, file by file, beside what was aimed at. No limit: a
figure to look at on every change."""

from __future__ import annotations

import io
import tokenize
from pathlib import Path

AIMS = {"opencl": 450, "cuda": 650, "cpu_llvm": 900}
BACKENDS = Path(__file__).parent.parent / "backends"
SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


def main() -> None:
    """Prints the table."""
    for name, aim in AIMS.items():
        files = {path: path.read_text() for path in sorted(BACKENDS.glob(f"{name}/*/*.py"))}
        total = sum(len(text.splitlines()) for text in files.values())
        code = sum(map(code_lines, files.values()))
        print(f"{name}: {total} lines (aim: {aim}), {code} of them code")
        for path, text in files.items():
            print(f"  {path.name:16} {len(text.splitlines()):5} {code_lines(text):5}")


def code_lines(text: str) -> int:
    """Lines with anything but comments and docstrings."""
    found, before = set(), tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        starts_a_line = before in SILENT
        docstring = token.type == tokenize.STRING and starts_a_line
        if token.type not in SILENT and not docstring:
            found |= set(range(token.start[0], token.end[0] + 1))
        if token.type != tokenize.COMMENT:
            before = token.type
    return len(found)


if __name__ == "__main__":
    main()

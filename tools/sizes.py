"""Report the size of each package: files, lines, the largest file and class, function lengths.

    python tools/sizes.py [--files] [--check]

`--files` adds a line for each file. `--check` fails if a `type: ignore` gives no reason. Sizes are
a report for readers, not limits. Functions are counted without their docstrings.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE, BACKENDS = ROOT / "core/dovetail", ROOT / "backends"
SILENT_TOKENS = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
IGNORE = re.compile(r"#\s*type:\s*ignore(\[[\w\-, ]+\])?(.*)")
Function = ast.FunctionDef | ast.AsyncFunctionDef
TABLE_HEAD = ("room", "files", "lines", "code", "", "largest file", "", "largest class", "function")
ROW_FORMAT = "{:12} {:>5} {:>6} {:>6}  {:>4} {:22} {:>4} {:22} {:>9} {:>5} {:>7}"


@dataclass(frozen=True)
class File:
    """The counts of one file."""

    path: Path
    lines: int
    code: int
    classes: Mapping[str, int]
    functions: list[int]
    anys: int
    unexplained: list[int]  # lines with an ignore that gives no reason

    @property
    def name(self) -> str:
        """Return the path within the repository."""
        return self.path.relative_to(ROOT).as_posix()


def measure_file(path: Path) -> File:
    """Return the counts of a file."""
    text = path.read_text()
    nodes = list(ast.walk(ast.parse(text, str(path))))
    return File(
        path,
        len(text.splitlines()),
        code_lines(text),
        {n.name: length(n) for n in nodes if isinstance(n, ast.ClassDef)},
        [code_length(n) for n in nodes if isinstance(n, Function)],
        sum(isinstance(n, ast.Name) and n.id == "Any" for n in nodes),
        find_unexplained(text),
    )


def length(node: ast.stmt) -> int:
    """Return the number of lines of a definition."""
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def code_length(node: Function) -> int:
    """Return the number of lines of a function without its docstring."""
    docstring = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
    return length(node) - (0 if docstring is None else length(docstring))


def find_unexplained(text: str) -> list[int]:
    """Return the numbers of the lines with a `type: ignore` without a reason."""
    line_numbers = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        ignore = IGNORE.search(token.string) if token.type == tokenize.COMMENT else None
        if ignore and not re.search(
            r"#\s*\w+", ignore[2].replace("# noqa", "").replace("# fmt", "")
        ):
            line_numbers.append(token.start[0])
    return line_numbers


def code_lines(text: str) -> int:
    """Return the number of lines with code: no comments, docstrings or blank lines."""
    line_numbers, before = set(), tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        starts_a_line = before in SILENT_TOKENS
        docstring = token.type == tokenize.STRING and starts_a_line
        if token.type not in SILENT_TOKENS and not docstring:
            line_numbers |= set(range(token.start[0], token.end[0] + 1))
        if token.type != tokenize.COMMENT:
            before = token.type
    return len(line_numbers)


def packages() -> dict[str, list[File]]:
    """Return the files of each package of core/dovetail, and of each backend."""
    core = [p for p in sorted(CORE.rglob("*.py")) if "template" not in p.parts]
    paths_by_package: dict[str, list[Path]] = {
        "ground floor": [p for p in core if p.parent == CORE]
    }
    for path in core:
        if path.parent != CORE:
            paths_by_package.setdefault(path.relative_to(CORE).parts[0], []).append(path)
    for backend in sorted(BACKENDS.iterdir()):
        paths_by_package[backend.name] = sorted(backend.glob("dovetail_*/*.py"))
    return {
        room: [measure_file(p) for p in paths] for room, paths in paths_by_package.items() if paths
    }


def format_row(package: str, files: Iterable[File]) -> str:
    """Return a row of the table: the counts of a package, or of one file."""
    files = list(files)
    largest = max(files, key=lambda f: f.lines)
    lines, name = max(((n, c) for f in files for c, n in f.classes.items()), default=(0, "-"))
    half, most = percentiles(files)
    return ROW_FORMAT.format(
        package, len(files), sum(f.lines for f in files), sum(f.code for f in files),
        largest.lines, largest.path.name, lines, name,
        f"{half} / {most}",
        sum(f.anys for f in files), sum(len(f.unexplained) for f in files),
    ).rstrip()  # fmt: skip


def percentiles(files: Iterable[File]) -> tuple[int, int]:
    """Return the median and the 90th percentile of the lengths of functions."""
    lengths = sorted(n for f in files for n in f.functions) or [0]
    return lengths[len(lengths) // 2], lengths[len(lengths) * 9 // 10]


def core_files(files_by_package: Mapping[str, list[File]]) -> list[File]:
    """Return the files of core/dovetail."""
    return [f for files in files_by_package.values() for f in files if CORE in f.path.parents]


def unexplained_ignores(files_by_package: Mapping[str, list[File]]) -> list[str]:
    """Return a line for each `type: ignore` that gives no reason."""
    return [
        f"{file.name}:{n}: an ignore without a reason"
        for files in files_by_package.values()
        for file in files
        for n in file.unexplained
    ]


def main() -> int:
    """Print the report; return 1 if `--check` finds an ignore without a reason."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    files_by_package = packages()
    print(
        ROW_FORMAT.format(*TABLE_HEAD, "Any", "ignores").rstrip()
        + "   (function: median / 90th percentile)"
    )
    for room, files in files_by_package.items():
        print(format_row(room, files))
        for file in files if args.files else ():
            print("  " + format_row(file.path.name, [file]))
    print(format_row("core/dovetail", core_files(files_by_package)))
    problems = unexplained_ignores(files_by_package) if args.check else []
    print("".join(f"{each}\n" for each in problems), end="")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

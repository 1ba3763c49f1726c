"""Count what the style of the project forbids or limits, per package, against its budgets.

    python tools/style.py            # compare with tools/style_budgets.toml
    python tools/style.py --lower    # write lower budgets where the counts have fallen
    python tools/style.py --list fmt_skip

The tool counts docstrings that begin with a question word ("What", "Whether", ...) or with a
reference ("The same", "As", "See"), functions that are named by a bare participle, variables and
parameters with vague names, indefinite pronouns, comments that switch the formatter off, and
classes with exactly one subclass in their package. A budget may only fall.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUDGETS = Path(__file__).with_name("style_budgets.toml")
SOURCES = ("core/dovetail", "backends")
KINDS = ("question", "anaphora", "participle", "vague", "pronoun", "fmt_skip", "chain")

QUESTION_WORDS = frozenset(
    """what whether how where who whose which that why when""".split()  # noqa: SIM905 - a table of words
)
ANAPHORA = ("the same", "as ", "see ", "likewise", "so ")
PARTICIPLES = frozenset(
    """made taken held kept found given drawn seen told left sent known written shown done built
    brought met lost bound begun born got gone grown hidden laid led lent meant paid said
    sought sold spent spread stood stuck struck thrown torn understood woven worn rewritten
    remade retold respelt undone""".split()  # noqa: SIM905 - a table of words
)
NOT_PARTICIPLES = frozenset(
    """red need needed seed feed embed speed shed bed read reversed sorted fixed signed unsigned
    batched cached weighted masked stacked blocked named scaled elapsed""".split()  # noqa: SIM905 - a table of words
)
VAGUE_NAMES = frozenset(
    """found made given known rest place places parts taken kept held seen told got thing things
    stuff drawn said""".split()  # noqa: SIM905 - a table of words
)
PRONOUN = re.compile(r"\b(somebody|nobody|whoever|anybody|everybody|someone|whatever)\b", re.I)
FORMATTER_OFF = re.compile(r"# fmt: (skip|off)")
COUNTED_NODES = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module, ast.arg, ast.Assign,
    ast.AnnAssign, ast.NamedExpr, ast.For,
)  # fmt: skip
ERROR_SUFFIXES = ("Error", "Exception", "Warning")  # hierarchies of errors are no chains


@dataclass
class Counts:
    """Counts by package and kind, and the place of each occurrence."""

    by_package: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    places: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, kind: str, package: str, place: str) -> None:
        """Count one occurrence."""
        self.by_package[package][kind] += 1
        self.places[kind].append(place)


def package_of(path: Path) -> str:
    """Return the package of a source file: "core/ops", "core/(top)" or "backends/cuda"."""
    parts = path.relative_to(ROOT).parts
    if parts[0] == "core":
        return f"core/{parts[2] if len(parts) > 3 else '(top)'}"
    return "/".join(parts[:2])


def count_style(sources: tuple[str, ...] = SOURCES) -> Counts:
    """Count all kinds in the Python and Cython files under these folders."""
    counts, classes = Counts(), defaultdict[str, list[tuple[str, str, list[str]]]](list)
    for path in sorted(p for s in sources for p in (ROOT / s).rglob("*.py*")):
        if path.suffix not in (".py", ".pyx") or "build" in path.parts:
            continue
        package, text = package_of(path), path.read_text("utf-8")
        where = str(path.relative_to(ROOT))
        for kind, pattern in (("pronoun", PRONOUN), ("fmt_skip", FORMATTER_OFF)):
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                counts.add(kind, package, f"{where}:{line} {match[0]}")
        if path.suffix == ".py":
            for node in ast.walk(ast.parse(text)):
                if not isinstance(node, COUNTED_NODES):
                    continue
                for kind, name, line in _occurrences(node):
                    counts.add(kind, package, f"{where}:{line} {name}")
                if isinstance(node, ast.ClassDef):
                    bases = [ast.unparse(b).split("[")[0].split(".")[-1] for b in node.bases]
                    classes[package].append((node.name, f"{where}:{node.lineno}", bases))
    for package, found in classes.items():
        for base, place in _chains(found):
            counts.add("chain", package, f"{place} < {base}")
    return counts


def _occurrences(node: ast.AST) -> Iterator[tuple[str, str, int]]:
    """Yield (kind, name or text, line) of each occurrence at a node."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)):
        docstring = ast.get_docstring(node) or ""
        first = re.match(r"[A-Za-z']+", docstring)
        line, start = getattr(node, "lineno", 1), docstring.split("\n")[0][:90]
        if first is not None and first[0].lower() in QUESTION_WORDS:
            yield "question", start, line
        elif docstring.lower().startswith(ANAPHORA):
            yield "anaphora", start, line
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and is_participle(node.name):
        yield "participle", node.name, node.lineno
    if isinstance(node, ast.arg) and node.arg in VAGUE_NAMES:
        yield "vague", node.arg, node.lineno
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr, ast.For)):
        targets = [node.target]
    for name in (n for target in targets for n in ast.walk(target)):
        if (
            isinstance(name, ast.Name)
            and isinstance(name.ctx, ast.Store)
            and name.id in VAGUE_NAMES
        ):
            yield "vague", name.id, name.lineno


def is_participle(name: str) -> bool:
    """Return True if a function's name begins with a bare participle."""
    word = name.strip("_").split("_")[0].lower()
    if name.startswith("__") or word in NOT_PARTICIPLES:
        return False
    return word in PARTICIPLES or (word.endswith("ed") and len(word) > 4)


def _chains(classes: list[tuple[str, str, list[str]]]) -> Iterator[tuple[str, str]]:
    """Yield (base, place of the subclass) of classes with exactly one subclass in their package."""
    defined = Counter(name for name, _, _ in classes)
    for base, count in defined.items():
        # a class with the name of its base derives from one of another package
        subclasses = [place for name, place, bases in classes if base in bases and name != base]
        if count == 1 and len(subclasses) == 1 and not base.endswith(ERROR_SUFFIXES):
            yield base, subclasses[0]


def read_budgets() -> dict[str, dict[str, int]]:
    """Return the budgets: package -> kind -> the highest count."""
    budgets: dict[str, dict[str, int]] = tomllib.loads(BUDGETS.read_text("utf-8"))
    return budgets


def compare(counts: Counts, budgets: dict[str, dict[str, int]]) -> list[str]:
    """Return a line for each count that is not its budget."""
    lines = []
    for package in sorted({*counts.by_package, *budgets}):
        for kind in KINDS:
            count, budget = counts.by_package[package][kind], budgets.get(package, {}).get(kind, 0)
            if count > budget:
                lines.append(f"{package}: {kind}: {count}, allowed are {budget}")
            elif count < budget:
                lines.append(f"{package}: {kind}: {count}; lower the budget of {budget}")
    return lines


def format_budgets(counts: Counts) -> str:
    """Return the counts as the text of the budgets' file."""
    tables = []
    for package, kinds in sorted(counts.by_package.items()):
        rows = [f"{kind} = {kinds[kind]}" for kind in KINDS if kinds[kind]]
        if rows:
            tables.append("\n".join([f'["{package}"]', *rows]))
    return (
        "# Written by tools/style.py --lower; a budget may only fall.\n\n"
        + "\n\n".join(tables)
        + "\n"
    )


def main(arguments: list[str]) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--lower", action="store_true", help="write lower budgets")
    parser.add_argument("--list", choices=KINDS, help="print each occurrence of a kind")
    options = parser.parse_args(arguments)
    counts = count_style()
    if options.list:
        print("\n".join(counts.places[options.list]))
        return 0
    lines = compare(counts, read_budgets() if BUDGETS.exists() else {})
    risen = [line for line in lines if "allowed are" in line]
    if options.lower and (not risen or not BUDGETS.exists()):
        BUDGETS.write_text(format_budgets(counts), "utf-8")
        return 0
    print("\n".join(risen if options.lower else lines) or "all counts are their budgets")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Compiles the hot path, where there is a C compiler; the same modules run as Python without.

A module of the core with a `.pxd` beside it is compiled from its own source: the `.pxd` says only
what is typed. Where a `.pyx` stands there, too, that takes the module's place.
"""

from __future__ import annotations

import gc
import os
import re
import tomllib
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

CORE = Path("core/dovetail")
UTILITIES = "dovetail._cython_helpers"  # the helper functions of Cython, once for all modules
DIRECTIVES = {
    "language_level": 3,
    "annotation_typing": False,  # annotations are mypy's; types for C stand in the .pxd files
    "auto_pickle": False,
}


# At -O1 modules compile in two thirds of the time, but small statements take 4 to 7 % more
# instructions; where they pass through little code, 1 %. -O3 -g, the usual, gives nothing.
LIGHT = {"autograd", "capture", "frontend", "functions", "plugins"}
# The function that creates a module's objects runs once; it takes up to a third of the time.
RUNS_ONCE = '-DCYTHON_SMALL_CODE=__attribute__((cold, optimize("O0")))'
COLLECTIONS = 100_000  # allocations between collections in Cython, which keeps what it creates


def flags(path: Path) -> list[str]:
    """Return the options of the compiler for a module."""
    level = "-O1" if path.relative_to(CORE).parts[0] in LIGHT else "-O2"
    return [] if os.name == "nt" else [level, "-g0", RUNS_ONCE]


def source(path: Path) -> Path:
    """Return the source of the module of a `.pxd`: a `.pyx`, if there is one, else the `.py`."""
    own = path.with_suffix(".pyx")
    return own if own.exists() else path.with_suffix(".py")


def extensions() -> list[Extension]:
    """Return the modules to compile."""
    try:
        from Cython.Build import cythonize
    except ImportError:  # an install without build isolation, and without Cython
        return []
    found = [
        Extension(
            ".".join(path.relative_to(CORE.parent).with_suffix("").parts),
            [str(source(path))],
            optional=True,  # one that is not there is not copied
            extra_compile_args=flags(path),
        )
        for path in sorted(CORE.rglob("*.pxd"))
    ]
    helpers = Extension(UTILITIES, [str(CORE / "_cython_helpers.c")], optional=True)
    helpers.extra_compile_args = flags(CORE / "_cython_helpers.c")
    found.append(helpers)
    gc.set_threshold(COLLECTIONS)
    made: list[Extension] = cythonize(
        found,
        build_dir="build/cython",
        compiler_directives=DIRECTIVES,
        nthreads=os.cpu_count() or 1,
        quiet=True,
        shared_utility_qualified_name=UTILITIES,
    )
    return made


def index_page() -> str:
    """Return README.md for a package index, where a relative link would lead nowhere."""
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    return with_absolute_links(Path("README.md").read_text("utf-8"), project["urls"]["Source"])


def with_absolute_links(text: str, source: str) -> str:
    """Return Markdown whose relative links and pictures point into a repository; code stays."""
    relative = r"(?!https?:|mailto:|#)"
    parts = re.split(r"(```.*?```|`[^`\n]*`)", text, flags=re.DOTALL)
    for i in range(0, len(parts), 2):  # the others are code
        images = rf"(!\[[^]]*\]\(|\b(?:src|srcset)=\"){relative}"
        parts[i] = re.sub(images, rf"\1{source}/raw/main/", parts[i])
        parts[i] = re.sub(rf"(\]\(|\bhref=\"){relative}", rf"\1{source}/blob/main/", parts[i])
    return "".join(parts)


class AllOrNone(build_ext):
    """As many compilers at once as there are cores. Where one fails, nothing is compiled: modules
    refer to each other's types, so a part of them could not be imported.
    """

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extensions(self) -> None:
        try:
            super().build_extensions()
        except Exception as error:  # no compiler, or one that refuses
            print(f"dovetail: the hot path is not compiled, and runs as Python: {error}")
        made = [Path(self.get_ext_fullpath(e.name)) for e in self.extensions]
        if not all(path.exists() for path in made):
            for path in made:
                path.unlink(missing_ok=True)


if __name__ == "__main__":
    pure = os.environ.get("DOVETAIL_PURE", "0") not in ("", "0")
    setup(
        ext_modules=[] if pure else extensions(),
        cmdclass={"build_ext": AllOrNone},
        long_description=index_page(),
        long_description_content_type="text/markdown",
    )

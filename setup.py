"""Compiles the hot path, where there is a C compiler; the same modules run as Python without.

A module of the core with a `.pxd` beside it is compiled from its own source: the `.pxd` says only
what is typed. Where a `.pyx` stands there, too, that takes the module's place.
"""

from __future__ import annotations

import os
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

CORE = Path("core/dovetail")
DIRECTIVES = {
    "language_level": 3,
    "annotation_typing": False,  # annotations are mypy's; types for C stand in the .pxd files
    "auto_pickle": False,
}


# Half the time of an install at -O3 -g; what it does is mostly calls into Python.
QUICK = [] if os.name == "nt" else ["-O1", "-finline-small-functions", "-g0"]


def source(path: Path) -> Path:
    """What the module of a `.pxd` is compiled from: a `.pyx` takes the place of the `.py`."""
    own = path.with_suffix(".pyx")
    return own if own.exists() else path.with_suffix(".py")


def extensions() -> list[Extension]:
    """What is to be compiled."""
    from Cython.Build import cythonize  # where it is missing, nothing is

    found = [
        Extension(
            ".".join(path.relative_to(CORE.parent).with_suffix("").parts),
            [str(source(path))],
            optional=True,  # a compiler that fails makes no install fail
            extra_compile_args=QUICK,
        )
        for path in sorted(CORE.rglob("*.pxd"))
    ]
    made: list[Extension] = cythonize(
        found,
        build_dir="build/cython",
        compiler_directives=DIRECTIVES,
        nthreads=os.cpu_count() or 1,
        quiet=True,
    )
    return made


class Parallel(build_ext):
    """As many compilers at once as there are cores."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()


if __name__ == "__main__":
    pure = os.environ.get("DOVETAIL_PURE", "0") not in ("", "0")
    setup(ext_modules=[] if pure else extensions(), cmdclass={"build_ext": Parallel})

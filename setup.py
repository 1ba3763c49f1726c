"""Compiles the hot path, where there is a C compiler; the same modules run as Python without.

A module of the core with a `.pxd` beside it is compiled from its own source: the `.pxd` says only
what is typed. Where a `.pyx` stands there, too, that takes the module's place. All of them are
linked into one extension, from which `build_info` imports them.
"""

from __future__ import annotations

import gc
import os
import re
import subprocess
import tomllib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer

CORE = Path("core/dovetail")
COMBINED = "dovetail._compiled"  # the extension, and the module in it that lists the others
LIST = Path("build/_compiled.pyx")
UTILITIES = "dovetail._cython_helpers"  # the helper functions of Cython, once for all modules
DIRECTIVES = {
    "language_level": 3,
    "annotation_typing": False,  # annotations are mypy's; types for C stand in the .pxd files
    "auto_pickle": False,
    "emit_code_comments": False,
    "optimize.unpack_method_calls": False,  # in C, for each call; vectorcall does that, too
}


# The passes of gcc's -O2 that lower the instruction counts of small statements: in two thirds of
# its processor time, within 1 % of its counts (docs/measurements/2026-12-02-compiling.md).
PASSES = """
    caller-saves cse-follow-jumps devirtualize hoist-adjacent-loads indirect-inlining
    inline-functions inline-small-functions ipa-bit-cp ipa-cp ipa-ra ipa-sra ipa-vrp
    isolate-erroneous-paths-dereference no-dse no-tree-dse no-tree-fre no-tree-pta
    optimize-sibling-calls optimize-strlen partial-inlining peephole2 rerun-cse-after-loop
    store-merging strict-aliasing thread-jumps tree-switch-conversion
"""
LIGHT = {"autograd", "capture", "frontend", "functions", "plugins"}  # at -O1: no count is higher
# The function that creates a module's objects runs once; it takes up to a third of the time.
RUNS_ONCE = '-DCYTHON_SMALL_CODE=__attribute__((cold, optimize("O0")))'
COLLECTIONS = 100_000  # allocations between collections in Cython, which keeps what it creates


def flags(compiler: list[str]) -> list[str]:
    """Return the level and the passes for a compiler: -O2 if it does not know gcc's passes."""
    passes = ["-O1", *(f"-f{name}" for name in PASSES.split())]
    probe = [*compiler, *passes, "-Werror", "-fsyntax-only", "-x", "c", os.devnull]
    known = subprocess.run(probe, capture_output=True, check=False).returncode == 0
    return passes if known else ["-O2"]


def source(path: Path) -> Path:
    """Return the source of the module of a `.pxd`: a `.pyx`, if there is one, else the `.py`."""
    own = path.with_suffix(".pyx")
    return own if own.exists() else path.with_suffix(".py")


def cythonize_modules() -> list[Extension]:
    """Return the extension of all modules to compile; its own module lists their names."""
    try:
        from Cython.Build import cythonize
    except ImportError:  # an install without build isolation, and without Cython
        return []
    modules = [
        Extension(
            ".".join(path.relative_to(CORE.parent).with_suffix("").parts), [str(source(path))]
        )
        for path in sorted(CORE.rglob("*.pxd"))
    ]
    modules.append(Extension(UTILITIES, [str(CORE / "_cython_helpers.c")]))
    LIST.parent.mkdir(exist_ok=True)
    names = [COMBINED, *(module.name for module in modules)]
    text = f"MODULES = frozenset({names})\n"
    if not LIST.exists() or LIST.read_text("utf-8") != text:  # else it would be compiled again
        LIST.write_text(text, "utf-8")
    modules.append(Extension(COMBINED, [str(LIST)]))
    gc.set_threshold(COLLECTIONS)
    modules = cythonize(
        modules,
        build_dir="build/cython",
        compiler_directives=DIRECTIVES,
        nthreads=os.cpu_count() or 1,
        quiet=True,
        shared_utility_qualified_name=UTILITIES,
    )
    return [Extension(COMBINED, [path for m in modules for path in m.sources], optional=True)]


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


class BuildCombined(build_ext):
    """A build that compiles each changed module, as many at once as there are cores, and links
    them all. If one fails, there is no extension: modules refer to each other's types.
    """

    def run(self) -> None:
        """Build, and in place delete the extensions of earlier builds."""
        super().run()
        if self.inplace and self.extensions:
            file = Path(self.build_lib, self.get_ext_filename(COMBINED))
            # Earlier builds: one of each module, which DOVETAIL_PURE would find, or an older one.
            for path in CORE.rglob("*" + file.name.removeprefix("_compiled")):
                if path.name != file.name or not file.exists():
                    path.unlink()

    def build_extension(self, ext: Extension) -> None:
        try:
            usual = flags(self.compiler.compiler_so) if os.name != "nt" else None
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                objects = pool.map(partial(self.compile_module, usual), ext.sources)
            ext.sources, ext.extra_objects = [], [*objects]
            ext.depends = ext.extra_objects
            super().build_extension(ext)
        except Exception as error:  # no compiler, or one that refuses
            print(f"dovetail: the hot path is not compiled, and runs as Python: {error}")
            Path(self.get_ext_fullpath(ext.name)).unlink(missing_ok=True)

    def compile_module(self, usual: list[str] | None, source: str) -> str:
        """Compile a C file that is newer than its object file; return the object file."""
        (result,) = self.compiler.object_filenames([source], output_dir=self.build_temp)
        if newer(source, result):
            level = ["-O1"] if LIGHT.intersection(Path(source).parts) else usual
            options = [*level, "-g0", "-w", RUNS_ONCE] if usual else []
            self.compiler.compile(
                [source],
                output_dir=self.build_temp,
                include_dirs=self.include_dirs,
                extra_postargs=options,
            )
        return result

    def get_export_symbols(self, ext: Extension) -> list[str]:
        """Return no names: the source of each module exports its own function."""
        return []


if __name__ == "__main__":
    pure = os.environ.get("DOVETAIL_PURE", "0") not in ("", "0")
    setup(
        ext_modules=[] if pure else cythonize_modules(),
        cmdclass={"build_ext": BuildCombined},
        long_description=index_page(),
        long_description_content_type="text/markdown",
    )

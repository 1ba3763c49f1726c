"""The import contract between packages, and the cost of `import dovetail`."""

from __future__ import annotations

import ast
import functools
import os
import re
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

import pytest
from source_trees import parse_file, statements

ROOT = Path(__file__).parent.parent
CORE = ROOT / "core" / "dovetail"
BACKENDS = sorted(
    p.relative_to(ROOT).as_posix()
    for p in (ROOT / "backends").rglob("*.py")
    if "build" not in p.parts
)
DEVICE_TYPES = {"cpu", "opencl", "cuda", "vulkan", "webgpu"}


def imports(tree: ast.AST, package: str) -> Iterator[str]:
    """Return full names of the modules that `tree`, a module of `package`, imports."""
    for node in statements(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            outer = package.split(".")[: 1 - node.level or None] if node.level else []
            base = ".".join([*outer, *filter(None, [node.module])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


class ComputedOnUse(Mapping[str, Any]):
    """A mapping that computes each value on first use: a collection of tests computes none."""

    def __init__(self, keys: Mapping[str, Any], compute: Callable[[str], Any]) -> None:
        self._keys, self._compute = keys, functools.cache(compute)

    def __getitem__(self, key: str) -> Any:
        return self._compute(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def core_modules() -> dict[str, Path]:
    """Return every module of core/dovetail by its dotted name; packages by their own."""
    paths = [p for p in sorted(CORE.rglob("*.py")) if "template" not in p.parts]
    parts = [p.relative_to(CORE).with_suffix("").parts for p in paths]
    names = [".".join(names).removesuffix(".__init__") for names in parts]
    return dict(zip(names, paths, strict=True))


PATHS = core_modules()
TEXTS = ComputedOnUse(PATHS, lambda name: PATHS[name].read_text("utf-8"))
MODULES = ComputedOnUse(PATHS, lambda name: parse_file(PATHS[name]))


def modules_with(pattern: str) -> dict[str, ast.Module]:
    """Return the trees of modules whose text matches a pattern; the others need no walk."""
    return {name: MODULES[name] for name in MODULES if re.search(pattern, TEXTS[name])}


def package(name: str) -> str:
    """Return the package that a relative import in the core module `name` starts from."""
    is_package = name != "__init__" and (CORE / name.replace(".", "/")).is_dir()
    return ".".join(filter(None, ["dovetail", name if is_package else name.rpartition(".")[0]]))


def arrows(tree: ast.Module, name: str) -> set[str]:
    """Return the core modules that the module `name` imports when it is loaded."""
    later = {id(n) for block in statements(tree) if is_for_types(block) for n in statements(block)}
    loaded = ast.Module([n for n in tree.body if id(n) not in later], [])
    ours = {i for i in imports(loaded, package(name)) if i.startswith("dovetail.")}
    used = {i.removeprefix("dovetail.") for i in ours} & {*MODULES}
    inner = {u for u in used if any(other.startswith(u + ".") for other in used)}
    return used - inner - {name}  # `from .x import y` with a module y is an import of y only


def arrows_for_types(tree: ast.Module, name: str) -> set[str]:
    """Return the modules of the core that the module `name` imports for type checkers alone."""
    blocks = [n for block in statements(tree) if is_for_types(block) for n in block.body]
    return arrows(ast.Module(blocks, []), name)


LATE_CALL = "import_module|__import__|Lazy(Module|Functions)"


def late_calls(tree: ast.AST) -> list[ast.expr]:
    """Return the first argument of each call that imports a module later in `tree`."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and n.args]
    names = ("import_module", "__import__", "LazyModule", "LazyFunctions")
    return [c.args[0] for c in calls if ast.unparse(c.func).split(".")[-1].endswith(names)]


def late_arrows(tree: ast.Module, name: str) -> set[str]:
    """Return the core modules that `import_module` gets as text in the module `name`."""
    given = [a.value for a in late_calls(tree) if isinstance(a, ast.Constant)]
    full = (resolve_name(m, package(name)) if m.startswith(".") else m for m in given)
    return {m.removeprefix("dovetail.") for m in full if m.startswith("dovetail.")} & {*MODULES}


IMPORT_IN_CYTHON = re.compile(
    r"^[ \t]*(?:from ([\w.]+) c?import (\([^)]*\)|[^\n]*)|c?import ([^\n]*))", re.MULTILINE
)


def cython_arrows(text: str, name: str) -> set[str]:
    """Return the core modules that the text of a `.pxd` or `.pyx` of the module `name` imports."""
    used = set()
    for source, members, modules in IMPORT_IN_CYTHON.findall(text):
        base = resolve_name(source, package(name)) if source.startswith(".") else source
        inner = [f"{base}.{m}" for m in re.findall(r"\w+", members)]
        used |= {base, *inner, *re.findall(r"[\w.]+", modules)}
    ours = {u.removeprefix("dovetail.") for u in used if u.startswith("dovetail.")} & {*MODULES}
    return {u for u in ours if not (CORE / u.replace(".", "/")).is_dir()} - {name}


def compiled_arrows(name: str) -> set[str]:
    """Return the modules of the core that the `.pxd` and the `.pyx` of the module `name` import."""
    paths = [CORE / f"{name.replace('.', '/')}{suffix}" for suffix in (".pxd", ".pyx")]
    return {u for p in paths if p.exists() for u in cython_arrows(p.read_text(), name)}


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def room(name: str) -> str:
    """Return the package of a core module; the module itself at top level."""
    return name.partition(".")[0]


# The contract, from the bottom up: a package may import top-level modules, and these packages.
MAY_IMPORT = {
    "compat": "",
    "ir": "",
    "graph": "",
    "ops": "ir",
    "backend": "ir",
    "fusion": "ir graph ops backend",
    "memory": "backend",
    "plugins": "ir backend memory",
    "engine": "ir graph ops backend fusion memory plugins",
    "tensor": "graph ops backend memory plugins engine",
    "functions": "ir graph ops backend memory plugins engine tensor",
    "capture": "ir graph ops backend fusion memory plugins engine tensor functions",
    "insight": "graph fusion memory plugins engine tensor capture",
    "autograd": "graph ops engine memory tensor functions",
    "func": "graph ops backend engine memory tensor functions capture autograd",
    "linalg": "ir ops engine tensor functions capture autograd",
    "fft": "ir graph ops engine tensor functions autograd",
    "numpy": "graph ops engine tensor functions",
    "special": "functions",
    "tree": "",
    "frontend": (
        "ir graph ops backend fusion memory plugins engine capture insight tensor functions "
        "autograd"
    ),
    "commands": "ir backend memory plugins engine tensor",
    "testing": (
        "ir graph ops backend fusion memory plugins engine tensor functions capture autograd "
        "frontend"
    ),
}
GROUND = {
    "argument_checks", "build_info", "callbacks", "command_line", "compat", "declarations",
    "decorated_functions",
    "device_class", "dtypes", "environment", "errors", "forks", "identity_cache", "install_source",
    "layout", "lazy_import", "locks", "lru_cache", "object_pool", "public_names", "records",
    "settings", "tracebacks", "weak_identity_map",
}  # fmt: skip
# these import everything they offer or connect
DOORS = {"__init__", "__main__", "extend", "random", "wiring"}
# Packages of `dt` outside the core: each imports `dovetail`, `dovetail.extend`, these packages, and
# nothing of the core; the core imports none of them.
OUTSIDE_CORE = {
    "sparse": "", "nn": "", "chunked": "", "comm": "", "extension": "", "jax": "", "torch": "",
    **dict.fromkeys(
        ("amp", "optim", "data", "metrics", "distributions", "onnx", "checkpoint", "tensorboard"),
        "nn",
    ),
    "parallel": "nn data optim",
}  # fmt: skip
# `dt.memory`, ..., `dt.plugins`, and `pytest --pyargs`
WITH_FACES = {
    "memory", "autograd", "func", "linalg", "fft", "numpy", "plugins", "testing", *OUTSIDE_CORE,
}  # fmt: skip


def against(graph: Mapping[str, set[str]]) -> list[str]:
    """Return the imports that the contract does not allow."""
    wrong = []
    for name, used in sorted(graph.items()):
        mine = room(name)
        if mine in DOORS:
            allowed = {*DOORS, *GROUND, *MAY_IMPORT}
        elif mine in OUTSIDE_CORE:
            allowed = {mine, "extend", *OUTSIDE_CORE[mine].split()}
        else:
            allowed = {mine, *GROUND, *MAY_IMPORT.get(mine, "").split()}
        wrong += [f"{name} -> {u}" for u in sorted(used) if room(u) not in allowed]
    return wrong


GRAPH = ComputedOnUse(PATHS, lambda name: arrows(MODULES[name], name))
# Imports for type checkers only, against the contract. Slots of `callbacks` are typed
# by their contents; a device, a storage and an expression hold objects of higher layers.
UPWARD_TYPES = {
    "autograd": "func.derivatives func.point_derivatives",  # `dt.autograd` re-exports some
    "backend.faults": "memory.tracing.stacktrace",
    "callbacks": (
        "backend.interface engine.tracer_api graph.expr ir.builder memory.storage "
        "ops.gradient ops.table plugins.device_handle tensor.tensor"
    ),
    "commands.demo_parallel": "parallel.step_timeline",
    "device_class": "plugins.device_handle",
    "engine.tracer_api": "tensor.tensor",
    "graph.expr": "memory.storage memory.tracing.stacktrace ops.table",
    "memory.storage": "graph.expr tensor.tensor",
}
# Imports on first use, against the contract: pages for people, and the
# core itself.
UPWARD_LATER = {
    "callbacks": "wiring",
    "device_class": "insight.device_pages",
    "plugins.registry": "insight.device_pages",
    "tensor.printing": "insight.notebook",
}


def cycle(graph: Mapping[str, set[str]]) -> list[str]:
    """Return the names along a cycle; empty if there is none."""
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for other in sorted(graph[name]):
            if found := visit(other, [*path, name]):
                return found
        done.add(name)
        return []

    return next((found for name in graph if (found := visit(name, []))), [])


def test_wheel_lists_every_package() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {p.parent.relative_to(CORE.parent) for p in CORE.rglob("__init__.py")}
    there = {".".join(f.parts) for f in folders if "template" not in f.parts}
    assert {*listed} == there


def test_core_has_no_import_cycle() -> None:
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert "errors" in GRAPH["device_class"], "imports are not seen at all"
    assert "ir.language" in GRAPH["ops.elementary"], "imports of packages are not seen"
    assert cycle(GRAPH) == []


def test_import_against_the_contract_is_detected() -> None:
    wrong = {
        "ir.verify": {"tensor.tensor", "errors"}, "errors": {"device_class", "ir.verify"},
        "extend": {"tensor.primitives", "sparse.tensor"},
        "sparse.sparse_ops": {"extend", "tensor.primitives"},
    }  # fmt: skip
    assert against(wrong) == [
        "errors -> ir.verify", "extend -> sparse.tensor", "ir.verify -> tensor.tensor",
        "sparse.sparse_ops -> tensor.primitives",
    ]  # fmt: skip
    tree = ast.parse("from ..ops import table\nif TYPE_CHECKING:\n    from ..tensor import tensor")
    assert arrows(tree, "ir.verify") == {"ops.table"}


@pytest.mark.parametrize(
    ("find", "text"),
    [
        (arrows, "from ..tensor import tensor"),
        (arrows, "try:\n    import dovetail.tensor.tensor\nexcept ImportError:\n    pass"),
        (arrows_for_types, "if TYPE_CHECKING:\n    from ..tensor.tensor import Tensor"),
        (late_arrows, 'def f():\n    return import_module("..tensor.tensor", __package__)'),
        (late_arrows, '__import__("dovetail.tensor.tensor")'),
        (late_arrows, 'tensor = LazyModule("..tensor.tensor", __package__)'),
        (cython_arrows, "from dovetail.tensor.tensor cimport (\n    create_tensor,\n)"),
        (cython_arrows, "from dovetail.tensor cimport tensor"),
        (cython_arrows, "from ..tensor.tensor import Tensor"),
        (cython_arrows, "cimport cython, dovetail.tensor.tensor as t"),
    ],
)
def test_planted_import_of_each_kind_is_against_the_contract(find: Any, text: str) -> None:
    planted = text if find is cython_arrows else ast.parse(text)
    assert against({"ir.verify": find(planted, "ir.verify")}) == ["ir.verify -> tensor.tensor"]


def test_packages_import_only_what_the_contract_allows() -> None:
    assert {room(name) for name in MODULES} == {*MAY_IMPORT, *GROUND, *DOORS, *OUTSIDE_CORE}
    assert against(GRAPH) == []


def test_compiled_modules_import_only_what_the_contract_allows() -> None:
    compiled = {name: compiled_arrows(name) for name in MODULES}
    assert "graph.expr" in compiled["engine.launching"], "imports are not seen at all"
    assert against(compiled) == ["graph.expr -> memory.storage"]  # the C type of a leaf's field
    compiled["graph.expr"].remove("memory.storage")
    assert cycle({name: GRAPH[name] | compiled[name] for name in MODULES}) == []


def test_type_imports_against_the_contract_are_listed() -> None:
    for_types = {n: arrows_for_types(t, n) for n, t in MODULES.items() if room(n) not in DOORS}
    listed = [f"{name} -> {u}" for name, used in UPWARD_TYPES.items() for u in used.split()]
    assert against(for_types) == listed


def test_late_imports_against_the_contract_are_listed() -> None:
    late = {name: set[str]() for name in MODULES if room(name) not in DOORS}
    late |= {n: late_arrows(t, n) for n, t in modules_with(LATE_CALL).items() if n in late}
    assert "insight.device_pages" in late["device_class"], "imports are not seen at all"
    listed = [f"{name} -> {u}" for name, used in UPWARD_LATER.items() for u in used.split()]
    assert against(late) == listed
    others = {name: used - {*UPWARD_LATER.get(name, "").split()} for name, used in late.items()}
    # `np.add.reduce` of tensors: NumPy functions are built from those that they belong to
    others["functions.elementwise.op_functions"].remove("functions.numpy.ufunc_methods")
    assert cycle({name: GRAPH[name] | others.get(name, set()) for name in MODULES}) == []


# Modules that import by a name from a table or from outside, which is not read here: packages'
# lazy names, methods and functions of `functions` itself, commands, plugins and installed packages.
IMPORTS_BY_TABLE = {
    "__init__", "extension", "lazy_import", "functions.io.files", "functions.methods",
    "functions.numpy.protocol", "functions.variants", "plugins.entry", "tensorboard",
    "torch.namespaces",
}  # fmt: skip


def test_modules_that_import_by_a_table_are_listed() -> None:
    later = {
        name
        for name, tree in modules_with(LATE_CALL).items()
        if any(type(a) is not ast.Constant for a in late_calls(tree))
    }
    assert {n for n in later if room(n) not in ("commands", "testing")} <= IMPORTS_BY_TABLE


def test_contract_has_no_unused_permission_and_no_cycle() -> None:
    contract = MAY_IMPORT | OUTSIDE_CORE
    floors = list(contract)
    for name, allowed in contract.items():
        assert all(floors.index(a) < floors.index(name) for a in allowed.split()), name
        used = {room(u) for n, us in GRAPH.items() if room(n) == name for u in us}
        assert {*allowed.split()} == used - GROUND - DOORS - {name}, name


# Imports of each package from other distributions; the rest is the standard library.
TAKES = {
    "ml_dtypes": "onnx tensor",  # where it is installed
    "distributed": "parallel",  # where it is installed
    "mpi4py": "parallel",  # where it is installed
    "numpy": (
        "argument_checks autograd backend capture checkpoint commands compat data dtypes engine "
        "extension fft frontend func functions insight jax linalg nn numpy onnx ops optim parallel "
        "plugins sparse tensor tensorboard testing"
    ),
    "onnx": "onnx",
    "opt_einsum": "functions",  # when three operands are contracted
    "optree": "capture jax tree",  # when a captured function meets a container
    "platformdirs": "backend",
    "pluggy": "extend plugins tensor",
    "rich": "commands data functions insight testing",
    "scipy": "ops",  # where it is installed
    "pytest": "testing",
}


def test_core_uses_only_listed_names_of_other_distributions() -> None:
    found: dict[str, set[str]] = {}
    for name, tree in MODULES.items():
        for outside in {i.split(".")[0] for i in imports(tree, package(name))}:
            if outside not in sys.stdlib_module_names and outside != "dovetail":
                found.setdefault(outside, set()).add(room(name))
    assert found == {name: {*rooms.split()} for name, rooms in TAKES.items()}


# An interrupt during Python code in a finalizer or a weak reference's callback is
# lost, so frequently freed objects have none; these are freed rarely.
CALLED_BACK = {
    "data.loader": {"__del__", "finalize"},  # of loops that end early, to stop their workers
    "engine.provenance": {"WeakKeyDictionary"},  # of expressions, while `record_lines` is active
    "forks": {"ref"},  # of locks, by `discard` of a set, which runs no Python code
    # of captured functions, by `discard` of a set, which runs no Python code
    "capture.jit": {"ref"},
    "functions.io.pickling": {"WeakValueDictionary"},  # of tensors sent between processes
    "memory.caching_allocator": {"WeakSet", "finalize"},  # allocators, when their devices end
    "memory.mapped": {"finalize"},  # files, when their last user is gone
    "parallel.sockets": {"WeakSet"},  # transports, at the end of a worker
    "settings": {"ref"},  # by `discard` of a set, which runs no Python code
}
CALLING_BACK = {"WeakKeyDictionary", "WeakValueDictionary", "WeakSet", "finalize"}


def called_back(tree: ast.Module) -> set[str]:
    """Return the constructs in `tree` that make Python code run at deallocation."""
    found = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} & CALLING_BACK
    found |= {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)} & CALLING_BACK
    methods = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)} & {"__del__"}
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and len(n.args) > 1]
    return found | methods | {"ref" for n in calls if getattr(n.func, "id", "") == "ref"}


def test_frequently_freed_objects_run_no_python_code() -> None:
    assert called_back(ast.parse("def __del__(self): ref(x, f)")) == {"__del__", "ref"}
    pattern = "|".join([*CALLING_BACK, "__del__", r"\bref\("])
    found = {n: called_back(t) for n, t in modules_with(pattern).items() if room(n) != "commands"}
    assert {n: words for n, words in found.items() if words} == CALLED_BACK


def test_package_inits_contain_no_code() -> None:
    doors = [p for p in CORE.glob("*/__init__.py") if p.parent.name not in WITH_FACES]
    packages = {name for name in MAY_IMPORT if (CORE / name).is_dir()}
    assert {p.parent.name for p in doors} == packages - WITH_FACES
    for path in doors:
        tree = parse_file(path)
        assert ast.get_docstring(tree) and len(tree.body) == 1, path.parent.name


def hidden_imports(tree: ast.Module, package: str) -> list[str]:
    functions = [
        n for n in statements(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    names = {name for f in functions for name in imports(f, package)}
    return sorted(n for n in names if n.split(".")[0].startswith("dovetail"))


def test_no_function_of_the_core_imports_dovetail() -> None:
    assert hidden_imports(ast.parse("def f():\n    from .x import y"), "dovetail")
    found = {name: hidden_imports(tree, package(name)) for name, tree in MODULES.items()}
    assert {name: hidden for name, hidden in found.items() if hidden} == {}


@pytest.mark.parametrize("name", [n for n in MODULES if room(n) in OUTSIDE_CORE])
def test_packages_outside_the_core_use_only_the_extension_interface(name: str) -> None:
    """Imports for type checkers count too."""
    allowed = {room(name), "extend", *OUTSIDE_CORE[room(name)].split()}
    used = {i for i in imports(MODULES[name], package(name)) if i.startswith("dovetail.")}
    assert {i.split(".")[1] for i in used} <= allowed


@pytest.mark.parametrize("path", BACKENDS)
def test_backends_use_only_the_extension_interface(path: str) -> None:
    own = Path(path).parent.name
    wrong = [
        name
        for name in imports(parse_file(ROOT / path), own)
        if name.split(".")[0].startswith("dovetail")
        and name.split(".")[0] != own
        and not name.startswith("dovetail.extend")
        and name != "dovetail"
    ]
    assert wrong == []
    assert hidden_imports(parse_file(ROOT / path), own) == []


def branches(tree: ast.AST) -> list[str]:
    """Return device types named in a comparison, a `match` or a prefix test."""
    suspects: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare | ast.MatchValue):
            suspects.append(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            suspects += node.args if node.func.attr in ("startswith", "endswith") else []
    constants = (n for s in suspects for n in ast.walk(s) if isinstance(n, ast.Constant))
    return [str(c.value) for c in constants if c.value in DEVICE_TYPES]


@pytest.mark.parametrize(
    "code", ['d.type == "cpu"', 't in ("x", "cuda")', 't.startswith("opencl")']
)
def test_branch_on_a_device_type_is_detected(code: str) -> None:
    assert branches(ast.parse(code))


def test_core_has_no_branch_on_a_device_type() -> None:
    found = {name: branches(tree) for name, tree in modules_with("|".join(DEVICE_TYPES)).items()}
    assert {name: types for name, types in found.items() if types} == {}


def test_default_device_is_named_in_one_place() -> None:
    """Exceptions: commands, the kit and docstrings.

    Loaders collate on the host, and modules and tensors have PyTorch's `cpu()` and `cuda()`;
    `dovetail.torch` has PyTorch's namespaces of devices.
    """
    spelt = {
        name
        for name, tree in modules_with("|".join(DEVICE_TYPES)).items()
        if room(name) not in ("commands", "testing")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in DEVICE_TYPES
    }
    assert spelt == {
        "compat.aliases", "data.collate", "data.loader", "device_class", "nn.modules.module",
        "torch.names", "torch.switches",
    }  # fmt: skip


def python(code: str) -> str:
    """Return the output of `code` in a fresh interpreter."""
    folders = [str(ROOT / "core"), str(ROOT / "backends" / "cpu_llvm")]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    return subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    ).stdout


def test_import_loads_neither_the_core_nor_numpy() -> None:
    code = "import sys; before = {*sys.modules}; import dovetail; print(*{*sys.modules} - before)"
    loaded = {m for m in python(code).split() if m.split(".")[0] in {"dovetail", "numpy"}}
    expected = {f"dovetail{m}" for m in ("", ".build_info", ".environment", ".errors")}
    assert loaded - {"dovetail._compiled"} == expected


@pytest.mark.parametrize("name", ["Tensor", "bool", "float32", "device", "random", "linalg.solve"])
def test_first_used_name_loads_the_core(name: str) -> None:
    code = f"import dovetail; dovetail.{name}; print(hasattr(dovetail.Tensor, 'sum'))"
    assert python(code).strip() == "True"


@pytest.mark.parametrize(
    "code",
    [
        "from dovetail.linalg import solve; from dovetail import asarray; x = asarray([1.0])",
        "from dovetail import asarray; x = asarray([1.0]); import dovetail.device_class",
        "import dovetail.tensor.tensor; from dovetail.functions.creation import from_values;"
        "x = from_values.asarray([1.0])",
        "from dovetail import *; x = asarray([1.0])",
    ],
)
def test_tensors_are_complete_for_any_first_import(code: str) -> None:
    code = f"{code}\nimport dovetail\nprint((x + 1).sum().item(), dovetail.device('cpu'))"
    assert python(code).split() == ["2.0", "cpu"]


def test_thread_that_uses_a_name_waits_for_the_core() -> None:
    code = (
        "import threading, dovetail as dt; seen = [];"
        "ask = lambda: seen.append(hasattr(dt.Tensor, 'sum') and dt.zeros(2).tolist());"
        "threads = [threading.Thread(target=ask) for _ in range(8)];"
        "[t.start() for t in threads]; [t.join() for t in threads]; print(seen == [[0.0, 0.0]] * 8)"
    )
    assert python(code).strip() == "True"


def test_first_use_loads_only_listed_modules() -> None:
    code = (
        "import sys; before = {*sys.modules}; import dovetail; dovetail.Tensor;"
        "print(*{*sys.modules} - before)"
    )
    loaded = python(code).split()
    compiled = {m for m in loaded if m == "cython_runtime" or m.startswith("_cython_")}  # no files
    outside = {m.split(".")[0] for m in loaded} - sys.stdlib_module_names - compiled
    assert outside == {"dovetail", "numpy", "pluggy"}
    assert "importlib.metadata" not in loaded
    late = (
        "dovetail.commands", "dovetail.testing", "dovetail.capture.jit", "dovetail.insight.",
        "dovetail.capture.program", "dovetail.capture.tracer",
        "dovetail.memory.tracing.html_report", "dovetail.autograd.check", "dovetail.linalg.",
        "dovetail.fft.", "dovetail.frontend.", "json", "tomllib", "dovetail.fusion.passes",
        "dovetail.ir.legalize", "dovetail.backend.limits", "dovetail.autograd.gradients",
        "dovetail.functions.numpy.", "dovetail.ops.special", "dovetail.ops.convolution",
        *(f"dovetail.{name}" for name in OUTSIDE_CORE),
    )  # fmt: skip
    assert not [m for m in loaded if m.startswith(late)]
    own = [m for m in loaded if m.startswith("dovetail") and m != "dovetail._compiled"]
    assert len(own) <= 180  # beside the extension, which lists modules


def test_first_result_loads_no_module_for_other_devices_or_captures() -> None:
    code = (
        "import sys, dovetail as dt; x = dt.asarray([1.0, 2.0]); assert (x + x).tolist() == [2, 4];"
        "print(*sys.modules)"
    )
    loaded = {*python(code).split()}
    assert {"dovetail.fusion.passes", "dovetail.ir.legalize"} <= loaded
    assert not loaded & {"subprocess", "concurrent.futures"}
    others = {
        "dovetail.capture.tracer", "dovetail.backend.driver_backend",
        "dovetail.backend.float_probe", "dovetail.backend.scheduled", "dovetail.ir.cstyle",
        "dovetail.ir.hide_floats", "dovetail.ir.lower_subword", "dovetail.ir.parser",
        "dovetail.autograd.gradients",
    }  # fmt: skip
    assert not loaded & others


def test_numpy_is_imported_at_a_shallow_import_depth() -> None:
    order = python("import sys, dovetail; dovetail.Tensor; print(*sys.modules)").split()
    before = order[order.index("dovetail") : order.index("numpy")]
    assert {room(m.partition(".")[2]) for m in before if "dovetail." in m} <= GROUND


@pytest.mark.parametrize("first", ["", "gc.disable();"])
def test_import_keeps_the_state_of_the_collector(first: str) -> None:
    same = "gc.isenabled() is before"
    code = f"import gc; {first} before = gc.isenabled(); from dovetail import Tensor; print({same})"
    assert python(code).strip() == "True"


@pytest.mark.timing
def test_import_is_fast() -> None:
    """Compare with NumPy's import, which a busy machine slows down equally."""
    code = (
        "import time; t = time.process_time(); import numpy; n = time.process_time();"
        "import dovetail; i = time.process_time(); dovetail.Tensor; u = time.process_time();"
        "print((i - n) / (n - t), (u - n) / (n - t))"
    )
    python(code)  # writes the byte code
    runs = [[float(r) for r in python(code).split()] for _ in range(7)]
    imported, used = (statistics.median(r) for r in zip(*runs, strict=True))
    assert imported < 0.2
    assert used < 1.5


def test_import_leaves_no_young_objects_for_the_collector() -> None:
    code = (
        "import gc, sys, numpy; seen = []; look = 'dovetail.functions.methods';"
        "gc.callbacks.append(lambda *_: seen.append(look in sys.modules));"
        "import dovetail; dovetail.Tensor; print(look in sys.modules, any(seen))"
    )
    assert python(code).split() == ["True", "False"]


def test_import_keeps_frozen_objects_frozen() -> None:
    code = "import gc; gc.freeze(); from dovetail import Tensor; print(gc.get_freeze_count() > 0)"
    assert python(code).strip() == "True"

"""The public names: all are declared, typed and documented; generated files are current."""

from __future__ import annotations

import ast
import importlib.metadata
import inspect
import re
import shutil
import subprocess
import sys
import types
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import dovetail as dt
import faces
import pytest
from dovetail import declarations, errors
from dovetail.autograd.engine import TENSOR_METHODS
from dovetail.compat.aliases import ALIASES
from dovetail.functions import methods
from dovetail.functions.elementwise import op_functions
from dovetail.tensor.host import READ_METHODS
from dovetail.tensor.operators import OPERATORS
from source_trees import parse_file

# Array API 2025.12, the main namespace.
STANDARD = """
e inf nan newaxis pi arange asarray empty empty_like eye from_dlpack full full_like linspace
meshgrid ones ones_like tril triu zeros zeros_like astype can_cast finfo iinfo isdtype result_type
abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert
bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1
floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal log log1p
log2 log10 logaddexp logical_and logical_not logical_or logical_xor maximum minimum multiply
negative nextafter not_equal positive pow real reciprocal remainder round sign signbit sin sinh
square sqrt subtract tan tanh trunc __array_namespace_info__ take take_along_axis matmul
matrix_transpose tensordot vecdot broadcast_arrays broadcast_to concat expand_dims flip moveaxis
permute_dims repeat reshape roll squeeze stack tile unstack argmax argmin count_nonzero nonzero
searchsorted where isin unique_all unique_counts unique_inverse unique_values argsort sort
cumulative_prod cumulative_sum max mean min prod std sum var all any diff broadcast_shapes bool
int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128
"""
ROOT = Path(__file__).parent.parent
FACES = ROOT / "tools" / "faces.py"


# --- generated files


def test_generated_files_are_current() -> None:
    said = checked(ROOT, "--check")
    assert (said.returncode, said.stdout) == (0, "all faces are true\n"), said.stderr


def copied(tree: Path, changes: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Return the check's output for a copy of the core with each text replaced by another."""
    for part in ("core/dovetail", "tools"):
        shutil.copytree(ROOT / part, tree / part)
    path = tree / "core" / "dovetail" / "functions" / "reductions" / "statistics.py"
    text = path.read_text()
    for change, into in changes.items():
        assert text.count(change) == 1
        text = text.replace(change, into)
    path.write_text(text)
    return checked(tree, "--check")


def checked(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(tree / "tools" / "faces.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=tree, check=False)


def test_changed_parameter_fails_the_check_until_the_files_are_written(tmp_path: Path) -> None:
    before = (
        "correction: float = 0.0,\n    keepdims: bool = False,\n    out: Tensor | None = None,\n"
        '    where: Mask = None,\n) -> Tensor:\n    """Return the variance'
    )
    said = copied(tmp_path, {before: before.replace("0.0", "1.0")})
    assert said.returncode == 1, said.stderr
    assert "--- core/dovetail/tensor/signatures.pyi" in said.stdout
    assert "+        correction: float = 1.0," in said.stdout
    assert checked(tmp_path).returncode == 0
    said = checked(tmp_path, "--check")
    assert (said.returncode, said.stdout) == (0, "all faces are true\n"), said.stderr


def test_removed_names_and_methods_are_detected_by_the_generator(tmp_path: Path) -> None:
    """A name that `__init__` lists and no module has cannot be imported; it is rewritten."""
    removed = {
        '    "logsumexp",\n': "",
        "@public(method=True, cache=True)\ndef var(": "@public(cache=True)\ndef var(",
    }
    said = copied(tmp_path, removed)
    assert said.returncode == 1, said.stderr
    assert "--- core/dovetail/__init__.py" in said.stdout
    assert "logsumexp" in said.stdout
    assert "-    def var(" in said.stdout


# --- methods


def assigned_to(tree: ast.Module, name: str) -> list[str]:
    """Return calls and assignments that set attributes of a class from outside."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and len(node.args) == 3:
            sets = ast.unparse(node.func) in ("setattr", "type.__setattr__")
            found += [ast.unparse(node)] if sets and ast.unparse(node.args[0]) == name else []
        if isinstance(node, ast.Assign):
            targets = [t for t in node.targets if isinstance(t, ast.Attribute)]
            found += [ast.unparse(node) for t in targets if ast.unparse(t.value) == name]
    return found


SETS_ATTRIBUTE = re.compile(r"setattr|\b(?:Layout)?Tensor\.\w+.*=")  # in the text of a module


def test_methods_are_assigned_in_one_place() -> None:
    assert assigned_to(ast.parse("setattr(T, 'x', 1)\nT.y = 2\nU.z = 3"), "T") != []
    paths = [p for p in (ROOT / "core").rglob("*.py") if SETS_ATTRIBUTE.search(p.read_text())]
    trees = {path: parse_file(path) for path in paths}
    places = {
        path.relative_to(ROOT).as_posix(): found
        for path, tree in trees.items()
        if path.parent.name != "torch"  # where Tensor is a subclass
        and (found := [
            line for name in ("Tensor", "LayoutTensor", "tensor.Tensor")
            for line in assigned_to(tree, name)
        ])
    }  # fmt: skip
    assert places == {"core/dovetail/functions/methods.py": ["setattr(Tensor, name, method)"]}


def test_no_method_is_assigned_twice() -> None:
    """So the order of assignment does not matter."""
    tables = (declarations.METHODS, declarations.IN_PLACE_METHODS, methods.PROPERTIES,
              TENSOR_METHODS, OPERATORS, READ_METHODS)  # fmt: skip
    given = Counter(name for table in tables for name in table)
    assert {name: n for name, n in given.items() if n > 1} == {}
    tree = ast.parse((ROOT / "core/dovetail/tensor/tensor.py").read_text())
    (written,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
    own = {n.name for n in written.body if isinstance(n, ast.FunctionDef)}
    assert own & given.keys() == set()


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("add_", "(x1: Tensor, x2: Operand, /) -> Tensor"),
        ("exp_", "(x: Tensor, /) -> Tensor"),
        ("mul_", "(x1: Tensor, x2: Operand, /) -> Tensor"),
        (
            "add",
            "(x1: Operand, x2: Operand, /, *, out: Tensor | None = None) -> Tensor",
        ),
        ("__matmul__", "(self: 'Tensor', other: 'Array') -> 'Tensor'"),
    ],
)
def test_methods_have_their_signatures(name: str, parameters: str) -> None:
    assert str(inspect.signature(getattr(dt.Tensor, name))) == parameters


def test_in_place_methods_document_what_they_write() -> None:
    for name, op in op_functions.FUNCTIONS.items():
        if name in op_functions.WITHOUT_IN_PLACE:
            assert not hasattr(dt.ones(1), f"{name}_")
            continue
        method = getattr(dt.Tensor, f"{name}_")
        assert method.__name__ == f"{name}_"
        said = method.__doc__ or ""
        assert said.startswith(f"Write the result of `dt.{name}` into this tensor's memory")
        assert name in ("pow", "round") or said.endswith(getattr(dt, name).__doc__)
        assert len(inspect.signature(method).parameters) == op.arity


# --- names


def test_version_equals_that_of_the_distribution() -> None:
    assert dt.__version__ == importlib.metadata.version("dovetail-tensor")


# The visible names of the modules of `dt`; each name is a promise.
SEEN = {
    "memory": """Allocator BlockInfo CachingAllocator DataPtr MappedFile SegmentInfo Stats Storage
        empty_cache get_allocator get_numa_policy html_report reset_peak set_allocator set_limit
        set_numa_policy snapshot stats trace wrap_pointer""",
    "plugins": "devices installed open_device records",
    "fft": """fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2
        irfftn rfft rfft2 rfftfreq rfftn""",
    "linalg": """block_diag cholesky cholesky_solve cond cross det diagonal eig eigh eigvals
        eigvalsh expm householder inv kron lstsq lu lu_solve matmul matrix_norm matrix_power
        matrix_rank
        matrix_transpose multi_dot norm outer pinv qr slogdet solve solve_triangular svd
        svdvals tensordot trace vecdot vector_norm vendor_products""",
    "random": """Generator bernoulli beta binomial categorical choice default_rng dirichlet
        exponential gamma get_state integers laplace manual_seed multinomial normal permutation
        poisson rand rand_like randint randn randn_like set_state shuffle truncated_normal
        uniform""",
    "tree": "flatten leaves map structure unflatten",
    "autograd": """Context Function HookHandle backward checkpoint detach detect_anomaly enable_grad
        grad gradcheck gradgradcheck hessian hvp inference_mode is_grad_enabled
        is_inference_mode_enabled jacobian jvp linearize no_grad saved_tensors_hooks
        set_grad_enabled set_gradient value_and_grad vjp""",
    "func": "grad hessian jacfwd jacrev jvp linearize value_and_grad vjp vmap",
}
MODULES = {"autograd", "fft", "func", "linalg", "memory", "plugins", "random"}


def test_core_is_loaded_while_another_thread_imports_one_of_its_modules() -> None:
    program = """if True:
        import sys, types
        import dovetail as dt
        name = "dovetail.capture.jit"
        sys.modules[name] = types.ModuleType(name)  # as far as the other thread has come
        dt.zeros
        del sys.modules[name]
        print(dt.jit(lambda x: x + 1)(dt.zeros(2)).tolist())
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[1.0, 1.0]\n", done.stderr


def test_dir_of_the_namespace_has_only_public_names() -> None:
    dir_ = {*dir(dt)}
    own = {"__array_api_version__", "__config__", "__version__"}
    assert dir_ == {*dt.__all__, *dt._PACKAGES} | own
    modules = {n for n in dir_ if isinstance(getattr(dt, n), types.ModuleType)}
    assert modules == MODULES | {*dt._PACKAGES} - {"sparse_coo_tensor"}
    assert not dir_ & {"loops", "ops", "functions", "engine", "math", "typing", "annotations"}


@pytest.mark.parametrize("name", sorted(SEEN))
def test_dir_of_modules_has_only_public_names(name: str) -> None:
    assert dir(getattr(dt, name)) == sorted(SEEN[name].split())


@pytest.mark.parametrize("name", sorted(SEEN))
def test_lazy_names_of_modules_exist(name: str) -> None:
    module = getattr(dt, name)
    for public in SEEN[name].split():
        assert getattr(module, public) is vars(module)[public]
    with pytest.raises(AttributeError, match=f"module 'dovetail.*{name}.*' has no .*'stat'"):
        _ = module.stat


def test_errors_equal_those_of_their_module() -> None:
    assert dir(errors) == sorted(errors.__all__)
    assert {*errors.__all__} == {
        n for n, v in vars(errors).items() if isinstance(v, type) and not n.startswith("_")
    } and {*errors.__all__} <= {*dt.__all__}


def test_all_names_are_exported() -> None:
    late = {*dt._SOURCES}  # their modules are loaded when a name is first used
    synonyms = {n for names in ALIASES[""].values() for n in names.split()}
    own = {n for n, v in vars(dt).items() if not isinstance(v, types.ModuleType)} - synonyms | late
    assert all(hasattr(dt, n) for n in late)
    assert {n for n in own if not n.startswith("_")} | MODULES == {
        n for n in dt.__all__ if not n.startswith("_")
    }


INNER = (
    "elementwise.docstrings", "elementwise.lerp", "graph_cache", "half_precision",
    "indexing.functional_updates", "indexing.index_keys", "io.arrow", "io.einops_backend",
    "io.pickling", "io.progress",
    "io.release_callbacks", "lazy_methods",
    "known_calls", "methods", "plain_calls",
    "numpy.extra_functions", "numpy.like_creation", "numpy.protocol", "numpy.same_names",
    "numpy.ufunc_folds", "numpy.ufunc_methods", "products.convolutions",
    "random.discrete_samplers",
    "random.generator", "random.samplers", "shape.bit_views", "shape.resizing", "variants",
)  # fmt: skip


def test_every_module_with_public_functions_has_all() -> None:
    """The listed names exist."""
    for name in faces.EXPORTED_NAMES:
        module = importlib.import_module(f"dovetail.{name}")
        assert [n for n in module.__all__ if not hasattr(module, n)] == [], name
    folder = ROOT / "core" / "dovetail" / "functions"
    files = (p.relative_to(folder).with_suffix("") for p in folder.rglob("*.py"))
    own = {".".join(("functions", *p.parts)) for p in files if p.name != "__init__"}
    own -= {f"functions.{n}" for n in INNER}
    assert own <= {*faces.EXPORTED_NAMES}


@pytest.mark.parametrize("name", sorted(n for n in dt.__all__ if inspect.isroutine(getattr(dt, n))))
def test_functions_have_docstrings(name: str) -> None:
    assert (getattr(dt, name).__doc__ or "").strip(), f"dt.{name} has no docstring"


def test_standard_names_exist_or_are_announced() -> None:
    missing = []
    for name in STANDARD.split():
        try:
            getattr(dt, name)
        except dt.UnsupportedError:
            assert not hasattr(dt, name)
        except AttributeError:
            missing.append(name)
    assert missing == []


def test_namespace_promises_only_dtypes_of_the_device(device: dt.Device) -> None:
    info = dt.__array_namespace_info__()
    found = info.default_dtypes()
    assert found == {
        "real floating": dt.float32, "complex floating": dt.complex64, "integral": dt.int64,
        "indexing": dt.int64,
    }  # fmt: skip
    for kind, dtype in found.items():
        assert dt.zeros(1, dtype=dtype).dtype is dtype
        assert kind == "indexing" or dtype.name in info.dtypes(kind=kind)
    assert list(info.dtypes(kind="complex floating")) == ["complex64", "complex128"]

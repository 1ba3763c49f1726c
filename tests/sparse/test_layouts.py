"""Layout plugins: discovery, validation, and isolation of broken ones."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import dovetail as dt
import pytest
from dovetail.commands.doctor import inspect_plugin
from dovetail.extend import LayoutInfo, LayoutTensor, hookimpl
from dovetail.plugins.entry import PluginEntry
from dovetail.plugins.plugin_state import PluginState
from dovetail.tensor.layout_registry import ENTRY_POINT_PREFIX, LayoutRegistry, registry


def plugin(name: str, info: Any) -> PluginEntry:
    """Return the entry of a new module whose hook returns `info`."""
    module = ModuleType(f"layout_{name}")

    @hookimpl
    def dovetail_layout_info() -> Any:
        return info

    module.dovetail_layout_info = dovetail_layout_info  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    return PluginEntry(name, module.__name__, f"{ENTRY_POINT_PREFIX}1", f"dist-{name}")


def test_sparse_coo_is_a_regular_plugin() -> None:
    assert dt.sparse is not None
    record = registry.records()["sparse_coo"]
    assert record.state is PluginState.OPEN and record.distribution == "dovetail-tensor"
    assert issubclass(dt.sparse.COO, LayoutTensor)
    assert inspect_plugin("sparse_coo").is_healthy, "the doctor"


def test_functions_and_methods_of_a_layout_are_found_by_name() -> None:
    kind = dt.sparse_coo.__class__("ragged")
    info = LayoutInfo(kind, functions={"ragged_tensor": len}, methods={"to_ragged": id})
    found = LayoutRegistry(find=lambda: [plugin("ragged", info)])
    assert found.find("functions", "ragged_tensor") is len
    assert found.find("methods", "to_ragged") is id
    with pytest.raises(AttributeError):
        found.find("functions", "other")


@pytest.mark.parametrize(
    ("info", "state"),
    [
        (None, PluginState.IMPORT_FAILED),
        (LayoutInfo(dt.sparse_coo), PluginState.IMPORT_FAILED),
        (
            LayoutInfo(dt.sparse_coo.__class__("odd"), minimum_interface=(1, 99)),
            PluginState.API_MISMATCH,
        ),
    ],
)
def test_broken_layout_affects_no_other_and_is_named(info: Any, state: PluginState) -> None:
    good = LayoutInfo(dt.sparse_coo.__class__("good"), functions={"good": len})
    found = LayoutRegistry(find=lambda: [plugin("odd", info), plugin("good", good)])
    assert found.find("functions", "good") is len
    assert found.records()["odd"].state is state
    with pytest.raises(AttributeError) as error:
        found.find("functions", "unknown")
    assert "odd" in str(error.value.__cause__)


def test_two_distributions_of_one_layout_conflict() -> None:
    kind = dt.sparse_coo.__class__("twice")
    one = plugin("twice", LayoutInfo(kind))
    found = LayoutRegistry(find=lambda: [one, one._replace(distribution="another")])
    assert found.records()["twice"].state is PluginState.CONFLICT


def test_unknown_names_raise_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="'dovetail' has no attribute 'sparsely'"):
        _ = dt.sparsely  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'sparsely'"):
        _ = dt.ones(1).sparsely  # type: ignore[attr-defined]
    assert not hasattr(dt.ones(1), "__sparsely__")


class LayoutWithoutRules(LayoutTensor):
    """A layout without any rule."""

    device, dtype, layout, shape, parts = (  # type: ignore[assignment]
        dt.device("reference"), dt.float32, dt.sparse_coo, (2, 3), (),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "f"),
    [
        ("sum", dt.sum), ("add", lambda x: x + 1), ("reshape", lambda x: x.reshape(-1)),
        ("softmax", dt.softmax), ("T", lambda x: x.T), ("concat", lambda x: dt.concat([x])),
        ("matmul", lambda x: dt.matmul(x, x)), ("numpy", lambda x: x.numpy()), ("var", dt.var),
        ("to", lambda x: x.to("cpu")), ("take", lambda x: dt.take(x, [0], axis=0)),
        ("tensordot", lambda x: dt.tensordot(x, x.__class__.__new__(LayoutWithoutRules), axes=0)),
        ("to_dense", lambda x: x.to_dense()), ("diagonal", lambda x: dt.diagonal(x)),
    ],
)  # fmt: skip
def test_missing_rule_of_a_layout_raises_with_the_function_name(name: str, f: Any) -> None:
    with pytest.raises(dt.LayoutError, match=f"^{name}: not supported for the layout sparse_coo"):
        f(LayoutWithoutRules.__new__(LayoutWithoutRules))

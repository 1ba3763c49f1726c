"""docs/errors.md has every error class, with an example that raises it, and a remedy."""

from __future__ import annotations

import builtins
import doctest
import re
from pathlib import Path

import dovetail as dt
import pytest
from dovetail import errors

TEXT = (Path(__file__).parent.parent / "docs" / "errors.md").read_text()
SECTIONS = {
    part.partition("\n")[0]: part for part in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]
}
# Examples that raise another class, or warn.
BASES = {"DovetailError": "ShapeError", "DovetailWarning": "", "SlowDeviceWarning": ""}


def examples(name: str) -> list[doctest.Example]:
    (session,) = re.findall(r"```python\n(.*?)```", SECTIONS[name], re.DOTALL)
    return doctest.DocTestParser().get_examples(session)


def test_page_documents_exactly_the_error_classes() -> None:
    assert sorted(SECTIONS) == sorted(errors.__all__)


@pytest.mark.parametrize("name", sorted(errors.__all__))
def test_example_raises_its_class_and_is_corrected(name: str) -> None:
    """tests/test_readme.py checks that sessions print the page's output."""
    found = examples(name)
    said = f"dovetail.errors.{BASES.get(name, name)}: " if BASES.get(name, name) else f"{name}: "
    failing = [i for i, e in enumerate(found) if said in (e.exc_msg or "") or said in e.want]
    assert len(failing) == 1 and len(found) > failing[0] + 1, name
    mended = found[failing[0] + 1 :]
    assert not any(e.exc_msg for e in mended), name


@pytest.mark.parametrize("name", sorted(errors.__all__))
def test_documented_base_class_is_right(name: str) -> None:
    kind = getattr(errors, name)
    for base in re.findall(r"It is an? `(\w+)`", SECTIONS[name]):
        assert issubclass(kind, getattr(builtins, base))


def test_unavailable_device_raises_unavailable_error() -> None:
    """The page's session omits this example, because the device may exist."""
    pytest.importorskip("dovetail_cuda")
    if "cuda" in {d.type for d in dt.devices()}:
        pytest.skip("this machine has a GPU; the error is that of one without")
    with pytest.raises(dt.UnavailableError, match='device type "cuda" is unavailable: '):
        dt.ones(2, device="cuda")

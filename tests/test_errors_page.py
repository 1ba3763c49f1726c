"""docs/errors.md has every class of errors, with an example that raises it, and its mend."""

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
# What their examples raise, where it is another class, or is said as a warning.
BASES = {"DovetailError": "ShapeError", "DovetailWarning": "", "SlowDeviceWarning": ""}


def examples(name: str) -> list[doctest.Example]:
    (session,) = re.findall(r"```python\n(.*?)```", SECTIONS[name], re.DOTALL)
    return doctest.DocTestParser().get_examples(session)


def test_every_class_is_there_and_no_other() -> None:
    assert sorted(SECTIONS) == sorted(errors.__all__)


@pytest.mark.parametrize("name", sorted(errors.__all__))
def test_an_example_fails_with_the_class_and_is_mended(name: str) -> None:
    """That sessions print what the page says is seen in tests/test_readme.py."""
    found = examples(name)
    said = f"dovetail.errors.{BASES.get(name, name)}: " if BASES.get(name, name) else f"{name}: "
    failing = [i for i, e in enumerate(found) if said in (e.exc_msg or "") or said in e.want]
    assert len(failing) == 1 and len(found) > failing[0] + 1, name
    mended = found[failing[0] + 1 :]
    assert not any(e.exc_msg for e in mended), name


@pytest.mark.parametrize("name", sorted(errors.__all__))
def test_the_other_class_that_it_is_said_to_be_is_one(name: str) -> None:
    kind = getattr(errors, name)
    for base in re.findall(r"It is an? `(\w+)`", SECTIONS[name]):
        assert issubclass(kind, getattr(builtins, base))


def test_a_device_that_cannot_be_had_is_unavailable() -> None:
    """The example that the page's session leaves out where there may be such a device."""
    pytest.importorskip("dovetail_cuda")
    if "cuda" in {d.type for d in dt.devices()}:
        pytest.skip("there is one")
    with pytest.raises(dt.UnavailableError, match='device type "cuda" is unavailable: '):
        dt.ones(2, device="cuda")

"""`dovetail demo text`: parsing, searching and ranking of a small library with known results."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dovetail.commands import demo_text
from dovetail.commands.demo_text import Library, disagreements, distance, search
from rich.console import Console

pytest.importorskip("scipy")
pytest.importorskip("matplotlib")


def small() -> Library:
    """Return six modules about ten words; the first is imported most, one imports nothing."""
    rng = np.random.default_rng(3)
    words = ["apple", "bread", "cheese", "dough", "egg", "flour", "grape", "honey", "ice", "lemon"]
    uses = np.stack([rng.integers(0, 6, 400), rng.integers(0, 10, 400)])
    uses = uses[:, (uses.sum(axis=0) % 3) > 0]
    imports = np.array([[0, 0, 0, 0, 0, 1, 2, 2], [1, 2, 3, 4, 4, 3, 3, 4]])
    return Library([f"m{i}" for i in range(6)], words, uses.astype(np.int64), imports)


def test_ranking_equals_scipy(device: str) -> None:
    lib = small()
    out = search(device, lib, ["lemon", "bread"])
    assert 0 < distance(out, lib, ["lemon", "bread"]) < demo_text.TOLERANCE
    assert out.ranks.argmax() == 0
    assert out.stored == len({tuple(pair) for pair in lib.uses.T})


def test_unknown_words_change_no_score(device: str) -> None:
    lib = small()
    part = Library(lib.modules, [*lib.words, "nowhere"], lib.uses, lib.imports)
    out = search(device, part, ["nowhere"])
    assert not out.scores.any()
    assert distance(out, part, ["nowhere"]) < demo_text.TOLERANCE


def test_all_devices_give_the_same_bits(device: str) -> None:
    outcomes = [search(d, small(), ["egg"]) for d in ("reference", device)]
    assert disagreements(outcomes) == []
    outcomes[1].scores = outcomes[1].scores + 1
    assert len(disagreements(outcomes)) == 1


def test_sources_are_parsed_into_words_and_imports(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("from . import inner\nimport os, alone\n")
    (tmp_path / "package" / "inner.py").write_text("from .other import x\nfrom alone import y\n")
    (tmp_path / "alone.py").write_text("def parseHTTPHeaders(): pass")
    (tmp_path / "tests" / "left_out.py").write_text("import alone")
    sources = dict(demo_text.sources(tmp_path))
    assert sorted(sources) == ["alone", "package", "package.inner"]
    known = {name: i for i, name in enumerate(sources)}
    of = {name: list(demo_text._imports_of(text, name, known)) for name, text in sources.items()}
    assert of == {"alone": [], "package": ["package.inner", "alone"], "package.inner": ["alone"]}


def test_words_are_split_and_stemmed() -> None:
    found = [demo_text._stem(w) for w in demo_text._WORD.findall("parseHTTPHeaders class_names")]
    assert found == ["parse", "http", "header", "class", "name"]


def test_query_without_known_words_raises() -> None:
    with pytest.raises(ValueError, match="none of 'zebra' occurs"):
        demo_text.query_vector(small(), ["zebra"])


def test_text_command_prints_results_and_writes_a_picture(
    tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setattr(demo_text, "library", small)
    picture = tmp_path / "text.png"
    arguments = ["honey", "--device", "reference", "--device", "cpu", "--out", str(picture)]
    assert demo_text.main(arguments) == 0
    said = capsys.readouterr().out
    assert "honey" in said
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert demo_text.main(["zebra", "--device", "reference"]) == 2


def test_digests_are_whole_where_a_device_is_slow() -> None:
    """Users compare them; the times of a slow device leave little of a line."""
    table = demo_text.results_table()
    table.add_row("webgpu", "659", "183,900", "119948 + 157870 + 139655", "7e-07", "31bcace3a38c")
    console = Console(width=80, file=io.StringIO())
    console.print(table)
    assert "31bcace3a38c" in console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO

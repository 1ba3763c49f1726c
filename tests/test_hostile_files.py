"""Hostile files: a loader returns a value or raises a named error of one line, soon, and runs
no code.

Valid files are truncated, shuffled and modified at random.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import random
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail import memory
from dovetail.backend import diskcache
from dovetail.commands.memory_report import main as memory_command
from dovetail.errors import ArgumentError, DovetailError
from dovetail.ir.parser import parse_kernel
from dovetail.memory.tracing import snapshot
from dovetail.memory.tracing.replay import format_trace, parse_trace, replay_trace, steps_of
from dovetail.memory.tracing.snapshot import check
from fake_device import make
from places import GOLDEN

KERNELS = sorted(GOLDEN.glob("*.txt"))
STUFF = (
    b"", b"\0", b"\xff\xfe", b"9" * 5000, b"-1", b"1e999", b"NaN", b"null", b"[" * 3000,
    b"(" * 3000,
    b'{"a":' * 2000, b"</script><script>", b"|O", b"<c16", b"(99999999999,)", b"\n", b"}", b'"',
)  # fmt: skip
STRANGE: tuple[Any, ...] = (
    None, True, -1, 0, 1.5, 1e308, float("nan"), float("inf"), 1 << 70, "HUGE", "", "live", 
    "x" * 5000,
    "<script>", "\ud800", [], {}, [[]], [None] * 9,
)  # fmt: skip


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return the bytes with a few of them changed, removed, doubled or inserted."""
    low, high = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    short = min(high, low + rng.randrange(30))
    return rng.choice(
        (
            lambda: data[:low] + bytes([rng.randrange(256)]) + data[low + 1 :],
            lambda: data[:low],
            lambda: data[:low] + data[high:],
            lambda: data[:low] + data[short:],
            lambda: data[:high] + data[low:],
            lambda: data[:low] + rng.choice(STUFF) + data[low:],
        )
    )()


def answered(load: Callable[[], object]) -> bool:
    """Return True if a loader accepted a file.

    Any error but a named one of dovetail fails the test.
    """
    try:
        load()
    except DovetailError as error:
        assert str(error) and "\n" not in str(error)
        return False
    return True


def both(test: Callable[..., None]) -> Callable[..., None]:
    """Return a sample by default, a thousand under `exhaustive`."""
    ours = [pytest.param(1, 50)]
    ours += [pytest.param(seed, 250, marks=pytest.mark.exhaustive) for seed in range(2, 6)]
    return pytest.mark.parametrize(("seed", "count"), ours)(test)


# --- records of memory


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    """Return the JSON record of an allocator of a device that only counts."""
    memory.trace(True)
    try:
        _, allocator = make()
        rng, live = random.Random(5), []
        for _ in range(60):
            if live and rng.random() < 0.4:
                live.pop(rng.randrange(len(live)))
            live.append(allocator.allocate(rng.choice((1, 5000, 600_000, 12 << 20))))
        found = snapshot.build("fake", allocator.stats(), allocator.snapshot(), allocator.timeline)
    finally:
        memory.trace(False)
    again: dict[str, Any] = json.loads(json.dumps(found))
    return again


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Return every (container, key) in a record."""
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(entries):
        yield value, key
        if isinstance(inner, dict | list):
            yield from places(inner)


def changed(record: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return a record with a strange, missing, doubled or misplaced item in one or two places."""
    made: dict[str, Any] = json.loads(json.dumps(record))
    for _ in range(rng.randrange(1, 3)):
        known = list(places(made))
        # most positions are deeply nested: start at the top as often
        held, key = rng.choice(known if rng.random() < 0.5 else [p for p in known if p[0] is made])
        other, place = rng.choice(known)
        kind = rng.randrange(4)
        if kind == 0:
            held[key] = rng.choice(STRANGE)
        elif kind == 1:
            del held[key]
        elif kind == 2:
            held[key] = json.loads(json.dumps(other[place], default=str))
        elif isinstance(held, list):
            held.append(rng.choice(STRANGE))
    return made


def text_of(made: dict[str, Any]) -> bytes:
    """Return JSON, even if a number has more digits than Python writes."""
    return json.dumps(made, default=str).replace('"HUGE"', "9" * 5000).encode()


@both
def test_command_answers_any_record_with_a_page_or_one_line(
    seed: int, count: int, record: dict[str, Any], tmp_path: Path, capsys: Any
) -> None:
    rng, drawn = random.Random(seed), 0
    file, page = tmp_path / "trace.json", tmp_path / "page.html"
    whole = json.dumps(record).encode()
    for n in range(count):
        file.write_bytes(mutated(whole, rng) if n % 3 == 0 else text_of(changed(record, rng)))
        status = memory_command([str(file), "-o", str(page), "--force"])
        said = capsys.readouterr().err
        if status == 0:
            drawn += 1
            assert not said and page.read_text("utf-8").count("<script") == 2
        else:
            assert status == 2 and said.startswith(f"dovetail memory: {file}"), said
            assert said.count("\n") == 1
    assert 0 < drawn < count, "some are merely of another content"


@both
def test_every_record_that_passes_the_check_can_be_replayed(
    seed: int, count: int, record: dict[str, Any]
) -> None:
    rng, replayed = random.Random(seed), 0
    for _ in range(count):
        made = changed(record, rng)

        def load(made: dict[str, Any] = made) -> None:
            _, allocator = make(1 << 40)
            replay_trace(steps_of(check(made)), allocator, lambda number: f"stream {number}")

        replayed += answered(load)
    assert replayed


@both
def test_mutated_trace_texts_are_read_or_raise_named_errors(
    seed: int, count: int, record: dict[str, Any]
) -> None:
    rng, good = random.Random(seed), format_trace(steps_of(record)).encode()
    taken = [
        answered(lambda: parse_trace(mutated(good, rng).decode("utf-8", "replace")))
        for _ in range(count)
    ]
    assert any(taken) and not all(taken)


@pytest.mark.parametrize(
    ("at", "value", "said"),
    [
        (("segments", 0, "nbytes"), 0, "segments[0].nbytes must be an integer from 1"),
        (
            ("segments", 0, "blocks", 0, 1),
            1 << 40,
            "segments[0].blocks[0] must end within its segment",
        ),
        (("segments", 0, "blocks", 0, 3), 99, "segments[0].blocks[0][3] must be an integer from 0"),
        (("segments", 0, "blocks", 0), [0, 1], "segments[0].blocks[0] must be a list of 4"),
        (("segments", 0), 5, "segments[0] must be an object"),
        (("stats",), {}, "stats must have 'live_bytes'"),
        (("stats", "allocations"), True, "stats.allocations must be an integer"),
        (("stats", "live_bytes"), 1.5, "stats.live_bytes must be an integer"),
        (("events", 1, 0), float("nan"), "events[1][0] must be a time from 0"),
        (("events", 5, 0), 0, "events[5] must not be earlier than the event before it"),
        (("events", 1, 2), -1, "events[1][2] must be an integer from 0"),
        (("lines", 1), 7, "lines[1] must be a string"),
        (("device",), None, "device must be a string"),
        (("before",), "none", "before must be a list"),
    ],
)
def test_error_of_a_record_is_named(
    at: tuple[Any, ...], value: Any, said: str, record: dict[str, Any]
) -> None:
    made = json.loads(json.dumps(record))
    held = made
    for key in at[:-1]:
        held = held[key]
    held[at[-1]] = value
    with pytest.raises(ArgumentError) as error:
        check(made, "t.json")
    assert str(error.value).startswith("t.json is not a memory snapshot") and said in str(
        error.value
    )


@pytest.mark.parametrize("text", ["", "[" * 100_000, "9" * 5000, '{"a": 1', "\ufeff{}", "nul"])
def test_non_json_record_is_reported(text: str, tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text(text, "utf-8")
    with pytest.raises(ArgumentError, match=r"t.json is not JSON"):
        snapshot.load(file)


# --- sparse tensors


def sparse_files() -> list[bytes]:
    """Return valid files, as dovetail and as SciPy write them."""
    made, rng = [], np.random.default_rng(1)
    for shape in ((5, 7), (3, 4, 2)):
        x = dt.asarray((rng.random(shape) > 0.6) * rng.random(shape), device="reference")
        dt.sparse.save(file := io.BytesIO(), x.to_sparse())  # type: ignore[attr-defined]
        made.append(file.getvalue())
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.random_array((6, 5), density=0.4, rng=rng)
    for form in ("coo", "csr", "csc"):
        sparse.save_npz(file := io.BytesIO(), matrix.asformat(form), compressed=False)
        made.append(file.getvalue())
    return made


def repacked(data: bytes, rng: random.Random) -> bytes:
    """Return a valid archive with one member changed, removed or swapped."""
    held = zipfile.ZipFile(io.BytesIO(data))
    members = {name: held.read(name) for name in held.namelist()}
    victim, other = rng.choice([*members]), rng.choice([*members])
    kind = rng.randrange(5)
    if kind == 0:
        del members[victim]
    elif kind == 1:
        members[victim] = members[other]
    else:
        members[victim] = mutated(members[victim], rng)
    with zipfile.ZipFile(file := io.BytesIO(), "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def load_sparse(data: bytes) -> None:
    x = dt.sparse.load(io.BytesIO(data), device="reference")
    dt.evaluate(x.coalesce().values())


@both
@pytest.mark.filterwarnings("ignore")  # NumPy's warning about headers of old versions
def test_mutated_sparse_files_load_or_raise_named_errors(seed: int, count: int) -> None:
    rng, good = random.Random(seed), sparse_files()
    taken = []
    for n in range(count):
        file = rng.choice(good)
        bad = mutated(file, rng) if n % 3 == 0 else repacked(file, rng)
        taken.append(answered(lambda bad=bad: load_sparse(bad)))  # type: ignore[misc]
    assert any(taken) and not all(taken)


class Ran:
    """An object that would create a file if it were unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("where", ["values", "format", "whole"])
def test_no_pickle_is_loaded(where: str, tmp_path: Path) -> None:
    marker, file = tmp_path / "ran", tmp_path / "x.npz"
    evil = np.array([Ran(marker)], dtype=object)
    if where == "whole":
        file.write_bytes(pickle.dumps(Ran(marker)))
    else:
        dt.sparse.save(file, dt.eye(3, device="reference").to_sparse())  # type: ignore[attr-defined]
        with np.load(file) as held:
            np.savez(file, **{**held, where: evil})
    with pytest.raises(ArgumentError, match=r"x.npz does not hold a sparse tensor"):
        dt.sparse.load(file, device="reference")
    assert not marker.exists()
    pickle.loads(pickle.dumps(Ran(marker)))
    assert marker.exists(), "it would have run"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"indptr": [0, 2, 1, 3]}, "'indptr' does not ascend"),
        ({"indptr": [0, 1, 2, 1 << 40]}, "'indptr' does not ascend"),
        ({"indptr": []}, "'indptr' "),
        ({"format": "bsr"}, "format 'bsr' is unknown"),
        ({"data": ["a", "b", "c"]}, "'data' is of dtype <U1"),
        ({"shape": [[3, 3]]}, "'shape' is of dtype"),
        ({"shape": None}, "no array 'shape'"),
        ({"format": "coo"}, "no array 'row'"),
    ],
)
def test_error_of_a_sparse_file_is_named(
    changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    good: dict[str, Any] = {
        "format": "csr", "shape": [3, 3], "data": [1.0, 2.0, 3.0], "indices": [0, 1, 2],
        "indptr": [0, 1, 2, 3],
    }  # fmt: skip
    np.savez(tmp_path / "good.npz", **good)
    assert dt.sparse.load(tmp_path / "good.npz", device="reference").shape == (3, 3)
    np.savez(tmp_path / "x.npz", **{k: v for k, v in {**good, **changes}.items() if v is not None})
    with pytest.raises(ArgumentError, match=r"sparse.load: .*x.npz") as error:
        dt.sparse.load(tmp_path / "x.npz", device="reference")
    assert said in str(error.value)


def test_single_array_is_no_sparse_file(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.eye(3))
    with pytest.raises(ArgumentError, match=r"x.npy does not hold a sparse tensor"):
        dt.sparse.load(tmp_path / "x.npy")
    with pytest.raises(FileNotFoundError):
        dt.sparse.load(tmp_path / "none.npz")


# --- texts of kernels


@both
def test_mutated_kernel_texts_parse_or_raise_named_errors(seed: int, count: int) -> None:
    rng, good = random.Random(seed), [p.read_bytes() for p in KERNELS]
    lines = [line for text in good for line in text.splitlines()]
    taken = 0
    for n in range(count):
        text = rng.choice(good)
        if n % 2:
            parts = text.splitlines()
            parts[rng.randrange(len(parts))] = rng.choice(lines)
            text = b"\n".join(parts)
        else:
            text = mutated(text, rng)
        taken += answered(lambda text=text: parse_kernel(text.decode("utf-8", "replace")))  # type: ignore[misc]
    assert taken < count


@pytest.mark.parametrize(
    "line",
    [
        "map x in " + ".." * 6000 + " carry (" * 2000,
        "map x in a..b" + " carry ()" * 1500,
        "store " + "a[" * 8000,
        "store a[i0] = " + " if a" * 8000,
        "v: f32 = load " + "x[i0] if " * 3000,
        "v: f32 = add i" + "9" * 5000 + ", i0",
        "kernel a(" + ";" * 4000,
    ],
)
def test_parsing_a_hostile_line_is_fast(line: str) -> None:
    for text in (line, "kernel k(x: r f32; ; ) grid() {\n" + line):
        assert not answered(lambda text=text: parse_kernel(text))  # type: ignore[misc]


@pytest.mark.parametrize("depth", [2000, 50_000])
def test_deeply_nested_loops_raise(depth: int) -> None:
    loops = "".join(f"map j{i} in i64(0)..i64(2) {{\n" for i in range(depth))
    text = "kernel k(x: r f32; ; ) grid() {\n" + loops + "}\n" * (depth + 1)
    with pytest.raises(ArgumentError, match="nested too deeply"):
        parse_kernel(text)


# --- binaries on disk


@both
def test_mutated_cached_binaries_are_rejected(
    seed: int, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE_DIR", str(tmp_path))
    diskcache.cache_folder.cache_clear()
    rng, right = random.Random(seed), bytes(range(256)) * 4
    try:
        for _ in range(count):
            diskcache.write("cpu", "kernel", right)
            [path] = (tmp_path / "kernels").glob("*/*")
            good = path.read_bytes()
            path.write_bytes(mutated(good, rng))
            expected = right if path.read_bytes() == good else None
            assert diskcache.read("cpu", "kernel") == expected
    finally:
        diskcache.cache_folder.cache_clear()

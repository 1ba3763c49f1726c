"""`dovetail demo scale`: the same bits for all chunks and workers, and NumPy's results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dask
import dovetail as dt
import numpy as np
import pytest
from dovetail.commands import demo_scale as scale
from dovetail.commands.demo_scale import BLOCK_ROWS, RowSource, WorkPartition

pytest.importorskip("dovetail_cpu_llvm")
BLOCKS = 6


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> RowSource:
    path = tmp_path_factory.mktemp("scale") / "data.npy"
    scale.write_data(path, BLOCKS * BLOCK_ROWS, "cpu")
    return RowSource(str(path), BLOCKS * BLOCK_ROWS, "cpu")


@pytest.fixture(autouse=True)
def synchronous_scheduler() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield


def test_results_have_the_same_bits_for_all_chunk_sizes(source: RowSource) -> None:
    found = {
        k: scale.analyse(source, WorkPartition(1, k * BLOCK_ROWS)).digest for k in (1, 2, 4, 6)
    }
    assert len(set(found.values())) == 1, found


def test_plain_sums_of_chunks_depend_on_the_chunk_size(source: RowSource) -> None:
    def of_chunk(x: dt.Tensor) -> dt.Tensor:
        return dt.expand_dims(dt.sum(x, axis=(0, 1)), axis=0)

    few, many = (
        scale.total(source, WorkPartition(1, k * BLOCK_ROWS), of_chunk).numpy() for k in (1, 5)
    )
    assert not np.array_equal(few, many), "else the test above says nothing"


def test_results_equal_numpy(source: RowSource) -> None:
    rows = np.load(source.path).astype("f8")
    mean, basis, _, counts = scale.analyse(source, WorkPartition(1, 2 * BLOCK_ROWS)).results
    np.testing.assert_allclose(mean, rows.mean(axis=0), atol=1e-5)
    _, _, v = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    across = np.abs(v[: scale.COMPONENTS] @ basis)
    np.testing.assert_allclose(np.linalg.det(across @ across.T), 1, atol=1e-3)
    assert counts.sum() == len(rows) and (counts > 0).all()


def test_different_data_have_a_different_digest(source: RowSource, tmp_path: Path) -> None:
    rows = np.load(source.path)
    rows[0, 0] += 1
    np.save(tmp_path / "other.npy", rows)
    other = RowSource(str(tmp_path / "other.npy"), source.rows, "cpu")
    cut = WorkPartition(1, 3 * BLOCK_ROWS)
    assert scale.analyse(other, cut).digest != scale.analyse(source, cut).digest


@pytest.mark.exhaustive
def test_distributed_workers_have_the_same_bits(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("distributed")
    assert scale.main(["--memory", "8"]) == 0
    assert "All runs have the same bits." in capsys.readouterr().out


def test_missing_packages_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert scale.main([]) == 2
    assert 'pip install "dovetail-tensor[scale]"' in capsys.readouterr().err

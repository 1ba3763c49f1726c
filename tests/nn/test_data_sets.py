"""Data sets, samplers and batches of items."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, defaultdict, namedtuple
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest

data = dt.data
Pair = namedtuple("Pair", "x y")
Point = namedtuple("Point", "x z")


def test_tensor_dataset_pairs_rows(device: dt.Device) -> None:
    rows = data.TensorDataset(dt.arange(6).reshape(3, 2), dt.arange(3))
    assert len(rows) == 3 and [x.tolist() for x in rows[1]] == [[2, 3], 1]
    with pytest.raises(dt.ShapeError, match="same number of rows"):
        data.TensorDataset(dt.zeros(2), dt.zeros(3))
    with pytest.raises(dt.ArgumentError, match="at least one tensor"):
        data.TensorDataset()


def test_data_sets_of_other_objects_raise() -> None:
    makers: dict[str, Callable[[], object]] = {
        "TensorDataset: expected tensors, got ndarray": lambda: data.TensorDataset(np.zeros(3)),  # type: ignore[arg-type]
        "TensorDataset: expected tensors, got list": lambda: data.TensorDataset(dt.ones(1), [1]),  # type: ignore[arg-type]
        "StackDataset: a data set must be a Sized, got 1": lambda: data.StackDataset(a=1),  # type: ignore[arg-type]
        "ConcatDataset: a data set must be a Sized, got 1": lambda: data.ConcatDataset([1]),
        "ChainDataset: expected IterableDatasets, got int": lambda: data.ChainDataset([1]),
    }
    for text, make in makers.items():
        with pytest.raises(dt.ArgumentTypeError, match=text):
            make()


def test_concat_subset_and_stack_datasets() -> None:
    both = data.ConcatDataset([range(3), range(10, 12)])
    assert [both[i] for i in range(5)] == [0, 1, 2, 10, 11] and both[-1] == 11
    with pytest.raises(dt.OutOfRangeError, match="index 5 is out of range for 5"):
        both[5]
    assert data.Subset(both, [4, 0])[0] == 11
    assert data.StackDataset(range(3), "abc")[1] == (1, "b")
    assert data.StackDataset(n=range(3))[1] == {"n": 1}
    for wrong in (lambda: data.StackDataset(), lambda: data.StackDataset([1], [1, 2]),
                  lambda: data.ConcatDataset([])):  # fmt: skip
        with pytest.raises(dt.ArgumentError):
            wrong()


@pytest.mark.parametrize("index", [2, -3, [0, 2], (0, 2)])
def test_subset_names_an_index_that_is_out_of_range(index: object) -> None:
    with pytest.raises(dt.OutOfRangeError, match=r"Subset: index (2|-3) is out of range for 2"):
        dt.data.Subset("abcd", [3, 0])[index]  # type: ignore[index]


def test_base_class_names_the_missing_method() -> None:
    with pytest.raises(NotImplementedError, match="__getitem__"):
        data.Dataset()[0]
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(data.IterableDataset())


@pytest.mark.parametrize(
    ("lengths", "sizes"),
    [([7, 3], [7, 3]), ([0.5, 0.25, 0.25], [6, 2, 2]), ([0, 10], [0, 10]), ([1.0], [10])],
)
def test_random_split_is_reproducible(lengths: Any, sizes: list[int], device: dt.Device) -> None:
    parts = data.random_split(range(10), lengths, dt.random.default_rng(0))
    again = data.random_split(range(10), lengths, dt.random.default_rng(0))
    assert [len(p) for p in parts] == sizes
    assert sorted(i for p in parts for i in p.indices) == [*range(10)]
    assert [p.indices for p in parts] == [p.indices for p in again]


def test_random_split_of_an_empty_data_set_returns_empty_subsets() -> None:
    assert data.random_split([], []) == []
    for lengths in ([0], [0, 0], [0.5, 0.5]):
        parts = data.random_split([], lengths)
        assert [len(p) for p in parts] == [0] * len(lengths)


@pytest.mark.parametrize(
    "lengths",
    [[], [7, 4], [0.5, 0.6], [-1, 11], [3.5, 6.5], [2.5, 8], [math.nan, 1], [math.inf, 1]],
)
def test_random_split_with_wrong_lengths_raises(lengths: Any) -> None:
    with pytest.raises(dt.ArgumentError, match="with the sum 10"):
        data.random_split(range(10), lengths)


def test_random_sampler_follows_its_generator(device: dt.Device) -> None:
    draw = dt.random.default_rng
    assert sorted(data.RandomSampler(range(7))) == [*range(7)]
    assert [*data.RandomSampler(range(7), generator=draw(1))] == [
        *data.RandomSampler(range(7), generator=draw(1))
    ]
    found = [*data.RandomSampler(range(3), num_samples=7)]
    assert len(found) == 7 and Counter(found).most_common()[-1][1] == 2
    assert len([*data.RandomSampler(range(3), replacement=True, num_samples=8)]) == 8
    assert sorted(data.SubsetRandomSampler([9, 4, 7])) == [4, 7, 9]


def test_random_sampler_of_an_empty_data_set_draws_nothing() -> None:
    assert [*data.RandomSampler([])] == [*data.RandomSampler([], replacement=True)] == []
    for replacement in (False, True):
        with pytest.raises(dt.ArgumentError, match="cannot draw 3 samples from an empty data set"):
            next(iter(data.RandomSampler([], replacement, num_samples=3)))


def test_weighted_sampler_follows_its_weights(device: dt.Device) -> None:
    weights = [0.0, 1.0, 3.0, 0.0]
    found = Counter(data.WeightedRandomSampler(weights, 4000, generator=dt.random.default_rng(0)))
    assert set(found) == {1, 2} and 0.7 < found[2] / 4000 < 0.8
    once = [*data.WeightedRandomSampler(weights, 2, replacement=False)]
    assert sorted(once) == [1, 2]
    firsts = Counter(
        next(iter(data.WeightedRandomSampler([1, 3], 1, False, dt.random.default_rng(seed))))
        for seed in range(300)
    )
    assert 0.65 < firsts[1] / 300 < 0.85


@pytest.mark.parametrize(
    "make",
    [
        lambda: data.RandomSampler([1], num_samples=0),
        lambda: data.RandomSampler([1], replacement=1),  # type: ignore[arg-type]
        lambda: data.WeightedRandomSampler([1.0, -1.0], 1),
        lambda: data.WeightedRandomSampler([[1.0]], 1),  # type: ignore[list-item]
        lambda: data.WeightedRandomSampler([1.0, float("nan")], 1),
        lambda: data.WeightedRandomSampler([1.0, 0.0], 2, replacement=False),
        lambda: data.BatchSampler([1], 0, False),
        lambda: data.BatchSampler([1], True, False),
    ],
)
def test_samplers_with_invalid_arguments_raise(make: Any) -> None:
    with pytest.raises(dt.ArgumentError, match=r"data\."):
        make()


@pytest.mark.parametrize("value", [1.5, "a", True])
def test_samplers_raise_for_a_number_of_another_type(value: Any) -> None:
    makers: list[Callable[[], object]] = [
        lambda: data.RandomSampler([1], num_samples=value),
        lambda: data.WeightedRandomSampler([1.0], value),
        lambda: data.BatchSampler([1], value, False),
    ]
    for make in makers:
        with pytest.raises(dt.ArgumentTypeError, match=r"^data\..* must be an int, got"):
            make()


def test_batch_sampler_groups_indices() -> None:
    assert [*data.BatchSampler([4, 5], np.int64(1), True)] == [[4], [5]]  # type: ignore[arg-type]
    assert [*data.BatchSampler(range(5), 2, True)] == [[0, 1], [2, 3]]
    assert len(data.BatchSampler(range(5), 2, True)) == 2
    assert len(data.BatchSampler(range(5), 2, False)) == 3


def test_default_collate_stacks_items(device: dt.Device) -> None:
    collate = data.default_collate
    assert collate([1, 2]).dtype is dt.int64
    assert collate([1.0, 2.0]).dtype is dt.float64
    assert collate([True, False]).dtype is dt.bool
    assert collate([np.float32(1), np.float32(2)]).dtype is dt.float32
    stacked = collate([np.ones(2, np.int16)] * 3)
    assert stacked.shape == (3, 2) and stacked.dtype is dt.int16
    rows = collate([dt.ones(2), dt.zeros(2)])
    assert rows.tolist() == [[1, 1], [0, 0]] and rows.device is device
    halves = collate([dt.ones(2, dtype=dt.bfloat16)] * 2)
    assert halves.shape == (2, 2) and halves.dtype is dt.bfloat16
    mixed = collate([dt.asarray(1, dtype=dt.int32), dt.asarray(2.75, dtype=dt.float32)])
    assert mixed.tolist() == [1.0, 2.75] and mixed.dtype is dt.float32
    assert collate(["a", "b"]) == ["a", "b"]
    assert collate([np.str_("a"), "b"]) == ["a", "b"]
    assert collate([b"a"]) == [b"a"]
    found = collate([{"x": (1, "a")}, {"x": (2, "b")}])
    assert found["x"][0].tolist() == [1, 2] and found["x"][1] == ["a", "b"]
    pair = collate([Pair(1, [2.0]), Pair(3, [4.0])])
    assert isinstance(pair, Pair) and pair.x.tolist() == [1, 3] and pair.y[0].tolist() == [2, 4]


def test_default_collate_of_mismatched_items_raises(device: dt.Device) -> None:
    collate = data.default_collate
    with pytest.raises(dt.ShapeError, match=r"same shape, got \(2,\), \(3,\)"):
        collate([np.ones(2), np.ones(3)])
    with pytest.raises(dt.ShapeError, match=r"lengths \[1, 2\]"):
        collate([[1], [1, 2]])
    with pytest.raises(dt.ArgumentTypeError, match="collate_fn="):
        collate([object()])
    with pytest.raises(dt.ArgumentTypeError, match="NoneType"):
        collate([None, None])


@pytest.mark.parametrize(
    ("first", "other", "text"),
    [
        (np.ones(2), 1.0, "one kind, got ndarray and float"),
        (np.ones(2), [1.0, 2.0], "one kind, got ndarray and list"),
        (1, "a", "one kind, got int and str"),
        (1, np.str_("a"), "one kind, got int and str_"),
        ((1, 2), {"a": 1}, "one kind, got tuple and dict"),
        ({"a": (1, "b")}, {"a": (1, 2)}, "one kind, got str and int"),
        (1.0, None, "expected tensors, .*, got NoneType"),
        (1.0, np.timedelta64(1), "expected tensors, .*, got timedelta64"),
        (Pair(1, 2), Point(1, 2), r"the same fields, got Pair\(x, y\) and Point\(x, z\)"),
        (Pair(1, 2), (1, 2), r"the same fields, got Pair\(x, y\) and tuple"),
    ],
)
def test_default_collate_of_items_of_different_kinds_raises(
    first: Any, other: Any, text: str
) -> None:
    with pytest.raises(dt.ArgumentTypeError, match=text):
        data.default_collate([first, other])
    with pytest.raises(dt.ArgumentTypeError):
        data.default_collate([other, first])
    with pytest.raises(dt.ArgumentTypeError, match=text):
        next(iter(data.DataLoader([first, first, other], batch_size=3)))


@pytest.mark.parametrize("other", [1.0, (1, 2), np.ones(2), "a"])
def test_default_collate_of_a_tensor_and_another_object_raises(
    other: Any, device: dt.Device
) -> None:
    name = type(other).__name__
    for dtype in (dt.float32, dt.bfloat16):
        x = dt.ones(2, dtype=dtype)
        with pytest.raises(dt.ArgumentTypeError, match=f"one kind, got Tensor and {name}"):
            data.default_collate([x, other])
        with pytest.raises(dt.ArgumentTypeError, match=f"one kind, got {name} and Tensor"):
            data.default_collate([other, x])


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ([{"a": 1}, {"b": 1}], "'a' in item 0, but not in item 1"),
        ([{"a": 1}, {"a": 1}, {"a": 1, 2: 1}], "2 in item 2, but not in item 0"),
        ([{"a": 1, "b": 2}, {"b": 1}], "'a' in item 0, but not in item 1"),
        ([[{"a": 1}], [defaultdict(int)]], "'a' in item 0, but not in item 1"),
    ],
)
def test_default_collate_of_mappings_with_different_keys_raises(items: Any, text: str) -> None:
    with pytest.raises(dt.ArgumentError, match=f"the same keys, got {text}"):
        data.default_collate(items)


def test_default_collate_of_arrays_without_numbers_raises() -> None:
    for other in (np.array(["a"]), np.zeros(1, "M8[s]"), np.zeros(1, [("a", int)])):
        with pytest.raises(dt.DTypeError, match="arrays must hold bools or numbers"):
            data.default_collate([np.zeros(1), other])


def test_default_collate_accepts_types_of_equal_structure() -> None:
    collate = data.default_collate
    assert [x.tolist() for x in collate([(1, 2.5), [True, 3]])] == [[1, 1], [2.5, 3.0]]
    assert collate([{"a": 1}, OrderedDict(a=2)])["a"].tolist() == [1, 2]
    assert collate([{1: 1, "a": 2}, {"a": 4, 1: 3}])[1].tolist() == [1, 3]
    again = namedtuple("Pair", "x y")  # as after a reload of its module
    assert collate([Pair(1, 2), again(3, 4)]).x.tolist() == [1, 3]


def test_default_collate_equals_pytorch() -> None:
    torch = pytest.importorskip("torch")
    items = [(np.float32(i), i, float(i), [i, i + 1], {"a": np.ones((2, 2)) * i}) for i in range(3)]
    mine, theirs = data.default_collate(items), torch.utils.data.default_collate(items)

    def same(a: Any, b: Any) -> None:
        if isinstance(a, dt.Tensor):
            assert a.dtype.name == str(b.dtype).removeprefix("torch.") and a.tolist() == b.tolist()
        elif isinstance(a, dict):
            assert a.keys() == b.keys()
            for k in a:
                same(a[k], b[k])
        else:
            assert len(a) == len(b) and type(a) is type(b)
            for x, y in zip(a, b, strict=True):
                same(x, y)

    same(mine, theirs)


class Numbered:
    """Items by index, as data sets of PyTorch have them: foreign tensors in containers."""

    def __init__(self, library: Any) -> None:
        self.library = library

    def __len__(self) -> int:
        return 3

    def __getitem__(self, i: int) -> dict[str, Any]:
        if i >= 3:
            raise IndexError(i)
        return {"x": self.library(np.full(2, i, "f4")), "i": i}


class Exported:
    """An array of another library, which has only DLPack."""

    def __init__(self, a: np.ndarray) -> None:
        self.a = a

    def __dlpack__(self, **options: Any) -> object:
        return self.a.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.a.__dlpack_device__()


def test_loader_collates_foreign_tensors(device: dt.Device) -> None:
    for batch in dt.data.DataLoader(Numbered(Exported), batch_size=3):
        assert type(batch["x"]) is dt.Tensor and batch["x"].device is dt.default_device()
        assert batch["x"].tolist() == [[0, 0], [1, 1], [2, 2]] and batch["i"].tolist() == [0, 1, 2]


def test_loader_takes_data_sets_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is one of the peers")
    x = torch.arange(6.0).reshape(3, 2).requires_grad_()
    rows = torch.utils.data.TensorDataset(x, torch.tensor([1, 2, 3]))
    ours = [(a.tolist(), b.tolist()) for a, b in dt.data.DataLoader(rows, batch_size=2)]
    theirs = [(a.tolist(), b.tolist()) for a, b in torch.utils.data.DataLoader(rows, batch_size=2)]
    assert ours == theirs
    bf = dt.data.default_collate([torch.ones(2, dtype=torch.bfloat16)] * 2)
    assert bf.dtype is dt.bfloat16 and bf.shape == (2, 2)

    class Stream(torch.utils.data.IterableDataset):  # type: ignore[misc]  # of no known type
        def __iter__(self) -> Any:
            return iter(torch.arange(3))

    loader = dt.data.DataLoader(Stream(), batch_size=2)
    assert [x.tolist() for x in loader] == [x.tolist() for x in loader] == [[0, 1], [2]]


def test_loader_refuses_an_iterator_which_has_one_epoch() -> None:
    with pytest.raises((TypeError, dt.ArgumentError)):
        list(dt.data.DataLoader(iter([1, 2]), batch_size=2))

# mypy: disable-error-code=override
# Written by tools/faces.py for type checkers:
# the methods of `torch.Tensor`.
# fmt: off
# isort: off

from dovetail.tensor.subclass import TensorSubclass as Tensor
from typing import Any, Self

class TensorMethods(Tensor):
    def max(self, *args: Any, **options: Any) -> Any:
        """Return the largest element; with `dim` the pair (values, indices) along it."""
    def min(self, *args: Any, **options: Any) -> Any:
        """Return the smallest element; with `dim` the pair (values, indices) along it."""
    def aminmax(
        self, *, dim: int | None = None, keepdim: bool = False, axis: int | None = None
    ) -> Any:
        """Return the pair (min, max) of all elements, or along an axis; `axis` is `dim`."""
    def sort(self, dim: int = -1, descending: bool = False, **options: Any) -> Any:
        """Return the pair (values, indices), ordered along an axis; equal elements keep their
        order."""
    def argsort(
        self,
        dim: int = -1,
        descending: bool = False,
        stable: bool = True,
        *,
        axis: int | None = None,
    ) -> Any:
        """Return the indices that order the elements along an axis; equal ones keep their
        order."""
    def msort(self) -> Any:
        """Return the elements, ordered along the first axis."""
    def median(self, *args: Any, **options: Any) -> Any:
        """Return the lower median; with `dim` the pair (values, indices). A NaN makes it NaN."""
    def nanmedian(self, *args: Any, **options: Any) -> Any:
        """Return the lower median without NaNs; with `dim` the pair (values, indices)."""
    def std(self, *args: Any, **options: Any) -> Any:
        """Return the standard deviation, of all elements or along axes; it divides by n - 1."""
    def var(self, *args: Any, **options: Any) -> Any:
        """Return the variance, of all elements or along axes; it divides by n - 1."""
    def equal(self, other: Any) -> bool:
        """Return True if both tensors have one shape and equal elements."""
    def nonzero(self, *, as_tuple: bool = False) -> Any:
        """Return the indices of nonzero elements: rows of a matrix, or a tuple of one vector an
        axis."""
    def repeat(self, *sizes: Any, **options: Any) -> Any:
        """Return the tensor, repeated as a whole along each axis."""
    def flip(self, *args: int, dims: Any = (), axis: Any = None) -> Any:
        """Return the elements in reverse order along axes."""
    def clamp_min(self, min: Any) -> Any:
        """Return the elements, raised to a lower bound."""
    def clamp_max(self, max: Any) -> Any:
        """Return the elements, lowered to an upper bound."""
    def frac(self) -> Any:
        """Return the part of each element behind the point, with its sign."""
    def dist(self, other: Any, p: float = 2) -> Any:
        """Return the p-norm of the difference of two tensors."""
    def addr(self, vec1: Any, vec2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
        """Return `beta * input + alpha * outer(vec1, vec2)`."""
    def addbmm(self, batch1: Any, batch2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
        """Return `beta * input + alpha * (batch1 @ batch2).sum(0)`."""
    def bernoulli(self, p: float | None = None, *, generator: Any = None) -> Any:
        """Return zeros and ones in the dtype of `input`, whose elements are the probabilities of
        1."""
    def is_nonzero(self) -> bool:
        """Return True if the only element is not 0."""
    def get_device(self) -> int:
        """Return the number of the tensor's CUDA device; -1 for another device."""
    def fill_diagonal_(self, fill_value: float, wrap: bool = False) -> Self:
        """Write a number to the diagonal, and return the tensor."""
    def sum_to_size(self, *size: Any) -> Any:
        """Return the sums over the axes in which a shape has size 1 or none."""
    def unique(
        self,
        sorted: bool = True,
        return_inverse: bool = False,
        return_counts: bool = False,
        dim: int | None = None,
        *,
        axis: int | None = None,
    ) -> Any:
        """Return the distinct elements in ascending order, or the distinct slices along an
        axis."""
    def div(self, other: Any, *, rounding_mode: str | None = None, **options: Any) -> Any:
        """Return the quotients, rounded if asked."""
    def floor_divide(self, other: Any, *, out: Any = None) -> Any:
        """Return the quotients rounded down; `inf // 1` is NaN, as in PyTorch."""
    def take(self, index: Any, *, axis: int | None = None) -> Any:
        """Return the elements at positions in the flattened tensor."""
    def squeeze(self, *dims: Any, dim: Any = None, axis: Any = None) -> Any:
        """Return a view without axes of size 1; axes of other sizes stay."""
    def index_put(self, indices: Any, values: Any, accumulate: bool = False) -> Any:
        """Return a copy with `values` at indices."""

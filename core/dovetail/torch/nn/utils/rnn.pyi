# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.nn.utils.rnn`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
from collections.abc import Sequence
from dovetail.nn.utils.rnn import Lengths, PackedSequence
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any

from dovetail.nn.utils.rnn import PackedSequence as PackedSequence
def pack_padded_sequence(
    input: AnyTensor, lengths: Lengths, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences, without the padding."""
def pack_sequence(sequences: Sequence[AnyTensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences; see `pack_padded_sequence`."""
def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return padded sequences, in the order in which they were packed, and their lengths."""
def pad_sequence(
    sequences: Sequence[AnyTensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stack sequences, padded to the greatest length."""
def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return a list of the packed sequences, in the order in which they were packed."""
def unpad_sequence(
    padded_sequences: AnyTensor, lengths: Lengths, batch_first: bool = False
) -> list[Tensor]:
    """Return a list of the sequences without their padding."""
def __getattr__(name: str) -> Any: ...

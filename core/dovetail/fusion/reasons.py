"""Reasons of materialisations and launches, which `explain` shows."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class ReasonKind(Enum):
    """The kinds of reasons with their words; `{}` stands for the words that a reason adds."""

    REQUESTED = "asked for"
    REFERENCED = "its tensor is still held"
    OWN_KERNEL = "it is a kernel of its own"
    READ_BY_KERNEL = "a kernel of its own reads it"
    READ_IN_MEMORY = "it is read at computed places or by a kernel of its own"
    RESHAPED = "it is reshaped in a way that its strides do not permit"
    NOT_COALESCIBLE = "it is reduced over axes that no single stride walks"
    DIFFERENT_ROWS = "a reduction over other rows cannot be part of its reader's kernel"
    READER_USES_CHUNKS = "it reduces rows that its reader walks in chunks"
    CHECKED = "its indices are checked before a reduction reads it"
    TOO_LARGE = "the kernel would grow too large"
    TOO_MANY_BUFFERS = "the kernel would have too many buffers"
    COSTLY_TWICE = "it is costly, and two kernels need it"
    COSTLY_IN_LOOPS = "it is costly, and two loops of a kernel would compute it"
    COSTLY_PART = "it is costly, and only a part of what is joined"
    GATHERED_PART = "it is read at computed places, and only a part of what is joined"
    COSTLY_REPEATED = "it is costly and repeated by broadcasting"
    # of launches that no node asked for
    CHUNKS = "few, long rows: each chunk of rows is reduced by itself"
    CHUNKS_OF_CHUNKS = "chunks of chunks are reduced by themselves"
    STARTS_FROM_COPY = "{} starts from a copy"
    CUSTOM = "{}"  # the op's own words about one of its launches


class Reason(NamedTuple):
    """A reason, with the words that it adds: the name of an op, or an op's own words."""

    kind: ReasonKind
    detail: str = ""

    def __str__(self) -> str:
        return self.kind.value.format(self.detail)

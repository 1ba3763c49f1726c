"""NUMA policies: the node from which the system takes the pages of new memory, by mbind(2)."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import sys
from functools import cache
from pathlib import Path

from dovetail.extend import ArgumentError, DeviceError, word_setting

NUMA_VARIABLE = "DOVETAIL_CPU_NUMA"
NODES_FILE = Path("/sys/devices/system/node/has_memory")
MBIND_NUMBERS = {"x86_64": 237, "aarch64": 235, "riscv64": 235, "ppc64le": 259, "s390x": 268}
# Modes of /usr/include/linux/mempolicy.h
MPOL_BIND, MPOL_INTERLEAVE, MPOL_LOCAL = 2, 3, 4
_WORD_BITS = 8 * ctypes.sizeof(ctypes.c_ulong)

Policy = int | str  # a node, or one of WORDS
WORDS = ("default", "local", "interleave")


@cache
def read_nodes() -> tuple[int, ...]:
    """Return the numbers of the nodes that have memory; none if the system does not list them."""
    try:
        text = NODES_FILE.read_text().strip()
    except OSError:
        return ()
    nodes: list[int] = []
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        nodes += range(int(low), int(high or low) + 1)
    return tuple(nodes)


def check_policy(policy: Policy) -> None:
    """Raise unless the system accepts the policy, which is tried on one page.

    Raises: ArgumentError for a node that does not exist, DeviceError without NUMA policies.
    """
    if policy == "default":
        return
    nodes = read_nodes()
    if sys.platform != "linux" or platform.machine() not in MBIND_NUMBERS or not nodes:
        raise DeviceError(
            f"set_numa_policy: {platform.system()} on {platform.machine()} has no NUMA policies "
            'here; the policy must be "default"'
        )
    if isinstance(policy, int) and policy not in nodes:
        raise ArgumentError(
            f"set_numa_policy: the nodes with memory are {', '.join(map(str, nodes))}, got {policy}"
        )
    with mmap.mmap(-1, mmap.PAGESIZE) as page:
        start = ctypes.c_char.from_buffer(page)
        try:
            bind_pages(ctypes.addressof(start), mmap.PAGESIZE, policy)
        except OSError as error:
            raise DeviceError(
                f"set_numa_policy: the system refuses NUMA policies (mbind: {error.strerror}); a "
                "container needs the capability SYS_NICE"
            ) from None
        finally:
            del start  # a mapping with an exported buffer does not close


def bind_pages(address: int, nbytes: int, policy: Policy) -> None:
    """Set the policy of pages that have not been touched. Raises: OSError if the system refuses."""
    nodes = (policy,) if isinstance(policy, int) else read_nodes() * (policy == "interleave")
    words = max(nodes, default=0) // _WORD_BITS + 1
    mask = (ctypes.c_ulong * words)()
    for node in nodes:
        mask[node // _WORD_BITS] |= 1 << node % _WORD_BITS
    mode = MPOL_BIND if isinstance(policy, int) else MPOL_INTERLEAVE if nodes else MPOL_LOCAL
    bits = words * _WORD_BITS + 1 if nodes else 0  # the kernel reads one bit less
    arguments = (address, nbytes, mode, mask if nodes else None, bits, 0)
    call = ctypes.CDLL(None, use_errno=True).syscall
    number = ctypes.c_long(MBIND_NUMBERS[platform.machine()])
    if call(number, *[_as_word(x) for x in arguments]) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _as_word(x: object) -> object:
    """Return an argument of a system call: ints as machine words."""
    return ctypes.c_ulong(x) if isinstance(x, int) else x


def describe() -> str:
    """Return the number of nodes as text, or the reason why policies are not available."""
    try:
        check_policy("local")
    except DeviceError as error:
        return str(error).removeprefix("set_numa_policy: ")
    nodes = read_nodes()
    return f"{len(nodes)} node{'s' * (len(nodes) != 1)} with memory, policies work"


def read_policy() -> Policy:
    """Return the policy of the variable DOVETAIL_CPU_NUMA, or "default" if it is not available."""
    word = word_setting(NUMA_VARIABLE, "default", (*WORDS, *map(str, read_nodes())))
    policy = int(word) if word.isdecimal() else word
    try:
        check_policy(policy)
    except DeviceError:  # `dovetail doctor` says so
        return "default"
    return policy

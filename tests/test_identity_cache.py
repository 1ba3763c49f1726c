"""The identity-keyed cache."""

from __future__ import annotations

import gc
import weakref

from dovetail.identity_cache import ENTRIES_MAX, IdentityCache


class Thing:
    pass


def test_value_is_found_only_under_the_same_objects() -> None:
    memo, a, b = IdentityCache(), Thing(), (1, 2)
    memo.put(a, b, None, "found")
    assert memo.get(a, b) == "found" and memo.get(a, b, None) == "found"
    assert memo.get(b, a) is None and memo.get(a, (len(b) - 1, 2)) is None
    assert memo.get(a, b, a) is None
    memo.put(a, b, a, "three")
    memo.put(a, b, None, "anew")
    assert memo.get(a, b) == "anew"


def test_keys_and_values_live_while_cached() -> None:
    memo, a = IdentityCache(), Thing()
    value = Thing()
    memo.put(a, a, None, value)
    refs = weakref.ref(a), weakref.ref(value)
    del a, value
    gc.collect()
    assert all(r() is not None for r in refs)
    memo.age()
    gc.collect()
    assert all(r() is None for r in refs)


def test_cache_drops_evicted_entries_and_all_at_its_end() -> None:
    memo = IdentityCache()
    things = [Thing() for _ in range(4 * ENTRIES_MAX)]
    for t in things:
        memo.put(t, None, None, t)
    refs = [weakref.ref(t) for t in things]
    del things, t
    gc.collect()
    assert 0 < sum(r() is not None for r in refs) <= ENTRIES_MAX
    del memo
    gc.collect()
    assert not any(r() is not None for r in refs)

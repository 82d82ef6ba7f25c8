"""The keys that a transaction has locked, in portions."""

from __future__ import annotations

from random import Random

import pytest

from tailrace.kvlayer import locked_keys
from tailrace.kvlayer.locked_keys import LockedKeys
from tailrace.kvlayer.span import Span


@pytest.mark.parametrize("seed", range(20))
def test_locked_keys_are_an_ordered_dictionary(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locked_keys, "PORTION_KEYS", 5)
    random, keys, known = Random(seed), LockedKeys(), dict[bytes, int]()
    names = [b"%02d" % number for number in range(40)]
    for sequence in range(200):
        fresh = [
            name for name in random.sample(names, random.choice((1, 3, 9))) if name not in known
        ]
        keys.add(fresh, sequence)
        known |= dict.fromkeys(fresh, sequence)
        if known and random.random() < 0.3:
            gone = random.choice(list(known))
            keys.remove(gone)
            del known[gone]
        if random.random() < 0.2:
            after = random.randrange(sequence + 1)
            last = [name for name, at in reversed(known.items()) if at > after][:4]
            assert keys.take_last(4, after=after) == last
            known = {name: at for name, at in known.items() if name not in last}
        if random.random() < 0.1:
            first = keys.take_first()
            assert first == list(known)[: len(first)]
            known = {name: at for name, at in known.items() if name not in first}
        span = Span(*sorted(random.sample(names, 2)))
        inside = [name for name in known if span.contains(name)]
        found = keys.first_in(span)
        assert found in inside if inside else found is None
        assert (list(keys), len(keys), bool(keys)) == (list(known), len(known), bool(known))

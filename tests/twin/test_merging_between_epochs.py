"""What was merged after an epoch is taken by the next, whether bins move in between or not."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from sterna.engine.removal import Removal
from sterna.state import runs
from twin.harness import churning
from twin.small import counts, rows, totals


class Always:
    """Merges at once."""

    def __init__(self):
        self.names = []

    def submit(self, name, work):
        self.names.append(name)
        work()

    def settle(self, name):
        pass

    def turn(self, hurry=False):
        return nullcontext(True)


@pytest.mark.parametrize("moving", [False, True])
def test_offers_are_taken(start, moving):
    twin = start(counts(), seed=None)
    twin._later = Always()
    with churning():
        taken = 0
        for epoch in range(12):
            if moving and epoch:
                twin.migrate({bin_: (bin_ + epoch) % 3 for bin_ in range(0, 16, 5)})
            twin.epoch(rows(*range(epoch % 3, 40)))
            names = {ref.name for ref in twin.coordinator.last.refs()}
            taken += any("-c" in name.rpartition("/")[2] for name in names)
            assert totals(twin) == {
                key: sum(key >= past % 3 for past in range(epoch + 1)) for key in totals(twin)
            }
    assert taken >= 6
    assert sum("-c" in name for name in twin._later.names) >= 12


def test_files_that_are_deleted_do_not_stay_open(start, monkeypatch):
    monkeypatch.setattr(runs, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(Removal, "remove", lambda self, paths: self._store.delete(paths))  # at once
    twin = start(counts(), seed=None, retain=2)
    twin._later = Always()
    opened = set()
    with churning():
        for epoch in range(40):
            twin.epoch(rows(*range(epoch % 3, 40)))
            opened |= set(twin.cache._open)
    deleted = {name for name in opened if not twin.store.exists(name)}
    assert len(deleted) > 60
    assert len(deleted & set(twin.cache._open)) < 20


def test_a_damaged_offer_is_not_taken(start):
    twin = start(counts(), seed=None)
    twin._later = Always()
    with churning():
        for _ in range(4):
            twin.epoch(rows(*range(40)))
        name = next(name for name in reversed(twin._later.names) if twin.store.exists(f"{name}.json"))
        twin.store.write(f"{name}.json", b"{}")  # damaged: the epoch goes on with what it was given
        twin.epoch(rows(*range(40)))
    assert set(totals(twin).values()) == {5}


def test_what_arrives_lies_as_deep_as_anything_that_is_there(start):
    twin = start(counts(), seed=None, share_host_state=False)
    with churning():
        for _ in range(12):
            twin.epoch(rows(*range(200)))
    last = twin.coordinator.last
    (operator,) = last.configurations
    owners = last.configurations[operator].owners
    mine = next(int(bin_) for bin_ in range(len(owners)) if owners[bin_] == 0)
    deepest = max(ref.level for ref in last.state[operator][1]["state"])
    assert deepest > 0, "nothing was merged"
    twin.migrate({mine: 1})
    twin.epoch(rows())
    width = 2**64 // len(owners)
    here = twin.coordinator.last.state[operator][1]["state"]
    arrived = [ref for ref in here if mine * width <= ref.lo < (mine + 1) * width]
    assert {ref.level for ref in arrived} == {deepest}
    assert set(totals(twin).values()) == {12}

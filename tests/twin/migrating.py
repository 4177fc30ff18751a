"""What tests of migrations share."""

from __future__ import annotations

from sterna.control import DIRECTORY, Entry, new_name
from sterna.targets import rescale
from twin.small import rows

ROWS = rows(*range(40))


def moving(twin, strategy, target=None, **options):
    """A migration, after one epoch of it."""
    handle = twin.handle(twin.migrate(rescale(1) if target is None else target, strategy, **options))
    twin.epoch(ROWS)
    return handle


def owners(twin, operator="counts"):
    return twin.coordinator.last.configurations[operator].owners.tolist()


def put(twin, **changes):
    entry = {**Entry(new_name(), rescale(3)).to_json(), **changes}
    name = changes.get("name", entry["name"])
    twin.store.write_document(f"{DIRECTORY}/{name}.json", entry)
    twin.epoch(ROWS)
    return twin.handle(name)

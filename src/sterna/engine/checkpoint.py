"""Whether a checkpoint belongs to this dataflow and this version of its format.

A new one is made to belong to it, by the start that has the incarnation: of two at once, the other must not
leave its identity there.
"""

from __future__ import annotations

import uuid

from sterna.dataflow import Dataflow
from sterna.engine.fencing import Incarnation
from sterna.errors import CheckpointError
from sterna.state.store import Store

FORMAT = 2
DOCUMENT = "sterna.json"


def identify(store: Store, flow: Dataflow, incarnation: Incarnation) -> str:
    """The query's identity, which a new checkpoint gets here; ``CheckpointError`` if it is another's."""
    found = check_format(store, flow)
    if found is not None:
        return found
    query = uuid.uuid4().hex
    mine = {
        "format": FORMAT,
        "fingerprint": flow.fingerprint(),
        "dataflow": flow.description(),
        "query": query,
    }
    incarnation.check()
    store.write_document(DOCUMENT, mine, durable=True)
    return query


def check_format(store: Store, flow: Dataflow) -> str | None:
    """The query's identity, ``None`` if the checkpoint is new; ``CheckpointError`` if it is another's."""
    try:
        found = store.read_document(DOCUMENT)
    except FileNotFoundError:
        if store.list("epochs"):
            raise CheckpointError(
                f"{store.name('')} has epochs but no {DOCUMENT}; it is not a whole checkpoint"
            ) from None
        return None
    if found.get("format") != FORMAT:
        raise CheckpointError(
            f"{store.name('')} was written in format {found.get('format')}, and this version of Sterna reads "
            f"format {FORMAT}; use the version that wrote it, or start with a new checkpoint"
        )
    if found.get("fingerprint") != flow.fingerprint():
        raise CheckpointError(
            f"{store.name('')} belongs to another dataflow. It has {_short(found['dataflow'])}; this one has "
            f"{_short(flow.description())}. Use a checkpoint of its own for each dataflow"
        )
    return str(found["query"])


def _short(description: object) -> str:
    assert isinstance(description, list)
    parts = []
    for operator in description:
        keys = ", ".join(operator["inputs"][0]["keys"])
        tables = "; ".join(f"{t['name']}({', '.join(t['values'])})" for t in operator["tables"])
        parts.append(f"{operator['kind']} {operator['name']!r} keyed by ({keys}) with {tables}")
    return " and ".join(parts)

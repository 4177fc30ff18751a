"""Whether a checkpoint belongs to this dataflow and this version of its format.

A new one is made to belong to it.
"""

from __future__ import annotations

import uuid

from sterna.dataflow import Dataflow
from sterna.errors import CheckpointError
from sterna.state.store import Store

FORMAT = 2
DOCUMENT = "sterna.json"


def check_format(store: Store, flow: Dataflow) -> str:
    """The query's identity; ``CheckpointError`` if the checkpoint is another's."""
    mine = {
        "format": FORMAT,
        "fingerprint": flow.fingerprint(),
        "dataflow": flow.description(),
        "query": uuid.uuid4().hex,
    }
    try:
        found = store.read_document(DOCUMENT)
    except FileNotFoundError:
        if store.list("epochs"):
            raise CheckpointError(
                f"{store.name('')} has epochs but no {DOCUMENT}; it is not a whole checkpoint"
            ) from None
        store.write_document(DOCUMENT, mine, durable=True)
        return str(mine["query"])
    if found.get("format") != FORMAT:
        raise CheckpointError(
            f"{store.name('')} was written in format {found.get('format')}, and this version of Sterna reads "
            f"format {FORMAT}; use the version that wrote it, or start with a new checkpoint"
        )
    if found.get("fingerprint") != mine["fingerprint"]:
        raise CheckpointError(
            f"{store.name('')} belongs to another dataflow. It has {_short(found['dataflow'])}; this one has "
            f"{_short(mine['dataflow'])}. Use a checkpoint of its own for each dataflow"
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

"""Garbage collections between tasks look at what the last ones made, not at what a process has loaded."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc
from sterna.engine import process

class Node:
    pass

def cycle():
    node = Node()
    node.self = node
    return node

before = len(gc.get_objects())
process.settle()
print(len(gc.get_objects()) < before / 10)
kept = []
for _ in range(process.SETTLE_EVERY - 2):
    kept.append(Node())
    process.settle()
young = len(gc.get_objects())
held = cycle()
process.settle()
print(gc.get_freeze_count() > 0, len(gc.get_objects()) < young)

later = [Node() for _ in range(500)]
for _ in range(process.SETTLE_EVERY):
    process.settle()
print(sum(isinstance(one, Node) for one in gc.get_objects()))
kept += later

del held, later
gc.collect()
print(sum(isinstance(one, Node) for one in gc.get_objects()))
for _ in range(process.UNSETTLE_EVERY - 2 * process.SETTLE_EVERY):
    process.settle()
gc.unfreeze()
print(sum(isinstance(one, Node) for one in gc.get_objects()) - len(kept))
"""


def test_what_is_old_is_frozen_and_what_was_garbage_among_it_is_collected_in_the_end():
    told = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["True", "True", "True", "0", "0", "0"]

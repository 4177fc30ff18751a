"""The files of figures: which benchmark writes each, and with what command."""

from __future__ import annotations

MIGRATIONS = ("headline", "bins", "keys", "proportional", "load", "memory", "afterwards")
PEERS = ("router", "queries", "throughput", "rescale")
QUERIES = tuple(f"q{number}" for number in range(1, 9))

COMMANDS = {
    **{f"migrate-{name}": f"sterna bench migrate --experiment {name}" for name in MIGRATIONS},
    # These two share their states, and runs.
    "migrate-keys": "sterna bench migrate --experiment keys --experiment proportional",
    **{f"nexmark-{name}": f"sterna nexmark run {name}" for name in QUERIES},
    "quiet": "sterna bench quiet",
    "bins": "sterna bench bins",
    "throughput": "sterna bench throughput --quick-logs",
    "state": "sterna bench state",
    **{f"peers-{name}": f"sterna bench peers --part {name}" for name in PEERS},
}


def command(name: str) -> str:
    """The whole command that makes the file of a name.

    >>> command("bins")
    'sterna bench bins --json > docs/figures/bins.json'
    """
    return f"{COMMANDS[name]} --json > docs/figures/{name}.json"

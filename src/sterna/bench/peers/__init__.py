"""Sterna beside its peers: the same events, the same machine, the same run, taking turns."""

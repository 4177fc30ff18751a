"""Two applications on Sterna's surface: counting words, and maximal frequent patterns.

The patterns are those of a sliding window. ``words.words`` and ``patterns.maximal_patterns`` are functions
from a stream of texts to the stream of their answers; ``texts.texts`` makes texts to try them on.
"""

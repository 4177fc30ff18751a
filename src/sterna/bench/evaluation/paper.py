"""What the Megaphone paper says: the amounts in its tables and text. Nothing here is measured by us.

M. Hoffmann, A. Lattuada, F. McSherry, V. Kalavri, J. Liagouris, T. Roscoe: Megaphone: Latency-conscious state
migration for distributed streaming dataflows. PVLDB 12(9), 2019.
"""

from __future__ import annotations

from dataclasses import dataclass

REFERENCE = "[Hoffmann et al., PVLDB 12(9), 2019](https://doi.org/10.14778/3329772.3329777)"

LINES = {
    "q1": (12, 16),
    "q2": (14, 18),
    "q3": (58, 41),
    "q4": (128, 74),
    "q5": (73, 46),
    "q6": (130, 74),
    "q7": (55, 54),
    "q8": (58, 29),
}
"""Table 1: lines of each query, on timely dataflow and on Megaphone."""


@dataclass(frozen=True)
class Overhead:
    """One of Figures 13 to 15: milliseconds by the logarithm of the number of bins.

    They are those at the 90th, 99th and 99.99th percentile and at most.
    """

    figure: int
    what: str
    percentiles: dict[int, tuple[float, float, float, float]]
    native: tuple[float, float, float, float]

    def p99(self, power: int) -> float | None:
        """The 99th percentile with 2^power bins."""
        return self.percentiles[power][1] if power in self.percentiles else None


OVERHEADS = (
    Overhead(
        13,
        "hash count, 256 million keys",
        {
            4: (4.46, 7.60, 18.87, 25.17),
            6: (4.46, 6.55, 13.11, 26.21),
            8: (4.46, 6.03, 9.96, 16.78),
            10: (4.19, 6.82, 16.25, 23.07),
            12: (4.98, 7.08, 19.92, 24.12),
            14: (8.13, 11.53, 23.07, 30.41),
            16: (20.97, 27.26, 60.82, 83.89),
            18: (159.38, 192.94, 209.72, 226.49),
            20: (1140.85, 1409.29, 1476.40, 1543.50),
        },
        (1.64, 2.88, 12.06, 19.92),
    ),
    Overhead(
        14,
        "key count, 256 million keys",
        {
            4: (1.64, 3.67, 12.58, 19.92),
            6: (1.64, 2.75, 11.01, 20.97),
            8: (1.70, 2.49, 9.44, 19.92),
            10: (1.70, 2.36, 7.08, 15.20),
            12: (1.77, 2.88, 9.96, 20.97),
            14: (2.49, 4.46, 7.86, 19.92),
            16: (22.02, 26.21, 32.51, 46.14),
            18: (234.88, 268.44, 301.99, 335.54),
            20: (838.86, 1610.61, 1879.05, 1946.16),
        },
        (1.51, 1.70, 4.46, 14.16),
    ),
    Overhead(
        15,
        "key count, 8192 million keys",
        {
            4: (1.90, 3.28, 4.72, 7.34),
            6: (1.84, 3.28, 6.03, 18.87),
            8: (1.84, 3.54, 5.24, 12.58),
            10: (1.84, 3.28, 5.77, 13.11),
            12: (1.90, 3.67, 5.24, 9.44),
            14: (7.34, 16.78, 75.50, 100.66),
            16: (30.41, 35.65, 41.94, 50.33),
            18: (268.44, 318.77, 335.54, 385.88),
            20: (1006.63, 1610.61, 1811.94, 1879.05),
        },
        (1.57, 2.36, 4.98, 14.68),
    ),
)

QUERIES = {
    "q1": (5, "No spike: the query keeps no state."),
    "q2": (6, "No spike: the query keeps no state."),
    "q3": (7, "More than 100 ms with all-at-once, 10 ms with batched."),
    "q4": (8, "More than 2 s with all-at-once, up to 100 ms more with batched."),
    "q5": (
        9,
        "All-at-once is ten times what the work of every second takes; batched can't be told from that work.",
    ),
    "q6": (10, "Similar to Q4, most of whose plan it shares."),
    "q7": (11, "No difference between the two: the state is tiny."),
    "q8": (
        12,
        "The largest state; the text gives no amounts: all-at-once disrupts considerably, batched much less.",
    ),
}
"""Figures 5 to 12: which query is in which, and what the paper sees there."""

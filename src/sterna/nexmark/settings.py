"""How each query is run unless somebody says otherwise.

That is how fast event time passes, how many auctions are open, and how long it takes until its state is what
it will be.

A comparison of strategies is worth something only if the state is large and the same for each: windows must
be full, and auctions must have begun to expire. So event time is dilated where windows are long, and Queries
4 and 6, whose state are the open auctions, have three million of them in place of the generator's hundred.
"""

from __future__ import annotations

from dataclasses import dataclass

from sterna.nexmark.generator import AUCTIONS, GROUP

BINS, PAPER_BINS = 256, 4096
"""How many bins there are here, and in the paper.

``matched`` takes a step for every eighth of the bins with four workers, and a step takes an epoch: 32 with
these, 512 with the paper's, for each operator.
"""
LONGEST_FILL_SECONDS = 90.0
OPEN_AUCTIONS = 3_000_000
"""About 110 bytes of state each."""
MINUTE, HOUR = 60.0, 3600.0


@dataclass(frozen=True)
class Setting:
    """How a query is run.

    Attributes:
        window: seconds of event time that its windows hold.
        dilation: how many of them pass in a second.
        in_flight: how many auctions are open at a time, about.
        least: seconds that it runs before anything is measured, whatever its windows.
    """

    window: float = 0.0
    dilation: float = 1.0
    in_flight: int = 100
    least: float = 5.0

    def needed(self, rate: float) -> float:
        """Seconds until the state is as large as it gets, or nearly.

        Then the windows are full, and as many auctions have begun as are in flight, at so many events a
        second.

        By then three quarters of these are open: an auction is open for that long on the average and twice
        that at the most. Nobody waits longer than 90 s for them; more of them open while the run goes on.

        Example:
            >>> Setting(window=60.0).needed(100_000)
            60.0
            >>> round(Setting(in_flight=1_000_000).needed(500_000))
            33
        """
        fill = self.in_flight * GROUP / AUCTIONS / rate
        return max(self.least, self.window / self.dilation, min(fill, LONGEST_FILL_SECONDS))


SETTINGS = {
    "q1": Setting(),
    "q2": Setting(),
    "q3": Setting(least=40.0),
    "q4": Setting(in_flight=OPEN_AUCTIONS),
    "q5": Setting(window=MINUTE),
    "q6": Setting(in_flight=OPEN_AUCTIONS),
    "q7": Setting(window=MINUTE),
    "q8": Setting(window=12 * HOUR, dilation=540.0),
    "nbq5": Setting(window=MINUTE),
    "nbq8": Setting(window=12 * HOUR, dilation=540.0),
    "nbqx": Setting(window=4 * HOUR, dilation=180.0),
}
"""By query.

In the paper twelve hours pass in nine minutes (79 times as fast), here in 80 seconds. Its Q5 is dilated too:
a minute stands for an hour, a second for a minute; our windows are those already. Query 3 keeps everything
for ever: 40 s of it, and the check of the rate, before the first quiet minute.
"""

"""How each query is run unless somebody says otherwise.

That is how fast event time passes, how many auctions are open, and how long it takes until its state is what
it will be.

A comparison of strategies is worth something only if the state is large and the same for each: windows must
be full, and as many auctions must expire as begin. So event time is dilated where windows are long, and
Queries 4 and 6, whose state are the open auctions, have as many of them as begin in 80 seconds, at whatever
rate, in place of the generator's hundred. An auction is open for that long on the average and for twice that
at the most, so state and expiries are in balance after 160 seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

from sterna.nexmark.shape import AUCTIONS, GROUP

BINS, PAPER_BINS = 256, 4096
"""How many bins there are here, and in the paper.

``matched`` takes a step for every eighth of the bins with four workers, and a step takes an epoch: 32 with
these, 512 with the paper's, for each operator.
"""
LONGEST_FILL_SECONDS = 90.0
OPEN_SECONDS = 80.0
"""At 250,000 events a second 1.2 million auctions are open then, of about 110 bytes of state each."""
OPENED = 1.5
"""How many times as long is waited for them: then three quarters of those that will expire do."""
MINUTE, HOUR = 60.0, 3600.0


@dataclass(frozen=True)
class Setting:
    """How a query is run.

    Attributes:
        window: seconds of event time that its windows hold.
        dilation: how many of them pass in a second.
        in_flight: how many auctions are open at a time, about.
        open_seconds: or for how many seconds one is open, on the average.
        least: seconds that it runs before anything is measured, whatever its windows.
    """

    window: float = 0.0
    dilation: float = 1.0
    in_flight: int = 100
    open_seconds: float | None = None
    least: float = 5.0

    def auctions(self, rate: float) -> int:
        """How many auctions are open at a time, about, at so many events a second.

        Example:
            >>> Setting(open_seconds=80.0).auctions(100_000), Setting().auctions(100_000)
            (480000, 100)
        """
        if self.open_seconds is None:
            return self.in_flight
        return max(self.in_flight, int(self.open_seconds * rate * AUCTIONS / GROUP))

    def needed(self, rate: float) -> float:
        """Seconds until the state is as large as it gets, or nearly.

        Then the windows are full, and most of the auctions that are in flight have begun, at so many events a
        second. Where somebody wants many of them at a low rate, nobody waits longer than 90 s; more of them
        open while the run goes on.

        Example:
            >>> Setting(window=60.0).needed(100_000), Setting(open_seconds=80.0).needed(100_000)
            (60.0, 120.0)
            >>> round(Setting(in_flight=1_000_000).needed(500_000))
            33
        """
        fill = min(self.in_flight * GROUP / AUCTIONS / rate, LONGEST_FILL_SECONDS)
        if self.open_seconds is not None:
            fill = OPENED * self.open_seconds
        return max(self.least, self.window / self.dilation, fill)


SETTINGS = {
    "q1": Setting(),
    "q2": Setting(),
    "q3": Setting(least=40.0),
    "q4": Setting(open_seconds=OPEN_SECONDS),
    "q5": Setting(window=MINUTE),
    "q6": Setting(open_seconds=OPEN_SECONDS),
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

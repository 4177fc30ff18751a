"""A headless Chromium, driven through its debugging pipe: JSON messages, each ended by a zero byte.

That needs no driver and no package, and gives what the tests want: a page at a given width, in light or dark,
everything that it wrote to the console, and everything that it asked the network for.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE_S = 60.0


def find():
    """The browser to use: the one that is named, or the first one found."""
    return os.environ.get("STERNA_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One browser with one page; a context manager."""

    def __init__(self, executable, profile):
        to_browser, self._send = os.pipe()
        self._receive, from_browser = os.pipe()
        # The browser reads from descriptor 3 and writes to 4.
        command = [
            *("bash", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "browser"),
            *(executable, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
            *("--disable-dev-shm-usage", "--hide-scrollbars", f"--user-data-dir={profile}"),
            *("--remote-debugging-pipe", "about:blank"),
        ]
        self._log = Path(f"{profile}.log").open("wb")  # noqa: SIM115 - closed with the browser
        self._process = subprocess.Popen(
            command, pass_fds=(to_browser, from_browser), stdout=self._log, stderr=self._log
        )
        os.close(to_browser)
        os.close(from_browser)
        self._rest, self._last, self._session = b"", 0, None
        self.events = []

    def __enter__(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        os.close(self._send)  # the browser ends when nobody is at the other end
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._receive)
        self._log.close()

    def call(self, method, **parameters):
        """Call a method of the debugging protocol and wait for its result."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def open(self, path, width, scheme="light", height=900):
        """Load a file in a window of this width."""
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.media("screen", scheme)
        self.call("Page.navigate", url=path.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def media(self, kind, scheme="light"):
        """Show the page as on a screen or on paper, to somebody who likes it light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=kind, features=features)

    def run(self, script):
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def move(self, x, y):
        """Move the pointer."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self, path):
        """A picture of the whole page."""
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(picture["data"]))

    def complaints(self):
        """What the page wrote to the console, and the errors in it."""
        self.run("0")  # whatever happened before has been reported when this returns
        told = {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"}
        return [event for event in self.events if event.get("method") in told]

    def requests(self):
        """What was asked for."""
        sent = (event for event in self.events if event.get("method") == "Network.requestWillBeSent")
        return [event["params"]["request"]["url"] for event in sent]

    def _next(self):
        deadline = time.monotonic() + PATIENCE_S
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._receive], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            piece = os.read(self._receive, 1 << 20)
            assert piece, f"the browser ended: {Path(self._log.name).read_text(errors='replace')[-2000:]}"
            self._rest += piece
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

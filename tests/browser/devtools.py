"""A small client of Chromium's DevTools protocol over its debugging pipe: no driver, no library, no port that others could reach."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe")
KEYS = {"Tab": ("Tab", 9), "ArrowRight": ("ArrowRight", 39), "ArrowLeft": ("ArrowLeft", 37), "Home": ("Home", 36), "End": ("End", 35),
        " ": ("Space", 32), "Escape": ("Escape", 27), "Enter": ("Enter", 13), "ArrowDown": ("ArrowDown", 40)}


def program():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One browser process; messages are JSON that ends in a zero byte, on the descriptors 3 (to it) and 4 (from it)."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="browser-")
        to_read, self.to_write = os.pipe()
        self.from_read, from_write = os.pipe()
        # The child wants them as 3 and 4; a shell moves them there, whatever numbers they have here.
        move = f'exec "$0" "$@" 3<&{to_read} 4>&{from_write}'
        self.process = subprocess.Popen(["/bin/bash", "-c", move, program(), *FLAGS, f"--user-data-dir={self.folder}", "about:blank"],
                                        pass_fds=(to_read, from_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        start_new_session=True)
        os.close(to_read)
        os.close(from_write)
        self.pending, self.sent, self.events = b"", 0, []
        self.session = None
        self.ask("Browser.getVersion")

    def close(self):
        for descriptor in (self.to_write, self.from_read):
            os.close(descriptor)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)  # the group that this client started, and no other
            self.process.wait(5)
        shutil.rmtree(self.folder, ignore_errors=True)

    def ask(self, method, **params):
        self.sent += 1
        message = {"id": self.sent, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + 30
        while True:
            answer = self._next(end)
            if answer.get("id") == self.sent:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.events.append(answer)

    def _next(self, end):
        while b"\0" not in self.pending:
            left = end - time.monotonic()
            ready = select.select([self.from_read], [], [], max(left, 0))[0]
            assert ready, "the browser did not answer in time"
            got = os.read(self.from_read, 1 << 20)
            assert got, "the browser has ended"
            self.pending += got
        raw, self.pending = self.pending.split(b"\0", 1)
        return json.loads(raw)

    def open(self, address, width=1100, height=900, scripts=True):
        """A new page, loaded; from here on `events` holds what it did."""
        self.session = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.session = session
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.ask("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.events = []
        self.ask("Page.navigate", url=address)
        end = time.monotonic() + 30
        while not any(e.get("method") == "Page.loadEventFired" and e.get("sessionId") == session for e in self.events):
            self.events.append(self._next(end))
        return target

    def run(self, code):
        """What an expression is on the page; works where the page's own scripts are off, too."""
        answer = self.ask("Runtime.evaluate", expression=code, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key, times=1, shift=False):
        code, number = KEYS[key]
        for _ in range(times):
            for kind in ("rawKeyDown", "keyUp"):
                # Without its text a key is pressed and nothing is entered: a button would not notice.
                text = {"text": "\r"} if key == "Enter" and kind == "rawKeyDown" else {}
                self.ask("Input.dispatchKeyEvent", type="keyDown" if text else kind, key=key, code=code, windowsVirtualKeyCode=number,
                         modifiers=8 if shift else 0, **text)

    def click(self, selector, across=0.5, down=0.5):
        """With the mouse, at shares of an element's width and height."""
        left, top, width, height = self.run(f"""(() => {{ const e = document.querySelector({selector!r});
          e.scrollIntoView({{block: "center"}}); const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; }})()""")
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=left + across * width, y=top + down * height, button="left", clickCount=1)

    def requests(self):
        """Every address that the page asked for, but for what stands inside it."""
        asked = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [url for url in asked if not url.startswith(("data:", "blob:"))]

    def complaints(self):
        """Exceptions, console errors and what the browser logged."""
        found = [e["params"]["exceptionDetails"]["text"] for e in self.events if e.get("method") == "Runtime.exceptionThrown"]
        found += [str(e["params"]["args"]) for e in self.events if e.get("method") == "Runtime.consoleAPICalled"
                  and e["params"]["type"] in ("error", "warning", "assert")]
        return found + [e["params"]["entry"]["text"] for e in self.events if e.get("method") == "Log.entryAdded"]

"""Chromium behind a pipe (Chrome DevTools Protocol): only so does it make frames as for a person."""
import base64, json, os, shutil, signal, subprocess, tempfile, time

program = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)


class Browser:
    """A browser with one page, and a profile of its own."""

    def __init__(self, width=1400, height=900):
        self.profile = tempfile.mkdtemp()
        to_browser, self.to = os.pipe()
        self.read, from_browser = os.pipe()

        def place():  # the browser reads from handle 3 and writes to handle 4
            os.dup2(to_browser, 13), os.dup2(from_browser, 14), os.dup2(13, 3), os.dup2(14, 4)
        self.process = subprocess.Popen([program, "--headless=new", "--no-sandbox", "--disable-gpu", f"--window-size={width},{height}",
                                         "--force-color-profile=srgb", "--font-render-hinting=none", f"--user-data-dir={self.profile}",
                                         "--remote-debugging-pipe"], preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, start_new_session=True, env=os.environ | {"TMPDIR": self.profile})
        os.close(to_browser), os.close(from_browser)
        self.number, self.rest, self.session = 0, b"", None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)  # with its helpers, which would go on to write the profile
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters} | ({"sessionId": self.session} if self.session else {})
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                piece = os.read(self.read, 1 << 20)
                if not piece:
                    raise RuntimeError("the browser has ended")
                self.rest += piece
            line, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(line)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(answer["error"])
                return answer["result"]

    def value(self, expression):
        """The value of an expression in the page; of a promise, when it is kept."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", str(answer)))
        return answer["result"].get("value")

    def until(self, expression):
        while not self.value(expression):
            time.sleep(0.01)

    def major(self):
        """The name and the main number of the version of the browser."""
        return self.call("Browser.getVersion")["product"].split(".")[0]

    def sized(self, width, height, theme="light"):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])

    def press(self, key, shift=False):
        """Presses a key of the keyboard, such as "Tab" or "d"."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "PageUp": 33, "PageDown": 34, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38,
                 "ArrowRight": 39, "ArrowDown": 40}
        text = "\r" if key == "Enter" else key if len(key) == 1 else ""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=text if kind == "keyDown" else "",
                      windowsVirtualKeyCode=codes.get(key, ord(key[0].upper())), modifiers=8 if shift else 0)

    def frames(self):
        """Waits until the page is painted as it is now."""
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def opened(self, path):
        """Opens a page of `xtape report`. Returns the seconds until its first view is painted, or until it has failed."""
        self.call("Page.navigate", url="about:blank")  # so that a page that is opened again is a new one
        begun = time.time()
        self.call("Page.navigate", url=f"file://{os.path.abspath(path)}")
        self.until("location.protocol === 'file:' && ['ready', 'errors'].some(each => document.documentElement?.dataset[each])")
        self.frames()
        return time.time() - begun

    def picture(self):
        """The visible part of the page as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

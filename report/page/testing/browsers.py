"""Chromium and Firefox without a window, both driven over WebDriver BiDi, with nothing but Python's own library.

    with contextlib.closing(Firefox(folder)) as browser:
        browser.open("sample")
        print(browser.js("return document.title"))

Chromium needs Debian's chromium and chromium-driver, which hands out its WebSocket; Firefox speaks BiDi by itself.
"""
import base64, contextlib, hashlib, json, os, pathlib, re, shutil, socket, struct, subprocess, tempfile, threading, urllib.request

KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "Space": "\ue00d", "Home": "\ue011", "Left": "\ue012", "Up": "\ue013", "Right": "\ue014",
        "Down": "\ue015", "Tab": "\ue004", "Shift": "\ue008", "Control": "\ue009"}
TIMEOUT_S = 60


class WebSocket:
    """A client of RFC 6455: text messages, whole ones out, whole or in fragments in."""

    TEXT, CLOSE, PING, PONG = 1, 8, 9, 10

    def __init__(self, url):
        host, port, path = re.fullmatch(r"ws://([^:/]+):(\d+)(/.*)", url).groups()
        self.socket = socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
        self.input = self.socket.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(("GET %s HTTP/1.1\r\nHost: %s:%s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n\r\n" % (path, host, port, key)).encode())
        answer = b"".join(iter(self.input.readline, b"\r\n")).decode()
        accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
        if " 101 " not in answer.splitlines()[0] or accept not in answer:
            raise RuntimeError("%s is no WebSocket: %s" % (url, answer))

    def send(self, data, opcode=TEXT):
        size = len(data)
        length = struct.pack("!B", 128 | size) if size < 126 else struct.pack("!BH", 254, size) if size < 1 << 16 else struct.pack("!BQ", 255, size)
        mask = os.urandom(4)
        stream = (mask * (size // 4 + 1))[:size]
        masked = (int.from_bytes(data, "big") ^ int.from_bytes(stream, "big")).to_bytes(size, "big")
        self.socket.sendall(bytes([128 | opcode]) + length + mask + masked)

    def read(self, size):
        data = self.input.read(size)
        if len(data) < size:
            raise RuntimeError("the browser has closed the connection")
        return data

    def receive(self):
        message = b""
        while True:
            first, size = self.read(2)
            if size >= 126:
                size, = struct.unpack(*(("!H", self.read(2)) if size == 126 else ("!Q", self.read(8))))
            data, opcode = self.read(size), first & 15
            if opcode == self.PING:
                self.send(data, self.PONG)
            elif opcode == self.CLOSE:
                raise RuntimeError("the browser closes the connection: %s" % data[2:].decode(errors="replace"))
            elif opcode != self.PONG:
                message += data
                if first & 128:
                    return message

    def close(self):
        with contextlib.suppress(OSError):
            self.send(b"", self.CLOSE)
        self.input.close()
        self.socket.close()


class Browser:
    """One tab. The classes below know how each browser is started, listened to, coloured and ended."""

    @classmethod
    def missing(cls):
        """The programs that are not installed."""
        return [program for program in cls.programs if not shutil.which(program)]

    def __init__(self, folder):
        """Pages are opened in the folder; screenshots and downloads go to its folder of the browser's name."""
        self.folder, self.saved = pathlib.Path(folder).resolve(), pathlib.Path(folder).resolve() / self.name
        shutil.rmtree(self.saved, ignore_errors=True)
        self.saved.mkdir(parents=True)
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.entries, self.sent, self.process, self.web_socket = [], 0, None, None
        try:
            self.web_socket = WebSocket(self.start())
            self.context = self.bidi("browsingContext.getTree")["contexts"][0]["context"]
            self.listen()
        except BaseException:
            self.close()
            raise

    def launch(self, command, pattern, **environment):
        """Starts the program; returns the part of its output that it is waited for."""
        self.process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        limit = threading.Timer(TIMEOUT_S, self.process.kill)
        limit.start()
        said = []
        for line in self.process.stdout:
            said.append(line)
            if match := re.search(pattern, line):
                limit.cancel()
                # A pipe that nobody empties would stop the program.
                threading.Thread(target=lambda: all(self.process.stdout), daemon=True).start()
                return match[1]
        limit.cancel()
        raise RuntimeError("%s did not start: %s" % (command[0], "".join(said)))

    def bidi(self, method, /, **parameters):
        self.sent += 1
        self.web_socket.send(json.dumps({"id": self.sent, "method": method, "params": parameters}).encode())
        while True:
            message = json.loads(self.web_socket.receive())
            if message.get("method") == "log.entryAdded":
                self.entries.append(message["params"])
            if message.get("method") == "goog:cdp.Log.entryAdded":
                self.entries.append(message["params"]["params"]["entry"])
            if message.get("id") == self.sent:
                if message["type"] == "error":
                    raise RuntimeError("%s: %s: %s" % (method, message["error"], message["message"].splitlines()[0]))
                return message["result"]

    def close(self):
        if self.web_socket:
            with contextlib.suppress(RuntimeError, OSError):
                self.end()
            self.web_socket.close()
        if self.process:
            self.process.terminate()
            self.process.wait()
        self.profile.cleanup()

    def open(self, name):
        """A page of the folder, or a path."""
        self.log()
        path = pathlib.Path(name).resolve() if name.endswith(".html") else self.folder / (name + ".html")
        self.bidi("browsingContext.navigate", context=self.context, url=path.as_uri(), wait="complete")
        self.frame()

    def log(self):
        """Errors and warnings of the console since the last call, less the warning that these checks read pixels."""
        self.js("")
        entries, self.entries = self.entries, []
        return [entry["text"] for entry in entries if entry["level"] in ("error", "warn", "warning") and "willReadFrequently" not in entry["text"]]

    def call(self, body, arguments):
        answer = self.bidi("script.callFunction", target={"context": self.context}, awaitPromise=True, functionDeclaration=
                           "async (body) => JSON.stringify(await (function() { %s }).apply(null, JSON.parse(body)))" % body,
                           arguments=[{"type": "string", "value": json.dumps(arguments)}])
        if answer["type"] == "exception":
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return json.loads(answer["result"].get("value", "null"))

    def js(self, body, *arguments):
        return self.call(body + "\n", arguments)

    def js_async(self, body, *arguments):
        """The value that the body hands to done()."""
        return self.call("return new Promise((done) => { %s\n});" % body, arguments)

    def frame(self):
        self.js_async("requestAnimationFrame(() => requestAnimationFrame(() => done(0)));")

    def resize(self, width, height=900, ratio=1):
        self.bidi("browsingContext.setViewport", context=self.context, viewport={"width": width, "height": height}, devicePixelRatio=ratio)
        self.frame()

    def keys(self, *keys):
        """Types the keys one after the other; "Shift+Tab" holds the first."""
        for key in keys:
            codes = [KEYS.get(part, part) for part in (key.split("+") if len(key) > 1 else [key])]
            self.act({"type": "key", "id": "keys", "actions": [{"type": "keyDown", "value": code} for code in codes] +
                      [{"type": "keyUp", "value": code} for code in reversed(codes)]})
        self.frame()

    def act(self, *sources):
        self.bidi("input.performActions", context=self.context, actions=list(sources))

    def mouse(self, *actions):
        """Moves to each (x, y); "pointerDown" and "pointerUp" press and release."""
        self.act({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [
            {"type": "pointerMove", "duration": 0, "x": round(a[0]), "y": round(a[1])} if isinstance(a, tuple) else {"type": a, "button": 0} for a in actions]})
        self.frame()

    def wheel(self, x, y, delta):
        self.act({"type": "wheel", "id": "wheel", "actions": [
            {"type": "scroll", "x": round(x), "y": round(y), "deltaX": 0, "deltaY": delta, "duration": 0}]})
        self.frame()

    def screenshot(self, name, whole=True):
        shot = self.bidi("browsingContext.captureScreenshot", context=self.context, origin="document" if whole else "viewport")
        (self.saved / (name + ".png")).write_bytes(base64.b64decode(shot["data"]))

    def print(self, name):
        pdf = self.bidi("browsingContext.print", context=self.context, background=True)
        (self.saved / (name + ".pdf")).write_bytes(base64.b64decode(pdf["data"]))


class Chromium(Browser):
    name, programs = "chromium", ("chromium", "chromedriver")

    def start(self):
        """Returns the address of the WebSocket."""
        self.address = "http://127.0.0.1:%s/session" % self.launch(["chromedriver", "--port=0"], r"started successfully on port (\d+)")
        options = {"args": ["--headless=new", "--no-sandbox", "--user-data-dir=" + self.profile.name]}
        body = {"capabilities": {"alwaysMatch": {"browserName": "chrome", "webSocketUrl": True, "goog:chromeOptions": options}}}
        with urllib.request.urlopen(self.address, json.dumps(body).encode(), timeout=TIMEOUT_S) as answer:
            session = json.load(answer)["value"]
        self.address += "/" + session["sessionId"]
        return session["capabilities"]["webSocketUrl"]

    def listen(self):
        """BiDi's log has what the page says; what the browser says of it, as of its policy, is in the log of CDP."""
        self.cdp("Log.enable")
        self.bidi("browser.setDownloadBehavior", downloadBehavior={"type": "allowed", "destinationFolder": str(self.saved)})
        self.bidi("session.subscribe", events=["log.entryAdded", "goog:cdp.Log.entryAdded"])

    def cdp(self, command, **parameters):
        session = self.bidi("goog:cdp.getSession", context=self.context)["session"]
        return self.bidi("goog:cdp.sendCommand", session=session, method=command, params=parameters)["result"]

    def scheme(self, name):
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])
        self.frame()

    def end(self):
        urllib.request.urlopen(urllib.request.Request(self.address, method="DELETE"), timeout=TIMEOUT_S).close()


class Firefox(Browser):
    name, programs = "firefox", ("firefox-esr",)

    def start(self):
        """Returns the address of the WebSocket."""
        # Times as exact as Chromium's, since frames are measured. Firefox 140 has no command for where downloads go.
        preferences = {"privacy.reduceTimerPrecision": False, "marionette.port": 0, "browser.download.folderList": 2,
                       "browser.download.dir": str(self.saved)}
        profile = pathlib.Path(self.profile.name)
        (profile / "user.js").write_text("".join("user_pref(%s, %s);\n" % (json.dumps(name), json.dumps(value))
                                                 for name, value in preferences.items()))
        self.launch(["firefox-esr", "--headless", "--no-remote", "--remote-debugging-port=0", "--marionette", "--remote-allow-system-access",
                     "--profile", self.profile.name], r"BiDi listening on (ws://\S+)", HOME=self.profile.name)
        port = int((profile / "MarionetteActivePort").read_text())
        self.marionette_pipe = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S).makefile("rwb")
        self.marionette_answer()
        return self.marionette("WebDriver:NewSession", webSocketUrl=True)["capabilities"]["webSocketUrl"]

    def marionette_answer(self):
        length = b""
        while (byte := self.marionette_pipe.read(1)) != b":":
            if not byte:
                raise RuntimeError("Firefox has ended")
            length += byte
        return json.loads(self.marionette_pipe.read(int(length)))

    def marionette(self, command, **parameters):
        """Sends the command by Firefox's own protocol, for what BiDi has no command for."""
        body = json.dumps([0, 1, command, parameters]).encode()
        self.marionette_pipe.write(b"%d:%s" % (len(body), body))
        self.marionette_pipe.flush()
        error, result = self.marionette_answer()[2:]
        if error:
            raise RuntimeError("%s: %s" % (command, error["message"]))
        return result

    def listen(self):
        self.bidi("session.subscribe", events=["log.entryAdded"])
        self.marionette("Marionette:SetContext", value="chrome")

    def chrome(self, script):
        """Runs the script in the browser's own window."""
        self.marionette("WebDriver:ExecuteScript", script=script, args=[])

    def open(self, name):
        super().open(name)
        # Else the address bar has the focus, and keys reach the page without their effect.
        self.chrome("gBrowser.selectedBrowser.focus()")

    def scheme(self, name):
        self.chrome("Services.prefs.setIntPref('layout.css.prefers-color-scheme.content-override', %d)" % (name != "dark"))
        self.frame()

    def end(self):
        self.bidi("browser.close")

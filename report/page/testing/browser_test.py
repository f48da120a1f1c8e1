#!/usr/bin/env python3
"""Opens pages in headless Chromium through chromedriver and checks what a reader would.

browser_test.py MAKE_PAGE FOLDER [REPORT.html ...]: MAKE_PAGE is the program //report:make_page, pages and
screenshots go to the folder; further pages must show their charts without an error.
"""
import base64, contextlib, csv, itertools, json, pathlib, socket, subprocess, sys, time, urllib.request

import check_timeline

HERE = pathlib.Path(__file__).parent
OUT = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else HERE
MAKE_PAGE = sys.argv[1] if len(sys.argv) > 1 else ""
KEYS = {"Enter": "\ue007", "Space": "\ue00d", "Home": "\ue011", "Left": "\ue012", "Right": "\ue014", "Tab": "\ue004"}


class Browser:
    """One session of chromedriver, by the WebDriver protocol."""

    def __init__(self):
        with contextlib.closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.driver = subprocess.Popen(["chromedriver", "--port=%d" % port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.root = "http://127.0.0.1:%d" % port
        for _ in range(100):
            with contextlib.suppress(OSError):
                if self.send("GET", "/status")["ready"]:
                    break
            time.sleep(0.1)
        options = {"args": ["--headless=new", "--no-sandbox", "--hide-scrollbars=false", "--window-size=1180,900"],
                   "prefs": {"download.default_directory": str(OUT)}}
        session = self.send("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.root += "/session/" + session["sessionId"]

    def send(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.root + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"].splitlines()[0]) from None

    def close(self):
        with contextlib.suppress(Exception):
            self.send("DELETE", "")
        self.driver.terminate()
        self.driver.wait()

    def cdp(self, command, **parameters):
        return self.send("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, name):
        """A page of the folder, or a path."""
        self.log()
        path = pathlib.Path(name).resolve() if name.endswith(".html") else OUT / (name + ".html")
        self.send("POST", "/url", {"url": path.as_uri()})
        self.frame()

    def log(self):
        """Errors and warnings since the last call, less the warning that these checks read pixels."""
        return [entry["message"] for entry in self.send("POST", "/se/log", {"type": "browser"}) if entry["level"] in ("SEVERE", "WARNING") and "willReadFrequently" not in entry["message"]]

    def js(self, body, *arguments):
        return self.send("POST", "/execute/sync", {"script": body, "args": list(arguments)})

    def js_async(self, body, *arguments):
        return self.send("POST", "/execute/async", {"script": "const done = arguments[arguments.length - 1];" + body, "args": list(arguments)})

    def frame(self):
        self.js_async("requestAnimationFrame(() => requestAnimationFrame(() => done(0)));")

    def resize(self, width, height=900, ratio=1):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=ratio, mobile=False)
        self.frame()

    def scheme(self, name):
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])
        self.frame()

    def keys(self, *keys):
        for key in keys:
            code = KEYS.get(key, key)
            self.act({"type": "key", "id": "keys", "actions": [{"type": "keyDown", "value": code}, {"type": "keyUp", "value": code}]})
        self.frame()

    def act(self, *sources):
        self.send("POST", "/actions", {"actions": list(sources)})

    def mouse(self, *actions):
        self.act({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [
            {"type": "pointerMove", "duration": 0, "x": round(a[0]), "y": round(a[1])} if isinstance(a, tuple) else {"type": a, "button": 0} for a in actions]})
        self.frame()

    def wheel(self, x, y, delta):
        self.act({"type": "wheel", "id": "wheel", "actions": [
            {"type": "scroll", "x": round(x), "y": round(y), "deltaX": 0, "deltaY": delta, "duration": 0}]})
        self.frame()

    def screenshot(self, name, whole=True):
        width, height = self.js("return [innerWidth, innerHeight]")
        if whole:
            self.resize(width, self.js("return document.documentElement.scrollHeight"))
            time.sleep(0.2)
        (OUT / (name + ".png")).write_bytes(base64.b64decode(self.cdp("Page.captureScreenshot")["data"]))
        if whole:
            self.resize(width, height)


class Checks:
    passed = failed = 0

    def __call__(self, what, holds, detail=""):
        if holds:
            self.passed += 1
        else:
            self.failed += 1
            print("FAILED: %s %s" % (what, detail))


CHECK = Checks()
MARKS = """
  // How many pixels of each canvas, inside the axes, have the colour of a kind or of the band.
  const palette = report.colours();
  const wanted = ['wait', 'transfer', 'computation', 'copy', 'host', 'gap'].map((name) => parseInt(palette[name].slice(1), 16));
  return [...document.querySelectorAll(arguments[0])].map((canvas) => {
    const ratio = canvas.width / canvas.clientWidth;
    const area = Chart.getChart(canvas)?.chartArea ?? {left: 0, top: 0, width: canvas.clientWidth, height: canvas.clientHeight};
    const data = canvas.getContext('2d').getImageData(...[area.left + 2, area.top, area.width - 4, area.height - 2].map((part) => part * ratio)).data;
    const seen = new Set();
    let count = 0;
    for (let at = 0; at < data.length; at += 4) {
      const colour = data[at] << 16 | data[at + 1] << 8 | data[at + 2];
      if (data[at + 3] > 200 && wanted.includes(colour)) { ++count; seen.add(colour); }
    }
    return [count, seen.size];
  });
"""


def check_quantities(browser):
    """The page writes numbers as findings do: the cases are those of report/quantities_test.cc."""
    functions = {"durations_ns": "nanoseconds", "percents": "percent", "ranges": "ranges"}
    cases = json.loads((HERE / "quantity_cases.json").read_text())
    wrong = [(name, value, text, shown) for name, function in functions.items() for value, text in cases[name]
             if (shown := browser.js("return report.format[arguments[0]](arguments[1])", function, value)) != text]
    CHECK("numbers are written as in findings", not wrong and cases.keys() == functions.keys(), str(wrong))


def check_charts(browser):
    marks = browser.js(MARKS, "canvas.chart")
    CHECK("there are charts", len(marks) >= 8, str(len(marks)))
    CHECK("every chart has marks of two colours", all(count > 100 and colours >= 2 for count, colours in marks), str(marks))
    CHECK("every chart is named and followed by its table", browser.js(
        "return [...document.querySelectorAll('canvas.chart')].every((c) => c.getAttribute('role') === 'img' && "
        "c.getAttribute('aria-label').length > 20 && c.parentNode.nextSibling.matches('details:has(table)'))"))


def check_page(browser):
    order = browser.js("return [...document.querySelectorAll('h1,h2,h3')].map((h) => Number(h.tagName[1]))")
    CHECK("headings are in order", order[0] == 1 and all(b - a <= 1 for a, b in zip(order, order[1:])), str(order))
    CHECK("landmarks and language", browser.js("return document.documentElement.lang === 'en' && ['header', 'nav', 'main', 'footer']"
                                               ".every((tag) => document.querySelectorAll(tag).length === 1)"))
    CHECK("findings say their verdict in words", browser.js(
        "return [...document.querySelectorAll('.verdict .word')].map((e) => e.textContent).join()") == "Problem,Good,Note,Unknown")
    CHECK("nothing is asked of the network", browser.js("return performance.getEntriesByType('resource').length") == 0)
    CHECK("ids are unique", browser.js("const ids = [...document.querySelectorAll('[id]')].map((e) => e.id); return ids.length === new Set(ids).size"))


def check_forecasts(browser):
    answer = "return document.querySelector('#what_if [role=status]').textContent"
    before = browser.js(answer)
    CHECK("the sliders begin with the run as it is", "in place of" in before and browser.js("return [...document.querySelectorAll('#what_if output')].map((o) => o.textContent)") == ["1x", "1x"], before)
    browser.js("const s = document.querySelector('#what_if input[type=range]'); s.value = s.max; s.dispatchEvent(new Event('input'))")
    CHECK("a slider asks for another forecast", browser.js(answer) != before and browser.js("return document.querySelector('#what_if output').textContent") == "4x", browser.js(answer))


def check_tables(browser):
    column = "return [...document.querySelectorAll('#clocks table tbody')][0].querySelectorAll('tr').values().map((r) => r.cells[4].textContent).toArray()"
    sort = "return document.querySelectorAll('#clocks table')[0].tHead.rows[0].cells[4].ariaSort"
    header = "document.querySelectorAll('#clocks table')[0].tHead.rows[0].cells[4].firstChild"
    CHECK("no column is sorted at first", browser.js(sort) == "none")
    box = browser.js("document.documentElement.style.scrollBehavior = 'auto'; %s.scrollIntoView({block: 'center'}); const b = %s.getBoundingClientRect(); return [b.left + 8, b.top + 8]" % (header, header))
    browser.mouse(tuple(box), "pointerDown", "pointerUp")
    down = browser.js(column)
    CHECK("a click sorts, what is not known last", browser.js(sort) == "descending" and down[-1] == "not known" and
          [float(x.replace(",", "")) for x in down[:-1]] == sorted((float(x.replace(",", "")) for x in down[:-1]), reverse=True), str(down))
    browser.js(header + ".focus()")
    browser.keys("Enter")
    CHECK("Enter sorts the other way", browser.js(sort) == "ascending" and browser.js(column)[:-1] == down[:-1][::-1], str(browser.js(column)))
    browser.keys("Space")
    CHECK("Space sorts back", browser.js(sort) == "descending")
    long = "document.querySelector('#simulation details')"
    CHECK("long tables show 20 rows", browser.js("return %s.querySelectorAll('tbody tr').length" % long) == 20)
    browser.js("%s.querySelector('.tools button').click()" % long)
    CHECK("show all", browser.js("return %s.querySelectorAll('tbody tr').length" % long) == 48)
    lines = clocks_csv(browser)
    CHECK("the CSV downloads under the policy", len(lines) == 5 and lines[0].startswith('"node","host"'), str(lines[:2]))


def clocks_csv(browser):
    """The lines of the clocks' table as it is saved; none when it is not."""
    target = OUT / "clocks.csv"
    target.unlink(missing_ok=True)
    browser.cdp("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(OUT))
    browser.js("document.querySelector('#clocks .csv').click()")
    deadline = time.time() + 5
    while not target.exists() and time.time() < deadline:
        time.sleep(0.1)
    lines = target.read_text().splitlines() if target.exists() else []
    target.unlink(missing_ok=True)
    return lines


def check_overflow(browser, name):
    for width in (400, 1180, 2560):
        browser.resize(width)
        wide = browser.js("return document.documentElement.scrollWidth")
        CHECK("%s has no sideways overflow at %d px" % (name, width), wide <= width, str(wide))


def check_schemes(browser):
    for scheme, width in itertools.product(("light", "dark"), (400, 1180, 2560)):
        browser.resize(width)
        browser.scheme(scheme)
        time.sleep(0.3)
        if scheme == "dark":
            marks = browser.js(MARKS, "canvas.chart, canvas.events")
            CHECK("charts have marks in dark at %d px" % width, all(count > 50 and colours >= 2 for count, colours in marks), str(marks))
        browser.screenshot("sample_%s_%d" % (scheme, width))
    CHECK("the ground is dark", browser.js("return getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)")
    CHECK("the timeline's ground is dark", browser.js("const c = report.view.canvas; return [...report.view.context.getImageData(c.width - 3, 2, 1, 1).data]")[0] == 13)
    browser.js("window.seen = 0; addEventListener('beforeprint', () => { window.seen = getComputedStyle(document.documentElement).getPropertyValue('--ground') + document.querySelectorAll('details:not([open])').length })")
    pdf = browser.cdp("Page.printToPDF", printBackground=True)["data"]
    (OUT / "sample_print.pdf").write_bytes(base64.b64decode(pdf))
    CHECK("print is light and opens details", browser.js("return window.seen") == "#ffffff0", str(browser.js("return window.seen")))
    CHECK("details close again after print", browser.js("return document.querySelectorAll('details[open]').length") == 0)
    browser.scheme("light")


def luminance(colour):
    parts = [int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def seen_by(colour, matrix):
    """The colour as linear RGB seen with a colour vision deficiency (Machado and others, 2009)."""
    parts = [int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return [min(1, max(0, sum(m * c for m, c in zip(row, linear)))) for row in matrix]


def lab(linear):
    rows = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    x, y, z = (sum(m * c for m, c in zip(row, linear)) / white for row, white in zip(rows, (0.9505, 1, 1.089)))
    f = lambda t: t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116
    return 116 * f(y) - 16, 500 * (f(x) - f(y)), 200 * (f(y) - f(z))


SIGHT = {"normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
         "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
         "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881))}


def check_colours(browser):
    for scheme in ("light", "dark"):
        browser.scheme(scheme)
        palette = browser.js("return report.colours()")
        kinds = [palette[name] for name in ("wait", "host", "computation", "copy", "transfer")]
        ratio = contrast(palette["wait"], palette["transfer"])
        grounds = min(contrast(colour, palette["ground"]) for colour in kinds)
        steps = [abs(lab(seen_by(a, SIGHT["normal"]))[0] - lab(seen_by(b, SIGHT["normal"]))[0]) for a, b in itertools.combinations(kinds, 2)]
        apart = {name: min(sum((p - q) ** 2 for p, q in zip(lab(seen_by(a, sight)), lab(seen_by(b, sight)))) ** 0.5
                           for a, b in itertools.combinations(kinds, 2)) for name, sight in SIGHT.items()}
        print("%s: wait against transfer %.2f:1, kinds against the ground at least %.2f:1, L* apart at least %.1f, distance at least %s" % (
            scheme, ratio, grounds, min(steps), ", ".join("%s %.0f" % item for item in apart.items())))
        CHECK("wait against transfer in " + scheme, ratio >= 3)
        CHECK("kinds against the ground in " + scheme, grounds >= 3)
        CHECK("kinds differ in lightness in " + scheme, min(steps) >= 5)
        CHECK("kinds differ for every sight in " + scheme, min(apart.values()) >= 20, str(apart))
        CHECK("text contrast in " + scheme, min(contrast(palette[name], palette["ground"]) for name in ("ink", "soft")) >= 4.5)
    browser.scheme("light")


def check_hostile(browser):
    browser.open("hostile")
    CHECK("hostile: no console errors", not (log := browser.log()), str(log))
    CHECK("hostile: the title is text", "OWNED'" in browser.js("return document.title") and browser.js("return document.title") != "OWNED")
    CHECK("hostile: no element from data", browser.js("return document.querySelectorAll('img').length") == 0)
    CHECK("hostile: texts are shown as texts", browser.js("return document.querySelector('h1').textContent").startswith("</script><img"))
    CHECK("hostile: no section fails", browser.js("return document.querySelectorAll('p.verdict.bad').length") == 0)
    CHECK("hostile: no NaN or undefined", not (words := browser.js("return document.querySelector('main').innerText.match(/NaN|undefined|Infinity/g)")), str(words))
    hosts = [row[1] for row in csv.reader(clocks_csv(browser)[1:])]
    CHECK("hostile: no spreadsheet runs a cell of the CSV", sorted(hosts) == ["'+1+1", "'-1+1", "'=1+1", "'@SUM(1,1)"], str(hosts))
    check_overflow(browser, "hostile")
    browser.resize(1180)
    browser.screenshot("hostile")


def check_empty(browser):
    browser.open("empty")
    CHECK("empty: no console errors", not (log := browser.log()), str(log))
    missing = browser.js("return [...document.querySelectorAll('main section')].map((s) => [s.id, s.querySelectorAll('.missing').length])")
    CHECK("empty: every section says what is missing", all(count for _, count in missing), str(missing))
    check_overflow(browser, "empty")
    browser.resize(1180)
    browser.screenshot("empty")


def check_big(browser):
    begin = time.time()
    browser.open("big")
    print("big: %d events, loaded in %.2f s" % (browser.js("return report.view.model.count"), time.time() - begin))
    CHECK("big: no console errors", not (log := browser.log()), str(log))
    check_overflow(browser, "big")
    browser.resize(1180)


def check_real(browser, path):
    browser.open(path)
    name = pathlib.Path(path).name
    CHECK(name + ": no console errors", not (log := browser.log()), str(log))
    CHECK(name + ": findings are shown", browser.js("return document.querySelectorAll('#summary article').length") >= 4)
    marks = browser.js(MARKS, "canvas.chart")
    CHECK(name + ": every chart has marks", len(marks) >= 8 and all(count > 20 for count, _ in marks), str(marks))
    CHECK(name + ": nothing is missing", not (missing := browser.js("return [...document.querySelectorAll('.missing')].map((m) => m.textContent)")), str(missing))
    check_overflow(browser, name)
    browser.resize(1180)
    browser.screenshot("real")


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, str(HERE / "make_sample.py"), str(OUT)], check=True)
    for name in ("sample", "big", "hostile", "empty"):
        subprocess.run([MAKE_PAGE, str(OUT / (name + ".json")), str(OUT / (name + ".html"))], check=True)
    browser = Browser()
    try:
        browser.resize(1180)
        browser.scheme("light")
        browser.open("sample")
        CHECK("no console errors", not (log := browser.log()), str(log))
        for check in (check_page, check_quantities, check_charts, check_forecasts, check_tables, check_colours):
            check(browser)
        CHECK("no console errors after use", not (log := browser.log()), str(log))
        check_overflow(browser, "sample")
        browser.open("sample")
        check_schemes(browser)
        CHECK("no console errors in both schemes", not (log := browser.log()), str(log))
        browser.resize(1180, ratio=2)
        CHECK("the canvas follows the pixel ratio", browser.js("const c = report.view.canvas; return c.width === 2 * c.clientWidth"))
        browser.resize(1180)
        for check in (check_hostile, check_empty, check_big):
            check(browser)
        browser.open("sample")
        check_timeline.check(browser, CHECK, OUT)
        for path in sys.argv[3:]:
            check_real(browser, path)
    finally:
        browser.close()
    print("%d passed, %d failed" % (CHECK.passed, CHECK.failed))
    return 1 if CHECK.failed else 0


if __name__ == "__main__":
    sys.exit(main())

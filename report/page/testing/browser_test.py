#!/usr/bin/env python3
"""Opens pages in Chromium and in Firefox and checks what a reader would.

browser_test.py MAKE_PAGE FOLDER [REPORT.html ...]: MAKE_PAGE is the program //report:make_page, pages go to the
folder and screenshots to one of each browser in it; further pages must show their charts without an error.
Every check runs in both browsers; one that is not installed is skipped, and said so.
"""
import contextlib, csv, importlib, itertools, json, pathlib, subprocess, sys, time, traceback

from browsers import Chromium, Firefox

HERE = pathlib.Path(__file__).parent
OUT = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else HERE
MAKE_PAGE = sys.argv[1] if len(sys.argv) > 1 else ""
# Checks that live in a file of their own, as a function check(browser, CHECK, OUT).
FILES = ["check_findings", "check_timeline"]


class Checks:
    browser, passed, failed = "", 0, 0

    def begin(self, browser):
        self.browser, self.passed, self.failed = browser, 0, 0

    def __call__(self, what, holds, detail=""):
        if holds:
            self.passed += 1
        else:
            self.failed += 1
            print("FAILED: %s: %s %s" % (self.browser, what, detail))


CHECK = Checks()
OPEN_ALL = "document.documentElement.style.scrollBehavior = 'auto'; for (const [id] of report.sectionTitles) report.openSection(id)"
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


def check_driver(browser):
    """That nothing is lost on the way: long texts in both directions, and every way of an error to the log."""
    browser.open("sample")
    for size in (10, 200, 70000, 2000000):
        text = "é" * (size // 2)
        CHECK("%d bytes come and go" % size, browser.js("return arguments[0]", text) == text)
    browser.js("console.error('said'); console.warn('warned'); setTimeout(() => { throw new Error('thrown') }); new Image().src = 'http://127.0.0.1:1/'")
    time.sleep(0.2)
    log = "\n".join(browser.log())
    CHECK("errors reach the log", all(word in log for word in ("said", "warned", "thrown", "img-src")), log)
    CHECK("the log is emptied", not browser.log())


def check_quantities(browser):
    """The page writes numbers as findings do: the cases are those of report/quantities_test.cc."""
    functions = {"durations_ns": "nanoseconds", "percents": "percent", "ranges": "ranges"}
    cases = json.loads((HERE / "quantity_cases.json").read_text())
    wrong = [(name, value, text, shown) for name, function in functions.items() for value, text in cases[name]
             if (shown := browser.js("return report.format[arguments[0]](arguments[1])", function, value)) != text]
    CHECK("numbers are written as in findings", not wrong and cases.keys() == functions.keys(), str(wrong))


def check_charts(browser):
    browser.open("sample")
    browser.js(OPEN_ALL)
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
        "return [...document.querySelectorAll('#summary .word')].map((e) => e.textContent).join()") == "Problem,Good,Note,Unknown")
    CHECK("nothing is asked of the network", browser.js("return performance.getEntriesByType('resource').length") == 0)
    CHECK("ids are unique", browser.js("const ids = [...document.querySelectorAll('[id]')].map((e) => e.id); return ids.length === new Set(ids).size"))


def check_tables(browser):
    browser.js(OPEN_ALL)
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
    long = "document.querySelector('#simulation figure details')"
    CHECK("long tables show 20 rows", browser.js("return %s.querySelectorAll('tbody tr').length" % long) == 20)
    browser.js("%s.querySelector('.tools button').click()" % long)
    CHECK("show all", browser.js("return %s.querySelectorAll('tbody tr').length" % long) == 48)
    lines = clocks_csv(browser)
    CHECK("the CSV downloads under the policy", len(lines) == 5 and lines[0].startswith('"node","host"'), str(lines[:2]))


def clocks_csv(browser):
    """The lines of the clocks' table as it is saved; none when it is not."""
    target = browser.saved / "clocks.csv"
    target.unlink(missing_ok=True)
    browser.js("document.querySelector('#clocks .csv').click()")
    deadline = time.time() + 5
    while not (target.exists() and target.stat().st_size) and time.time() < deadline:
        time.sleep(0.1)
    lines = target.read_text().splitlines() if target.exists() else []
    target.unlink(missing_ok=True)
    return lines


def check_overflow(browser, name):
    for width in (400, 1180, 2560):
        browser.resize(width)
        wide, room = browser.js("const {scrollWidth, clientWidth} = document.documentElement; return [scrollWidth, clientWidth]")
        CHECK("%s has no sideways overflow at %d px" % (name, width), wide <= room <= width, str((wide, room)))


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
    browser.print("sample_print")
    CHECK("print is light and opens details", browser.js("return window.seen") == "#ffffff0", str(browser.js("return window.seen")))
    CHECK("details close again after print", browser.js("return [...document.querySelectorAll('details[open]')].map((d) => d.parentNode.id).join()") == "clocks")
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


# Every visible text with less contrast than WCAG's AA asks for, as "ratio text". Grounds that are not opaque lie
# on those of their ancestors; what is disabled or hidden from all is exempt, as is what canvases paint.
CONTRAST = """
  const context = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = (colour) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
  const ground = (e) => {
    const own = rgba(e ? getComputedStyle(e).backgroundColor : getComputedStyle(document.documentElement).getPropertyValue('--ground'));
    return own[3] === 1 || !e ? own : over(own, ground(e.parentElement));
  };
  const luminance = (c) => c.slice(0, 3).map((p) => p / 255).map((p) => p <= 0.04045 ? p / 12.92 : ((p + 0.055) / 1.055) ** 2.4)
    .reduce((sum, p, i) => sum + p * [0.2126, 0.7152, 0.0722][i], 0);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), low = [];
  let seen = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const e = node.parentElement;
    if (!node.data.trim() || e.closest(':disabled, script, style') || !e.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
    ++seen;
    const style = getComputedStyle(e), size = parseFloat(style.fontSize), below = ground(e);
    const [a, b] = [luminance(over(rgba(style.color), below)), luminance(below)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const large = size >= 24 || size >= 18.66 && style.fontWeight >= 700;
    if (ratio < (large ? 3 : 4.5)) low.push(`${ratio.toFixed(2)} ${node.data.trim().slice(0, 40)}`);
  }
  return {seen, low: [...new Set(low)]};
"""


def check_texts(browser, name):
    browser.js(OPEN_ALL)
    browser.js("for (const one of document.querySelectorAll('details')) one.open = true")
    for scheme in ("light", "dark"):
        browser.scheme(scheme)
        found = browser.js(CONTRAST)
        CHECK("%s: every text has contrast AA in %s" % (name, scheme), found["seen"] > 20 and not found["low"], str(found))
    browser.scheme("light")


def check_contrast(browser):
    check_texts(browser, "sample")
    found = browser.js("document.querySelector('h2').style.color = 'rgb(128 128 128 / 0.6)'; " + CONTRAST)["low"]
    CHECK("a text of low contrast is found", len(found) == 1, str(found))
    browser.open("sample")


def tab_through(browser):
    """Presses Tab until it must have been everywhere; what it should reach, and what of that it did not."""
    wanted = browser.js("""
      const grouped = '[role=tablist] *, [role=toolbar] *, [role=menu] *, [role=listbox] *, [role=radiogroup] *, [role=grid] *';
      window.wanted = [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')].filter(
        (e) => !e.disabled && e.checkVisibility({visibilityProperty: true}) && !e.matches('[type=radio]:not(:checked)') && !(e.tabIndex < 0 && e.matches(grouped)));
      window.reached = new Set();
      window.unmarked = new Set();
      document.activeElement.blur();
      getSelection().removeAllRanges();
      document.addEventListener('focusin', ({target}) => {
        window.reached.add(target);
        const {outlineStyle, outlineWidth, boxShadow} = getComputedStyle(target);
        if ((outlineStyle === 'none' || outlineWidth === '0px') && boxShadow === 'none') window.unmarked.add(target.outerHTML.slice(0, 80));
      });
      return window.wanted.length""")
    for _ in range(0, 2 * wanted + 20, 10):
        browser.keys(*["Tab"] * 10)
    return wanted, browser.js("return window.wanted.filter((e) => !window.reached.has(e)).map((e) => e.outerHTML.slice(0, 80))")


def check_tab(browser):
    """Tab alone comes to everything that can be used, and shows where it is. In a group of which one has the place among the tabs, arrows reach the others."""
    wanted, left = tab_through(browser)
    for _ in range(3):  # Settings of Firefox may leave the focus on the window around the page.
        if len(left) < wanted - 1:
            break
        browser.open("sample")
        browser.js("window.focus(); document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex')")
        wanted, left = tab_through(browser)
    CHECK("Tab reaches everything", wanted > 20 and not left, str((wanted, left)))
    unmarked = browser.js("return [...window.unmarked]")
    CHECK("the focus is always seen", not unmarked, str(unmarked))
    mouse_only = browser.js("""
      const usable = 'a[href], button, input, select, summary, label, [tabindex]';
      return [...document.body.querySelectorAll('*')].filter((e) => getComputedStyle(e).cursor === 'pointer' && !e.closest(usable) && !e.querySelector(usable))
        .map((e) => e.outerHTML.slice(0, 80))""")
    CHECK("nothing is for the mouse alone", not mouse_only, str(mouse_only))


def check_hostile(browser):
    browser.open("hostile")
    browser.js(OPEN_ALL)
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
    browser.js(OPEN_ALL)
    CHECK("empty: no console errors", not (log := browser.log()), str(log))
    missing = browser.js("return [...document.querySelectorAll('main section')].map((s) => [s.id, s.querySelectorAll('.missing').length])")
    CHECK("empty: every section says what is missing", all(count for _, count in missing), str(missing))
    check_overflow(browser, "empty")
    browser.resize(1180)
    browser.screenshot("empty")
    check_texts(browser, "empty")


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
    CHECK(name + ": findings are shown", browser.js("return document.querySelectorAll('#summary .word').length") >= 4)
    browser.js(OPEN_ALL)
    marks = browser.js(MARKS, "canvas.chart")
    CHECK(name + ": every chart has marks", len(marks) >= 8 and all(count > 20 for count, _ in marks), str(marks))
    CHECK(name + ": nothing is missing", not (missing := browser.js("return [...document.querySelectorAll('.missing')].map((m) => m.textContent)")), str(missing))
    check_overflow(browser, name)
    browser.resize(1180)
    browser.screenshot("real")
    check_texts(browser, name)


def check_sample(browser):
    browser.resize(1180)
    browser.scheme("light")
    browser.open("sample")
    CHECK("no console errors", not (log := browser.log()), str(log))
    for check in (check_page, check_quantities, check_charts, check_contrast, check_tables, check_colours):
        guard(check, browser)
    CHECK("no console errors after use", not (log := browser.log()), str(log))
    check_overflow(browser, "sample")
    browser.open("sample")
    for check in (check_schemes, check_tab):
        guard(check, browser)
    CHECK("no console errors in both schemes", not (log := browser.log()), str(log))
    browser.resize(1180, ratio=2)
    CHECK("the canvas follows the pixel ratio", browser.js("const c = report.view.canvas; return c.width === 2 * c.clientWidth"))
    browser.resize(1180)


def guard(check, *arguments):
    """What stops one check stops neither the others nor the other browser."""
    try:
        check(*arguments)
    except Exception:
        CHECK(check.__name__, False, "ended early: " + traceback.format_exc())


def check_file(browser, name):
    browser.resize(1180)
    browser.scheme("light")
    browser.open("sample")
    importlib.import_module(name).check(browser, CHECK, OUT)


def check_all(browser):
    for check in (check_driver, check_sample, check_hostile, check_empty, check_big):
        guard(check, browser)
    for path in sys.argv[3:]:
        guard(check_real, browser, path)
    for name in FILES:
        guard(check_file, browser, name)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, str(HERE / "make_sample.py"), str(OUT)], check=True)
    for name in ("sample", "compared", "ranks256", "ranks2048", "big", "hostile", "empty"):
        subprocess.run([MAKE_PAGE, str(OUT / (name + ".json")), str(OUT / (name + ".html"))], check=True)
    results, failed, ran = [], False, False
    for kind in (Chromium, Firefox):
        if missing := kind.missing():
            results.append("skipped: %s, not installed: %s" % (kind.name, ", ".join(missing)))
            continue
        CHECK.begin(kind.name)
        begin = time.time()
        with contextlib.closing(kind(OUT)) as browser:
            check_all(browser)
        results.append("%s: %d passed, %d failed in %.0f s" % (kind.name, CHECK.passed, CHECK.failed, time.time() - begin))
        failed, ran = failed or CHECK.failed > 0, True
    print("\n".join(results))
    return 0 if ran and not failed else 1


if __name__ == "__main__":
    sys.exit(main())

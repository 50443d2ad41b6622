#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens pages of reprise-replay --report in a headless Chromium.

usage: page_in_browser.py REPLAY_TOOL [--pictures FOLDER]

It checks the layout at four widths, in light, dark and print; that both themes have colours of their own; that nothing is requested and nothing is written to the
console; that the drawings have the numbers of --format json; the contrast of text; and the use by keyboard.
REPRISE_CHROMIUM names the browser; otherwise chromium is searched in PATH. Without one, the script says so and skips.
"""
import argparse
import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

WIDTHS = (360, 400, 768, 1200)
HOSTILE = ["</script><script>document.title='x'</script>", "<img src=x onerror=console.error(2)>", "\" onfocus=\"alert(3)",
           "a\u202eb", "x" * 300]


def find_chromium():
    named = os.environ.get("REPRISE_CHROMIUM")
    if named:
        return shutil.which(named)
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """A tab of a headless Chromium, through the pipes of its debugging protocol."""

    def __init__(self, program, folder):
        to_read, self.writer = os.pipe()
        self.reader, to_write = os.pipe()

        def take_pipes():  # the browser reads from 3 and writes to 4
            read, write = os.dup(to_read), os.dup(to_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        arguments = [program, "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={folder}/profile",
                     "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage",
                     "--hide-scrollbars"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")  # Chromium has no sandbox for root
        self.process = subprocess.Popen(arguments, preexec_fn=take_pipes, close_fds=False,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.rest = b""
        self.number = 0
        self.session = None
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility", "DOM"):
            self.call(f"{domain}.enable")

    def message(self):
        while b"\0" not in self.rest:
            more = os.read(self.reader, 1 << 16)
            if not more:
                raise SystemExit("the browser has ended")
            self.rest += more
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        call = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            call["sessionId"] = self.session
        os.write(self.writer, json.dumps(call).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == self.number:
                if "error" in message:
                    raise SystemExit(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def run(self, script):
        result = self.call("Runtime.evaluate", expression=f"(() => {{{script}}})()", returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise SystemExit(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def key(self, key, code=None, text=None):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code or key,
                      windowsVirtualKeyCode={"Enter": 13, "Tab": 9, "ArrowRight": 39, "ArrowLeft": 37, " ": 32}[key],
                      **({"text": text} if text and kind == "keyDown" else {}))

    def open(self, url, width, theme="light", media="screen"):
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": theme}])
        self.call("Page.navigate", url=url)
        until = time.monotonic() + 60
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            if time.monotonic() > until:
                raise SystemExit(f"{url} did not load")
            self.events.append(self.message())

    def picture(self, path, whole):
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self):
        self.session = None
        self.call("Browser.close")
        self.process.wait(60)


def session(name, category, output, **more):
    return json.dumps({"id": name, "category": category, "turns": [{"prompt": [1, 2], "output": output, **more}]}) + "\n"


PLAIN = session("a", "x", [1, 2, 1, 2]) + session("b", "x", [1, 2, 1, 2])
RANKED = session("a", "x", [1, 2, 1], top_k=[[1], [2, 4], [1, 2]])
LONG = "".join(session(f"s{i}", "short", [5] + [7] * 16) for i in range(6)) + "".join(
    session(f"m{i}", "middle", [5] + [7] * 32) for i in range(3)) + session("l0", "long", [5] + [7] * 64) + session(
    "l1", "long", [5] + [7] * 65)

# A trace, options, and what the page says.
SENTENCES = [
    (PLAIN, [], ["Drafts are chains, without rankings of the target (top-k rows: the traces have none). An engine with two "
                 "functions, verify and commit, gets this.", "was told the cost curve",
                 "With only 2 sessions, the interval is likely too narrow.",
                 "Too few sessions for an advice: 2 with tokens"]),
    (PLAIN, ["--shape", "tree"], ["Drafts are trees, without", "one that verifies trees (Capabilities::max_leaves)."]),
    (RANKED, [], ["(top-k rows: --top-k off)"]),
    (RANKED, ["--top-k", "on", "--strategy", "hf"], ["(top-k rows: this strategy wants none)", "does not use costs"]),
    (RANKED, ["--top-k", "on"], ["Drafts are chains, with rankings", "rows of accepted tokens). This needs",
                                 ": one that shows its rankings (top_k(i))."]),
    (RANKED, ["--top-k", "on", "--shape", "tree"],
     ["one that verifies trees (Capabilities::max_leaves) and shows its rankings"]),
    (PLAIN, ["--cost-known", "assumed"], ["received no pass times"]),
    (LONG, ["--cost-known", "carried", "--memory", "past", "--part", "a"],
     ["Over all sessions of the first trace", "part a of the sessions only; past sessions are remembered"]),
    (LONG, ["--strategy", "none"], ["0 to 15|1.000||1.000|176|all 11|", "16 to 31|1.000||1.000|", "|5 of 11: middle 3, long 2|",
                                    "|2 of 11: l0, l1|", "|1 of 11: l1|", "No drafted token was tested.",
                                    "A change must gain 0.5%, and 0.05% more for each MiB of memory"]),
    (session("a", "", [2]), [], ["No interval: it needs at least two sessions", "(empty)|1.000|", "1 session, 1 turn, 0 output",
                                 "No session has output tokens from passes."]),
    (PLAIN, ["--control", "best:1", "--control", "best:2", "--strategy", "hf"], ["hf best:1|", "hf best:2|"]),
]

failures = []


def check(truth, message):
    if not truth:
        failures.append(message)
        print(f"FAILED: {message}")


def check_quiet(browser, url, where):
    for event in browser.events:
        method, parameters = event.get("method"), event.get("params", {})
        check(method not in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"),
              f"{where}: console: {json.dumps(parameters)[:300]}")
        if method == "Network.requestWillBeSent":
            asked = parameters["request"]["url"]
            check(asked == url or asked.startswith("data:"), f"{where}: requests {asked}")


# Elements that are cut off or stick out, unless they are inside a frame that scrolls.
LAYOUT = """
const wide = [], frame = (e) => e.closest('.frame, .tokens, .tree, .unseen, .skip');
for (const e of document.querySelectorAll('body *')) {
  const box = e.getBoundingClientRect();
  if (box.width > 0 && !frame(e) && (box.right > innerWidth + 1 || box.left < -1)) wide.push(e.tagName + '.' + e.className);
}
return {page: document.documentElement.scrollWidth, window: innerWidth, wide: wide.slice(0, 5),
        height: document.documentElement.scrollHeight};
"""

# The colours of the paper, of the text and of a copied word, and the place of the part of a session.
COLOURS = """
const of = (e) => getComputedStyle(e), mark = document.querySelector('#excerpt mark');
return {paper: of(document.body).backgroundColor, ink: of(document.body).color,
        mark: mark && of(mark).backgroundColor, top: document.getElementById('excerpt')?.getBoundingClientRect().top};
"""

# The same of a picture, with the texts that leave it, and the smallest text, where the picture is 400 pixels wide.
PICTURE = """
const of = (name) => getComputedStyle(document.querySelector(name)).fill, width = document.documentElement.viewBox.baseVal.width;
const texts = [...document.querySelectorAll('text')], scale = 400 / width;
return {paper: of('.paper'), ink: of('.text'), mark: of('.copied'),
        out: texts.filter((e) => e.getBBox().x < 0 || e.getBBox().x + e.getBBox().width > width).map((e) => e.textContent),
        least: Math.min(...texts.map((e) => scale * parseFloat(getComputedStyle(e).fontSize)))};
"""

# Texts of drawings that their drawing cuts off, and on a phone, tables that scroll sideways.
CUT_OFF = """
for (const part of document.querySelectorAll('details')) part.open = true;
const cut = [];
for (const text of document.querySelectorAll('svg.chart text')) {
  const box = text.getBoundingClientRect(), svg = text.closest('svg').getBoundingClientRect();
  if (box.left < svg.left - .5 || box.right > svg.right + .5 || box.top < svg.top - .5 || box.bottom > svg.bottom + .5)
    cut.push(text.textContent);
}
if (innerWidth < 400)
  for (const frame of document.querySelectorAll('.frame'))
    if (frame.scrollWidth > frame.clientWidth) cut.push(frame.getAttribute('aria-label'));
// Texts of one drawing that cover each other.
for (const svg of document.querySelectorAll('svg.chart')) {
  const boxes = [...svg.querySelectorAll('text')].map((e) => [e.textContent, e.getBoundingClientRect()]);
  boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
    const wide = Math.min(p.right, q.right) - Math.max(p.left, q.left), high = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
    if (wide > 2 && high > 4) cut.push(a + ' covers ' + b); }));
}
return cut;
"""

# The lowest contrast of text to its background (WCAG 2). Texts of drawings are filled.
CONTRAST = """
const light = (c) => { const f = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  return 0.2126 * f(c[0]) + 0.7152 * f(c[1]) + 0.0722 * f(c[2]); };
const parse = (text) => { const v = text.match(/[\\d.]+/g).map(Number); return v.length > 3 && v[3] === 0 ? null : v; };
const below = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c) return c; }
  return [255, 255, 255]; };
let least = [99, ''];
for (const e of document.querySelectorAll('body *')) {
  if (e.closest('.unseen, .skip, script, noscript, title') || !e.checkVisibility()) continue;
  if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
  const style = getComputedStyle(e), ink = parse(e instanceof SVGElement ? style.fill : style.color);
  if (!ink) continue;
  const a = light(ink), b = light(below(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < least[0]) least = [ratio, e.tagName + '.' + (e.getAttribute('class') || '') + ' ' + e.textContent.slice(0, 30)];
}
return least;
"""


def contrast(one, other):
    def light(colour):
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue
    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def check_themes(browser, url, script, name):
    """Both themes have colours of their own, in which text can be read and copied words are seen."""
    colours = {}
    for theme in ("light", "dark"):
        browser.open(url, 400, theme)
        colours[theme] = now = browser.run(script)
        check(now["mark"] not in (None, now["paper"], "rgba(0, 0, 0, 0)"), f"{name}, {theme}: copied words are not seen: {now}")
        for below in ("paper", "mark"):
            check(contrast(now["ink"], now[below] or now["paper"]) >= 4.5, f"{name}, {theme}: text on {below}: {now}")
    for part in ("paper", "ink", "mark"):
        check(colours["light"][part] != colours["dark"][part], f"{name}: {part} is the same in both themes: {colours}")
    check(contrast(colours["light"]["paper"], "rgb(255, 255, 255)") < 1.2, f"{name}: light is not light: {colours}")
    check(contrast(colours["dark"]["paper"], "rgb(0, 0, 0)") < 1.5, f"{name}: dark is not dark: {colours}")
    return colours


def check_excerpt(browser, url):
    """A part of a session is in the first view, as words, with some of them marked as copied."""
    browser.open(url, 1200)
    check(browser.run(COLOURS)["top"] < 600, "the part of a session is not in the first view")
    text, marked, words = browser.run("""const e = document.getElementById('excerpt');
        return [e.textContent, [...e.querySelectorAll('mark')].map((m) => m.textContent).join(''), Object.keys(hasText()).length];
        function hasText() { return JSON.parse(document.getElementById('data').textContent).words; }""")
    check(words > 500, f"the page knows {words} words")
    check(len(text) > 150 and len(text.split()) > 15 and sum(c.isalpha() for c in text) > len(text) / 2,
          f"the part of a session has no words: {text}")
    check(0.1 < len(marked) / len(text) < 0.95, f"{len(marked)} of {len(text)} characters are marked")
    caption = browser.run("return document.querySelector('#excerpt + figcaption').textContent")
    check(re.search(r"accepted: \d+ of these \d+ tokens. Session \S+ \(\S+\), \d", caption), f"the caption is: {caption}")


def check_layout(browser, url, pictures, name):
    for width in WIDTHS:
        for theme in ("light", "dark"):
            where = f"{name}, {width} px, {theme}"
            browser.open(url, width, theme)
            layout = browser.run(LAYOUT)
            check(layout["page"] <= layout["window"], f"{where}: the page is {layout['page']} px wide")
            check(not layout["wide"], f"{where}: sticks out: {layout['wide']}")
            cut = browser.run(CUT_OFF)
            check(not cut, f"{where}: cut off: {cut}")
            contrast = browser.run(CONTRAST)
            check(contrast[0] >= 4.5, f"{where}: contrast {contrast}")
            if pictures:
                browser.picture(pictures / f"{name}-{width}-{theme}.png", whole=True)
            check_quiet(browser, url, where)
    browser.open(url, 700, media="print")
    layout = browser.run(LAYOUT)
    check(not layout["wide"], f"{name}, print: sticks out: {layout['wide']}")
    named = browser.run("const e = document.querySelector('.printed'); return e && e.checkVisibility() ? e.textContent : ''")
    check(named.startswith("Session "), f"{name}, print: the shown session has no name")
    check(len(browser.call("Page.printToPDF")["data"]) > 10000, f"{name}: the print is empty")
    check_quiet(browser, url, f"{name}, print")


def check_drawing(browser, url, results):
    browser.open(url, 1280)
    points = browser.run("""return [...document.querySelectorAll('#curves [data-s]')].map((e) => {
        const at = e.getAttribute('transform').match(/[-\\d.]+/g).map(Number);
        return {line: e.parentElement.dataset.line, s: Number(e.dataset.s), speedup: Number(e.dataset.speedup), x: at[0], y: at[1]}; })""")
    told = {(result["strategy"], float(result["cost"].split(":")[1])): result["speedup"] for result in results}
    drawn = {(point["line"], point["s"]): point["speedup"] for point in points}
    check(drawn == told, "the curves differ from the results")
    low, high = min(points, key=lambda p: p["speedup"]), max(points, key=lambda p: p["speedup"])
    slope = (high["y"] - low["y"]) / (high["speedup"] - low["speedup"])
    for point in points:
        check(abs(point["y"] - low["y"] - slope * (point["speedup"] - low["speedup"])) < 0.01, f"a point is off: {point}")
    check(slope < 0, "a larger speedup is lower")
    xs = sorted({(point["s"], point["x"]) for point in points})
    check(all(a[1] < b[1] for a, b in zip(xs, xs[1:])), "s does not grow to the right")
    main = results[2]
    circles = browser.run("""return [...document.querySelectorAll('#reliability circle')].map((e) =>
        [Number(e.getAttribute('cx')), Number(e.getAttribute('cy'))])""")
    bins = [item for item in main["reliability"] if item["tests"]]
    check(len(circles) == len(bins), f"{len(circles)} points for {len(bins)} bins")
    for (x, y), item in zip(circles, bins):
        check(abs((x - 46) / 290 - item["claimed"]) < 0.001 and abs((310 - y) / 290 - item["observed"]) < 0.001,
              f"a point of the reliability diagram is off: {x}, {y}, {item}")
    bars = browser.run("""return [...document.querySelectorAll('#histogram rect')].map((e) =>
        [parseInt(e.textContent.replaceAll(',', '')), Number(e.getAttribute('height'))])""")
    labels = browser.run("""return [...document.querySelectorAll('#histogram .count')].map((e) =>
        [parseInt(e.textContent.replaceAll(',', '')), Number(e.getAttribute('y'))])""")
    check(sum(count for count, _ in bars) == main["sessions"], "the histogram has not all sessions")
    check(labels[0][0] == 0 and labels[-1][0] >= max(count for count, _ in bars), f"the axis of counts is {labels}")
    pixels = (labels[0][1] - labels[-1][1]) / labels[-1][0]
    for count, height in bars:
        check(abs(height - max(2, count * pixels)) <= 0.2, f"a bar of {count} sessions is {height} high")
    shown = browser.run("return document.getElementById('speedup').textContent")
    check(shown.startswith(f"{main['speedup']:.3f}"), f"the answer is {shown}, the result {main['speedup']}")


def check_heads(browser, tool, folder, pictures):
    """Beside a draft head, the page draws each way over the cost of the head."""
    report = folder / "heads.html"
    trace = pathlib.Path(__file__).parent / "made_up_heads.jsonl"
    command = [tool, "--format", "json", "--cost", "linear:0.02", "--head-cost", "0.1", "--head-cost", "0.3",
               "--shape", "tree", "--report", str(report), str(trace)]
    heads = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["heads"]
    check_layout(browser, report.as_uri(), pictures, "heads")
    browser.open(report.as_uri(), 1280)
    points = browser.run("""return [...document.querySelectorAll('#heads [data-s]')].map((e) =>
        [e.parentElement.dataset.line, Number(e.dataset.s), Number(e.dataset.speedup)])""")
    told = [[head["way"], head["head_cost"], head["speedup"]] for head in heads]
    check(sorted(points) == sorted(told), "the ways differ from the results")


def check_sums(browser, tool, folder, traces):
    """Of several traces, the page shows sums: tokens divided by costs, and counts."""
    report = folder / "several.html"
    command = [tool, "--format", "json", "--cost", "linear:0.1", "--report", str(report), *traces[:3]]
    results = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["results"]
    results = [result for result in results if result["strategy"] == results[0]["strategy"]]  # without its rivals
    browser.open(report.as_uri(), 1280)
    total = {name: sum(result[name] for result in results) for name in ("sessions", "turns", "tokens", "passes")}
    speedup = total["tokens"] / sum(result["tokens"] / result["speedup"] for result in results)
    time = sum(result["tokens"] * (result["ns_per_token"] + result["control_ns_per_token"]) for result in results)
    page = browser.run("return document.querySelector('header').textContent + document.querySelector('main').textContent")
    for wanted in ("3 traces", f"{total['sessions']:,} sessions, {total['turns']:,} turns, {total['tokens']:,} output tokens",
                   f"{speedup:.3f}× times the speed of plain decoding", f"(MAT){total['tokens'] / total['passes']:.3f}",
                   f"not charged{round(time / total['tokens']):,} ns", f"All {total['passes']:,} passes proposed"):
        check(wanted in page, f"several traces: the page does not say: {wanted}")
    tables = browser.run("""return [...document.querySelectorAll('details table')].map((e) => [e.caption.textContent,
        e.querySelector('td').textContent])""")
    for result in results:
        check([result["trace"], f"{result['speedup']:.3f}"] in tables, f"{result['trace']} is shown otherwise: {tables}")


def check_keyboard(browser, url):
    browser.open(url, 768)
    slider = "const all = () => [...document.querySelectorAll('.lines .value')].map((e) => e.textContent);"
    before = browser.run(slider + "document.getElementById('s-slider').focus(); return all()")
    browser.key("ArrowRight")
    after = browser.run(slider + "return all()")
    check(before != after, "the arrow keys do not move the slider")
    browser.run("document.querySelector('.lines input').focus()")
    browser.key(" ", "Space", " ")
    check(browser.run("return getComputedStyle(document.querySelector('.curve')).display") == "none",
          "a curve is not hidden by its box")
    browser.run("document.querySelector('.pass').focus()")
    browser.key("ArrowRight")
    browser.key("Enter", text="\r")
    pressed = browser.run("return [...document.querySelectorAll('.pass')].findIndex((e) => e.getAttribute('aria-pressed') === 'true')")
    check(pressed == 1, f"Enter on the second pass chose {pressed}")
    check("Pass 2" in browser.run("return document.querySelector('.tree').textContent"), "the draft is not shown")
    check(browser.run("return document.querySelectorAll('.pass[tabindex=\"0\"]').length") == 1, "several passes are tab stops")
    # The whole page is reachable with Tab, and the focus is always seen.
    browser.run("document.activeElement.blur(); window.scrollTo(0, 0)")
    seen = set()
    for _ in range(80):
        browser.key("Tab")
        name = browser.run("const e = document.activeElement; return e.tagName + (e.id || e.className || e.textContent.slice(0, 20))")
        outline = browser.run("return document.activeElement === document.body ? 'body' : getComputedStyle(document.activeElement).outlineStyle")
        check(outline != "none", f"the focus of {name} is not seen")
        seen.add(name)
    for wanted in ("INPUTs-slider", "SELECTsession", "BUTTONpass"):
        check(wanted in seen, f"Tab does not reach {wanted}")
    check_quiet(browser, url, "keyboard")


def check_names(browser, url):
    browser.open(url, 1280)
    for node in browser.call("Accessibility.getFullAXTree")["nodes"]:
        role = node.get("role", {}).get("value")
        if role in ("button", "link", "slider", "combobox", "checkbox", "image", "table", "region", "navigation"):
            check(node.get("ignored") or node.get("name", {}).get("value"), f"a {role} has no name")
    levels = browser.run("return [...document.querySelectorAll('h1, h2, h3')].map((e) => Number(e.tagName[1]))")
    check(levels[0] == 1 and levels.count(1) == 1, "there is not one main heading")
    check(all(b <= a + 1 for a, b in zip(levels, levels[1:])), "a level of headings is left out")
    check(browser.run("return [...document.querySelectorAll('th')].every((e) => e.hasAttribute('scope'))"), "a th has no scope")
    check(browser.run("return [...document.querySelectorAll('table')].every((e) => e.caption)"), "a table has no caption")
    check(browser.run("const ids = [...document.querySelectorAll('[id]')].map((e) => e.id); return new Set(ids).size === ids.length"),
          "an id is used twice")


def check_stacked_tables(browser, url):
    """On a phone, tables are laid out as blocks; readers still need their rows and cells."""
    browser.open(url, 360)
    wanted = browser.run("""for (const part of document.querySelectorAll('details')) part.open = true;
        const count = (name) => document.querySelectorAll(name).length;
        return {table: count('table'), row: count('tr'), rowheader: count('tbody th'), cell: count('td')};""")
    roles = [node.get("role", {}).get("value") for node in browser.call("Accessibility.getFullAXTree")["nodes"] if not node.get("ignored")]
    for role, count in wanted.items():
        check(roles.count(role) == count, f"on a phone, {roles.count(role)} of {count} elements have the role {role}")


def check_whiskers(browser, url):
    browser.open(url, 1280)
    caps = browser.run("""return [...document.querySelectorAll('.whisker')].map((e) => [
        getComputedStyle(e).width, getComputedStyle(e, '::before').left, getComputedStyle(e, '::after').left])""")
    check(len(caps) > 0, "there are no intervals")
    for width, first, last in caps:
        width, first, last = (float(text.removesuffix("px")) for text in (width, first, last))
        check(abs(first) <= 2 and abs(last + 2 - width) <= 2, f"the caps of an interval {width} wide are at {first} and {last}")


def check_sessions(browser, url, traces):
    browser.open(url, 1280)
    words = json.loads((pathlib.Path(traces[0]).parent / "vocabulary.json").read_text())
    check(browser.run("return JSON.parse(document.getElementById('data').textContent).words['30']") == ".", "30 is no full stop")
    check(words.get(".") == 30, "the vocabulary has another full stop")
    recorded = {}
    for trace in traces:
        for line in pathlib.Path(trace).read_text().splitlines():
            session = json.loads(line)
            recorded[session["id"]] = [token for turn in session["turns"] for token in turn["output"]]
    shown = browser.run("""const choice = document.getElementById('session'), all = [];
        const data = JSON.parse(document.getElementById('data').textContent);
        for (let i = 0; i < choice.options.length; ++i) {
          choice.value = i;
          choice.dispatchEvent(new Event('change'));
          all.push([data.sessions[data.shown[i].session][0], data.shown[i].complete, [...document.querySelectorAll('.tokens .tok')].map((e) => e.textContent.replaceAll('\\n', '⏎'))]);
        }
        return [all, data.words];""")
    shown, texts = shown
    check(0 < len(shown) <= 24, f"{len(shown)} sessions are shown")
    for name, complete, tokens in shown:
        whole = recorded[name]
        told = [texts[str(token)].replace("\n", "⏎") for token in (whole if complete else whole[:len(tokens)])]
        check(tokens == told, f"session {name} shows other tokens")


def check_sentences(browser, tool, folder):
    trace, report = folder / "sentences.jsonl", folder / "sentences.html"
    for text, options, sentences in SENTENCES:
        trace.write_text(text)
        if "--cost" not in options:
            options = options + ["--cost", "linear:0.1"]
        subprocess.run([tool, *options, "--report", str(report), str(trace)], check=True, capture_output=True)
        browser.open(report.as_uri(), 1280)
        page = browser.run("""for (const cell of document.querySelectorAll('td, tbody th')) cell.append('|');
            document.getElementById('data').remove();
            return document.body.textContent.replaceAll('\\u00a0', ' ').split('"use strict"')[0];""")
        for sentence in sentences:
            check(sentence in page, f"{' '.join(options)}: the page does not say: {sentence}")
        for wrong in ("NaN", "Infinity", "undefined", "[object"):
            check(wrong not in page, f"{' '.join(options)}: the page says {wrong}")
        check_quiet(browser, report.as_uri(), " ".join(options))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tool", help="the program reprise-replay")
    parser.add_argument("--pictures", type=pathlib.Path, help="keep pictures of the page in this folder")
    arguments = parser.parse_args()
    chromium = find_chromium()
    if not chromium:
        print("skipped: found no Chromium; install it, or name one in REPRISE_CHROMIUM")
        return 0
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
    root = pathlib.Path(__file__).resolve().parents[2]
    traces = sorted(str(path) for path in (root / "bench/traces").glob("*.jsonl"))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        folder = pathlib.Path(folder)
        report, hostile = folder / "report.html", folder / "hostile.html"
        command = [arguments.tool, "--format", "json", "--stream", "--strategy", "ngram", "--strategy", "hf", "--strategy", "none",
                   "--report", str(report)]
        results = json.loads(subprocess.run(command + traces, check=True, capture_output=True, text=True).stdout)["results"]
        bad = folder / "<b>t.jsonl"
        bad.write_text("".join(json.dumps({"id": name, "category": name, "turns": [
            {"prompt": [0, 1, 2, 3, 4] * 3, "output": [0, 1, 2, 3, 4] * 4}]}) + "\n" for name in HOSTILE))
        words = folder / "words.json"
        words.write_text(json.dumps(HOSTILE))
        subprocess.run([arguments.tool, "--cost", "linear:0.1", "--cost-known", "carried", "--vocabulary", str(words),
                        "--report", str(hostile), str(bad)], check=True, capture_output=True)
        browser = Browser(chromium, folder)
        try:
            url = report.as_uri()
            check_layout(browser, url, arguments.pictures, "report")
            check_themes(browser, url, COLOURS, "report")
            check_excerpt(browser, url)
            picture = (root / "docs/images/copied.svg").as_uri()
            for theme, seen in check_themes(browser, picture, PICTURE, "copied.svg").items():
                check(not seen["out"] and seen["least"] >= 12, f"copied.svg, {theme}: {seen}")
                if arguments.pictures:
                    browser.open(picture, 800, theme)
                    browser.picture(arguments.pictures / f"copied-{theme}.png", whole=True)
            check_drawing(browser, url, results)
            check_keyboard(browser, url)
            check_names(browser, url)
            check_stacked_tables(browser, url)
            check_whiskers(browser, url)
            check_sessions(browser, url, traces)
            check_layout(browser, hostile.as_uri(), arguments.pictures, "hostile")
            check_names(browser, hostile.as_uri())
            check(browser.run("return document.title") == f"Replay of {bad}", "a name has changed the title")
            check_sentences(browser, arguments.tool, folder)
            check_sums(browser, arguments.tool, folder, traces)
            check_heads(browser, arguments.tool, folder, arguments.pictures)
        finally:
            browser.close()
    print(f"{len(failures)} checks failed" if failures else "the pages are as they should be")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

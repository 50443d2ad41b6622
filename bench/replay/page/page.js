"use strict";
// Draws the results of a replay. The data are what reprise-replay --format json writes, and what write_page() adds.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const NS = "http://www.w3.org/2000/svg";
  const drawn = ["svg", "line", "path", "text", "circle", "rect", "g", "title"];

  /** Makes an element. Names from a trace become text nodes only, never markup. */
  function make(name, attributes, ...children) {
    const element = drawn.includes(name) ? document.createElementNS(NS, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }
  const paragraph = (...children) => make("p", {}, ...children);
  const note = (...children) => make("p", { class: "note" }, ...children);
  const heading = (text) => make("h3", {}, text);
  const strong = (...children) => make("strong", {}, ...children);
  const code = (text) => make("code", {}, printable(text));
  const folded = (summary, ...children) => make("details", {}, make("summary", {}, summary), ...children);

  const grouped = (number) => Math.round(number).toLocaleString("en-US");
  const counted = (number, what) => grouped(number) + " " + what + (number === 1 ? "" : "s");
  const share = (part, whole) => (whole === 0 ? 0 : (100 * part) / whole).toFixed(1) + "%";
  const signedPercent = (error) => (error < 0 ? "" : "+") + (100 * error).toFixed(1) + "%";
  const intervalText = (interval) => (interval ? interval[0].toFixed(2) + " to " + interval[1].toFixed(2) : "–");
  const sum = (items, value) => items.reduce((total, item) => total + value(item), 0);
  const most = (items, value, least) => items.reduce((highest, item) => Math.max(highest, value(item)), least);
  /** The parts of a list, with commas between them. */
  const listed = (parts) => parts.flatMap((part, i) => (i === 0 ? part : [", "].concat(part)));

  /** A text whose control characters can be seen. */
  function printable(text) {
    return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, (c) => "\\x" + c.charCodeAt(0).toString(16).padStart(2, "0"));
  }
  /** A name from a trace, isolated so that it cannot reverse the text around it, and cut so that it fits the page. */
  function nameOf(text) {
    const shown = [...printable(text)];
    return shown.length === 0 ? "(empty)" : make("bdi", {}, shown.slice(0, 80).join("") + (shown.length > 80 ? "..." : ""));
  }

  // The results of all sessions of each trace, for each strategy and control under each curve.

  const results = data.results.filter((result) => result.category === "all" && result.strategy !== "ceiling");
  const perTrace = results.length / data.traces.length;
  const lines = [];
  for (let first = 0; first < perTrace; first += data.curves.length) {
    const { strategy, control } = results[first];
    /** The results of the line under a curve, by trace. */
    const under = (curve) => data.traces.map((_, trace) => results[trace * perTrace + first + curve]);
    lines.push({ strategy, control, under });
  }
  for (const line of lines) {
    const alone = lines.every((other) => other === line || other.strategy !== line.strategy);
    line.name = line.strategy + (alone && !line.control.startsWith("best") ? "" : " " + line.control);
  }

  function speedupOf(some) {
    if (some.length === 1) return some[0].speedup;
    const tokens = sum(some, (result) => result.tokens);
    return tokens === 0 ? 1 : tokens / sum(some, (result) => (result.tokens === 0 ? 0 : result.tokens / result.speedup));
  }
  const curve = data.curves[data.main];
  const main = lines[0].under(data.main);
  const speedup = speedupOf(main);
  const settings = main[0];
  /** The sum of a member of the main results. */
  const total = (member) => sum(main, (result) => result[member]);
  const sessions = data.sessions.map(([id, category, tokens, cost, worstLoss]) => {
    return { id, category, tokens, worstLoss, speedup: tokens === 0 ? 1 : tokens / cost };
  });
  const withTokens = sessions.filter((session) => session.tokens !== 0);

  // Tables and bars.

  /**
   * A table. A cell is a text, an element, or a list of both; the first cell of a row heads it. `sentences` is the
   * column whose lines may be broken.
   */
  function table(caption, headings, rows, sentences = -1) {
    // On a phone, the cells of a wide row stand below each other, each with its heading. Browsers drop the roles of a
    // table whose parts are laid out as blocks, so the roles are written out.
    const stacks = sentences >= 0 || headings.length > 4;
    const part = (name, role, attributes, cell) =>
      make(name, stacks ? { ...attributes, role } : attributes, ...[].concat(cell));
    const heads = headings.map((cell, i) =>
      part("th", "columnheader", i === sentences ? { scope: "col", class: "text" } : { scope: "col" }, cell));
    const cell = (content, i) => {
      if (i === 0) return part("th", "rowheader", { scope: "row" }, content);
      if (i === sentences) return part("td", "cell", { class: "text" }, content);
      const labelled = stacks && heads[i].textContent !== "";
      return part("td", "cell", labelled ? { "data-label": heads[i].textContent + ": " } : {}, content);
    };
    const body = rows.map((row) => part("tr", "row", {}, row.map(cell)));
    const whole = make("table", stacks ? { class: "stacks", role: "table", "aria-label": caption } : {},
      make("caption", {}, caption), part("thead", "rowgroup", {}, part("tr", "row", {}, heads)),
      part("tbody", "rowgroup", {}, body));
    // The frame scrolls on narrow screens, so it must be reachable by keyboard.
    return make("div", { class: "frame", role: "region", tabindex: 0, "aria-label": caption }, whole);
  }

  /** Returns a function that draws a speedup as a bar, with the interval as a whisker and a mark at plain decoding. */
  function bars(highest) {
    const widest = Math.max(1.1, highest); // the mark of plain decoding is inside the bar
    const percent = (value) => (100 * Math.min(Math.max(value / widest, 0), 1)).toFixed(2) + "%";
    const at = (name, style) => make("span", { class: name, style });
    return (value, interval) => {
      const track = make("span", { class: "track", "aria-hidden": "true" });
      track.append(at("bar", "width:" + percent(value)), at("one", "left:" + percent(1)));
      if (interval)
        track.append(at("whisker", "left:" + percent(interval[0]) + ";width:" + percent(interval[1] - interval[0])));
      return track;
    };
  }

  /** A bar of several parts, [name, class, value], with a legend in words. */
  function stackedBar(label, parts) {
    const whole = sum(parts, ([, , value]) => value);
    const bar = make("div", { class: "stack", "aria-hidden": "true" });
    const legend = make("ul", { class: "legend", "aria-label": label });
    for (const [name, style, value] of parts) {
      if (value !== 0) bar.append(make("span", { class: style, style: "width:" + ((100 * value) / whole).toFixed(3) + "%" }));
      legend.append(make("li", {}, make("span", { class: "key " + style, "aria-hidden": "true" }),
        name + ": " + grouped(value) + " (" + share(value, whole) + ")"));
    }
    return [bar, legend];
  }

  const line = (style, x1, y1, x2, y2) => make("line", { class: style, x1, y1, x2, y2 });
  const label = (x, y, anchor, text) => make("text", { x, y, "text-anchor": anchor }, text);

  // What would I gain?

  /** The shape of the drafts, whether rankings were used, and what an engine needs for both. */
  function shape() {
    const trees = settings.shape === "tree";
    const shown = main.filter((result) => result.top_k !== undefined);
    const rows = sum(shown, (result) => result.top_k_rows);
    const rankings = rows > 0 ? [counted(rows, "row") + " of accepted tokens"]
      : shown.length === 0 ? ["the traces have none"]
      : settings.top_k === "off" ? [code("--top-k off")] : ["this strategy wants none"];
    const needs = [];
    if (trees) needs.push("verifies trees (", code("Capabilities::max_leaves"), ")");
    if (trees && rows > 0) needs.push(" and ");
    if (rows > 0) needs.push("shows its rankings (", code("top_k(i)"), ")");
    return make("p", { id: "shape" }, "Drafts are ", strong(trees ? "trees" : "chains"), ", ",
      strong(rows > 0 ? "with" : "without"), " rankings of the target (top-k rows: ", ...rankings, "). ",
      ...(needs.length > 0 ? ["This needs an engine with more than two functions: one that ", ...needs, "."]
        : ["An engine with two functions, ", code("verify"), " and ", code("commit"), ", gets this."]));
  }

  /** The tokens of a turn, by pass: the first one from the prefill, then [token, copied] of each pass. */
  function passesOf(turn) {
    const passes = [turn.output.slice(0, 1).map((token) => [token, false])];
    let at = 1;
    for (const pass of turn.passes) {
      const copied = acceptedPath(pass).length;
      passes.push(turn.output.slice(at, at + pass[0]).map((token, i) => [token, i < copied]));
      at += pass[0];
    }
    return passes;
  }

  /**
   * A few lines of a session with the copied tokens marked. The session is the shown one whose speedup is closest to
   * that of all, and the part is the one whose share of copied tokens is closest to that of all.
   */
  function excerpt() {
    const distance = (shown) => Math.abs(Math.log(sessions[shown.session].speedup / speedup));
    const [shown] = data.shown.filter((one) => one.turns.some((turn) => turn.passes.length > 0))
      .sort((a, b) => distance(a) - distance(b));
    if (!shown) return [];
    const usual = total("accepted") / total("tokens");
    const enough = 400; // characters, where a line break counts as 40
    const shownText = (token) => (hasWords ? word(token) : token + " ");
    let best;
    for (const turn of shown.turns) {
      const passes = passesOf(turn);
      for (let first = 0; first < passes.length; ++first) {
        const part = [];
        let size = 0;
        for (let i = first; i < passes.length && size < enough; ++i) {
          part.push(...passes[i]);
          size += sum(passes[i], ([token]) => shownText(token).replace(/\n+/g, " ".repeat(40)).length);
        }
        const copied = part.filter(([, drafted]) => drafted).length;
        // A whole line is easier to read than a part of one.
        const begins = first === 0 || shownText(passes[first - 1].at(-1)[0]).endsWith("\n");
        const missing = Math.max(0, 1 - size / enough) + Math.abs(copied / part.length - usual) + (begins ? 0 : 0.1);
        if (!best || missing < best.missing) best = { part, copied, missing };
      }
    }
    const text = make("p", { class: "excerpt", id: "excerpt" });
    let run = "";
    best.part.forEach(([token, copied], i) => {
      run += shownText(token);
      if (i + 1 < best.part.length && best.part[i + 1][1] === copied) return;
      // Blanks before a copy are left unmarked, and empty lines are left out.
      if (i + 1 === best.part.length) run = run.trimEnd();
      const [, blanks, rest] = /^(\s*)([^]*)$/.exec(run.replace(/\n[\n ]*\n/g, "\n"));
      text.append(text.textContent === "" ? "" : blanks, copied && rest !== "" ? make("mark", {}, rest) : rest);
      run = "";
    });
    const { id, category, speedup: own } = sessions[shown.session];
    return [make("figure", {}, text, make("figcaption", {}, make("mark", {}, "Copied"), " from earlier text and accepted: " +
      best.copied + " of these " + best.part.length + " tokens. Session ", nameOf(id), " (", nameOf(category), "), " +
      own.toFixed(3) + "×, the closest to the speedup of all among those below."))];
  }

  function answer() {
    const times = [make("span", { "aria-hidden": "true" }, "×"), make("span", { class: "unseen" }, " times")];
    const loses = speedup < 1 ? [": ", make("em", {}, "drafting loses")] : [];
    const interval = data.intervals[0][0];
    const few = " With only " + counted(sessions.length, "session") + ", the interval is likely too narrow.";
    const adds = ": each drafted token adds " + Number((100 * curve.replace("linear:", "")).toPrecision(12)) +
      "% to the cost of a pass";
    return [
      make("p", { class: "answer" }, make("strong", { id: "speedup" }, speedup.toFixed(3), ...times),
        " the speed of plain decoding", ...loses),
      make("p", { class: "interval" }, ...(interval
        ? ["95% interval over sessions: ", strong(intervalText(interval)), " (bootstrap)." + (sessions.length < 10 ? few : "")]
        : ["No interval: it needs at least two sessions."])),
      ...excerpt(),
      paragraph("Strategy ", code(lines[0].name), ", cost ", code(curve), curve.startsWith("linear:") ? adds : "", "."),
      shape()];
  }

  function facts() {
    const list = make("dl", { class: "facts" });
    const fact = (name, ...value) => list.append(make("div", {}, make("dt", {}, name), make("dd", {}, ...value)));
    const worst = withTokens.reduce((a, b) => (a && a.speedup <= b.speedup ? a : b), undefined);
    if (worst) fact("Worst session", strong(worst.speedup.toFixed(3) + "×"), " ", nameOf(worst.id));
    const slower = withTokens.filter((session) => session.speedup < 1).length;
    fact("Sessions slower than plain decoding", strong(grouped(slower)), " of " + grouped(withTokens.length));
    const passes = total("passes"), tokens = total("tokens");
    fact("Tokens per pass (MAT)", strong((passes === 0 ? 0 : tokens / passes).toFixed(3)));
    const time = sum(main, (result) => result.tokens * (result.ns_per_token + result.control_ns_per_token));
    fact("Drafting and control, not charged", strong(grouped(tokens === 0 ? 0 : time / tokens) + " ns"),
      (settings.clock === "wall" ? " of wall time" : " of CPU time") + " per token");
    return list;
  }

  /** The sessions by their speedup; empty for fewer than three. */
  function histogram() {
    const bins = 24;
    const speedups = withTokens.map((session) => session.speedup).sort((a, b) => a - b);
    if (speedups.length < 3) return [];
    const low = Math.min(speedups[0], 1);
    const high = Math.max(speedups[speedups.length - 1], low + 0.1);
    const counts = new Array(bins).fill(0);
    for (const value of speedups) ++counts[Math.min(Math.floor(((value - low) / (high - low)) * bins), bins - 1)];
    // The distance of the labels: 1, 2 or 5 times a power of ten, so that there are at most four.
    const highest = Math.max(...counts);
    let step = 1;
    for (let power = 1; step * 4 < highest; power *= 10)
      step = [1, 2, 5, 10].map((digit) => digit * power).find((each) => each * 4 >= highest) || step;
    const top = Math.ceil(highest / step) * step;
    // The left margin holds five digits in the text size of a phone.
    const left = 72, width = 508, bottom = 158, height = 104;
    const x = (value) => left + (width * (value - low)) / (high - low);
    const y = (count) => bottom - (height * count) / top;
    const median = speedups[Math.floor(speedups.length / 2)];
    const svg = make("svg", { class: "chart", id: "histogram", viewBox: "0 0 600 218", role: "img",
      "aria-label": "Histogram of the speedups of " + counted(speedups.length, "session") + ": from " +
        speedups[0].toFixed(2) + ", median " + median.toFixed(2) + ", to " + speedups[speedups.length - 1].toFixed(2) });
    for (let count = 0; count <= top; count += step) {
      if (count > 0) svg.append(line("grid", left, y(count), left + width, y(count)));
      const text = label(left - 8, y(count) + 5, "end", grouped(count));
      text.setAttribute("class", "count");
      svg.append(text);
    }
    counts.forEach((count, i) => {
      if (count === 0) return;
      const tall = Math.max(2, bottom - y(count));
      svg.append(make("rect", { class: "fill", x: left + (width * i) / bins + 1, y: bottom - tall, width: width / bins - 2,
        height: tall }, make("title", {}, counted(count, "session"))));
    });
    svg.append(line("axis", left, bottom, left + width, bottom), line("mark", x(1), bottom - height - 8, x(1), bottom));
    for (const [value, anchor] of [[low, "start"], [(low + high) / 2, "middle"], [high, "end"]])
      svg.append(label(x(value), bottom + 23, anchor, value.toFixed(2) + "×"));
    svg.append(label(2, 24, "start", "sessions"), label(left + width / 2, 210, "middle", "speedup of a session"));
    const caption = "Sessions by their speedup. The dashed line is plain decoding.";
    return [make("figure", {}, svg, make("figcaption", {}, caption))];
  }

  /** The speedups of all strategies under all curves. `trace`: the index of a trace; -1: all of them. */
  function linesTable(caption, trace) {
    const specs = data.curves.map((spec, i) => (i === data.main ? strong(printable(spec)) : printable(spec)));
    const some = (line, i) => (trace < 0 ? line.under(i) : [line.under(i)[trace]]);
    const rows = data.intervals.map((intervals, i) => [code(lines[i].name),
      ...data.curves.map((_, k) => speedupOf(some(lines[i], k)).toFixed(3)), intervalText(intervals[trace + 1])]);
    return table(caption, ["Strategy", ...specs, "95% interval, " + printable(curve)], rows);
  }

  function strategies() {
    const home = make("div", { id: "curves" });
    const parts = [heading("Speedup of each strategy under each cost"), home,
      linesTable("Speedup of each strategy under each cost, all sessions", -1)];
    const first = (shown, all, what) =>
      (shown < all ? [note("The first " + grouped(shown) + " of " + grouped(all) + " " + what + ".")] : []);
    parts.push(...first(data.intervals.length, lines.length, "strategies"));
    drawCurves(home, lines.slice(0, data.intervals.length));
    if (data.traces.length < 2) return parts;
    const shown = data.traces.slice(0, data.intervals[0].length - 1);
    parts.push(folded("The same for each trace", ...shown.map((path, trace) => linesTable(printable(path), trace)),
      ...first(shown.length, data.traces.length, "traces")));
    return parts;
  }

  const marks = ["M-4,-4h8v8h-8z", "M0,-5.5L5.5,4.5h-11z", "M0,-5.5L5.5,0L0,5.5L-5.5,0z", "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0z"];
  const dashes = ["", "7 4", "2 3", "10 3 2 3"];

  function lineStyle(i) {
    return "stroke:var(--c" + (i % 8) + ")" + (dashes[Math.floor(i / 2) % 4] ? ";stroke-dasharray:" + dashes[Math.floor(i / 2) % 4] : "");
  }
  function mark(i, x, y) {
    return make("path", { d: marks[i % 4], transform: "translate(" + x + "," + y + ")", style: "fill:var(--c" + (i % 8) + ")" });
  }

  /** Draws the speedups of `shown` over s. */
  function drawCurves(home, shown) {
    const points = data.curves.map((spec, index) => ({ s: Number(spec.replace(/^linear:/, "")), index }))
      .filter((point) => data.curves[point.index].startsWith("linear:")).sort((a, b) => a.s - b.s);
    if (points.length < 2) {
      home.append(note("A chart over s needs several costs of the form linear:S."));
      return;
    }
    const drawn = shown.map(({ name, under }) => ({ name, speedups: data.curves.map((_, i) => speedupOf(under(i))) }));
    drawLines(home, drawn, points, points.findIndex((point) => point.index === data.main), { id: "s-slider", s: "s",
      axis: "s: cost of a drafted token, in plain passes",
      label: "Speedup over the cost s of a drafted token, a curve for each strategy; the table after it has the numbers" });
  }

  /**
   * Draws named speedups over the numbers `s` of `points`, with a slider that reads them and begins at the point `main`.
   * Each point has the `index` of its speedup. `texts`: the id of the slider, what s is called, and two labels.
   */
  function drawLines(home, drawn, points, main, texts) {
    const box = { left: 50, right: 26, top: 20, bottom: 54, width: 640, height: 348 };
    const most = points[points.length - 1].s;
    const all = drawn.flatMap((one) => points.map((point) => one.speedups[point.index]));
    const low = Math.min(1, Math.floor(Math.min(...all) * 5) / 5);
    const high = Math.max(1.2, Math.ceil(Math.max(...all) * 5) / 5);
    // The square root spreads the small costs, where engines are.
    const x = (s) => box.left + Math.sqrt(s / most) * (box.width - box.left - box.right);
    const y = (v) => box.top + ((high - v) / (high - low)) * (box.height - box.top - box.bottom);
    const svg = make("svg", { class: "chart", viewBox: "0 0 " + box.width + " " + box.height, role: "img", "aria-label": texts.label });
    const step = [0.2, 0.5, 1, 2, 5, 10].find((each) => (high - low) / each <= 7) || 20;
    for (let v = Math.ceil(low / step) * step; v <= high + 1e-9; v += step) {
      svg.append(line("grid", box.left, y(v), box.width - box.right, y(v)), label(box.left - 6, y(v) + 4, "end", v.toFixed(1)));
    }
    svg.append(line("mark", box.left, y(1), box.width - box.right, y(1)));
    let last = -100;
    for (const point of points) {
      if (x(point.s) - last < 52) continue;
      last = x(point.s);
      svg.append(label(last, box.height - box.bottom + 22, "middle", String(point.s)));
    }
    svg.append(label((box.left + box.width) / 2, box.height - 6, "middle", texts.axis));
    const rule = make("line", { class: "rule", y1: box.top, y2: box.height - box.bottom });
    svg.append(rule);

    const list = make("ul", { class: "lines" });
    const outputs = [];
    drawn.forEach((one, i) => {
      const path = points.map((point, k) => (k ? "L" : "M") + x(point.s).toFixed(1) + "," + y(one.speedups[point.index]).toFixed(1)).join("");
      const group = make("g", { class: "curve", "data-line": one.name }, make("title", {}, one.name), make("path", { class: "line", d: path, style: lineStyle(i) }));
      for (const point of points) {
        const at = mark(i, x(point.s), y(one.speedups[point.index]));
        at.setAttribute("data-s", point.s);
        at.setAttribute("data-speedup", one.speedups[point.index]);
        at.append(make("title", {}, one.name + ", s = " + point.s + ": " + one.speedups[point.index].toFixed(3)));
        group.append(at);
      }
      svg.append(group);
      const toggle = make("input", { type: "checkbox" });
      toggle.checked = true;
      toggle.addEventListener("change", () => { group.style.display = toggle.checked ? "" : "none"; });
      const sample = make("svg", { width: 34, height: 14, "aria-hidden": "true" }, make("path", { d: "M0,7H34", style: lineStyle(i) + ";stroke-width:2.25" }), mark(i, 17, 7));
      const output = make("span", { class: "value" });
      outputs.push(output);
      list.append(make("li", {}, make("label", {}, toggle, sample, make("code", {}, one.name), output)));
    });

    const slider = make("input", { type: "range", min: 0, max: points.length - 1, step: 1, id: texts.id });
    const value = make("strong", {});
    function show() {
      const point = points[Number(slider.value)];
      value.textContent = texts.s + " = " + point.s;
      slider.setAttribute("aria-valuetext", texts.s + " = " + point.s + ": " + drawn.map((one) => one.name + " " + one.speedups[point.index].toFixed(3)).join(", "));
      rule.setAttribute("x1", x(point.s));
      rule.setAttribute("x2", x(point.s));
      drawn.forEach((one, i) => { outputs[i].textContent = one.speedups[point.index].toFixed(3) + "×"; });
    }
    slider.value = main < 0 ? 0 : main;
    slider.addEventListener("input", show);
    show();
    home.append(make("figure", {}, svg), make("div", { class: "pick" }, make("label", { for: texts.id }, "Speedup at ", value), slider), list);
  }

  const ways = {
    lookup: "the default drafter; the head never runs",
    head: "the head alone, as many tokens as pay in each pass",
    choice: "the head runs beside the lookup where it pays; one chain is sent",
    tree: "the head runs beside the lookup where it pays; both drafts are one tree",
    hindsight: "the better draft of the two, known after the pass; no engine can do that",
  };

  /** The speedups beside a draft head over the cost of its draft, all traces together. */
  function heads() {
    const some = (data.heads || []).filter((one) => one.cost === curve);
    if (some.length === 0) return [];
    const costs = [...new Set(some.map((one) => one.head_cost))].sort((a, b) => a - b);
    const names = Object.keys(ways).filter((way) => some.some((one) => one.way === way));
    const drawn = names.map((name) => ({ name, speedups: costs.map((cost) =>
      speedupOf(some.filter((one) => one.way === name && one.head_cost === cost))) }));
    const home = make("div", { id: "heads" });
    const parts = [heading("Beside a draft head"), home];
    if (costs.length > 1)
      drawLines(home, drawn, costs.map((s, index) => ({ s, index })), 0, { id: "h-slider", s: "h",
        axis: "h: cost of a draft of the head, in plain passes",
        label: "Speedup over the cost h of a draft of the head, a line for each way; the table after it has the numbers" });
    const headings = ["Way", ...costs.map((cost) => "h\u00a0=\u00a0" + cost), "Meaning"];
    const rows = drawn.map((one) => [code(one.name), ...one.speedups.map((value) => value.toFixed(3)), ways[one.name]]);
    parts.push(table("Speedup with a draft head by the cost of its draft", headings, rows, headings.length - 1));
    return parts;
  }

  // Where?

  function categories() {
    const bar = bars(most(data.categories, (one) => Math.max(one.speedup, one.interval ? one.interval[1] : 0), 0));
    const rows = data.categories.map((one) => [nameOf(one.name), one.speedup.toFixed(3), bar(one.speedup, one.interval),
      intervalText(one.interval), grouped(one.sessions), grouped(one.tokens)]);
    const parts = [heading("By category"),
      table("Speedup by category", ["Category", "Speedup", "", "95% interval", "Sessions", "Tokens"], rows),
      note("Bars begin at 0; the line across a bar is the interval, and the dashed mark is plain decoding.")];
    if (data.folded_categories > 0)
      parts.push(note("The " + grouped(data.categories.length - 1) + " categories with the most tokens; the last row has the " +
        grouped(data.folded_categories) + " others."));
    return parts;
  }

  /**
   * The sessions with more than `position` output tokens, as in "9 of 156: code 7, json 2". Three sessions or fewer are
   * named, up to a half of all are counted by category, and more are counted together.
   */
  function reaching(position) {
    const mostNamed = 3, mostCategories = 4;
    const reach = withTokens.filter((session) => session.tokens > position);
    if (reach.length === withTokens.length) return "all " + grouped(reach.length);
    const text = grouped(reach.length) + " of " + grouped(withTokens.length);
    if (reach.length <= mostNamed) return [text + ": ", ...listed(reach.map((session) => nameOf(session.id)))];
    if (2 * reach.length > withTokens.length) return text;
    const counts = new Map();
    for (const { category } of reach) counts.set(category, (counts.get(category) || 0) + 1);
    const kept = new Set([...counts].sort((a, b) => b[1] - a[1]).slice(0, mostCategories).map(([name]) => name));
    const parts = [...counts].filter(([name]) => kept.has(name)).map(([name, count]) => [nameOf(name), " " + grouped(count)]);
    const others = counts.size - kept.size;
    const rest = sum([...counts], ([name, count]) => (kept.has(name) ? 0 : count));
    if (others > 0) parts.push(others + (others === 1 ? " other " : " others ") + grouped(rest));
    return [text + ": ", ...listed(parts)];
  }

  function positions() {
    const reached = data.positions.filter((at) => at.passes > 0);
    const bar = bars(most(reached, (at) => at.speedup, 0));
    const range = (at) => {
      const next = data.positions[data.positions.indexOf(at) + 1];
      return next ? grouped(at.from) + "\u00a0to\u00a0" + grouped(next.from - 1) : "from\u00a0" + grouped(at.from);
    };
    const rows = reached.map((at) => [range(at), at.speedup.toFixed(3), bar(at.speedup),
      (at.tokens / at.passes).toFixed(3), grouped(at.tokens), reaching(at.from)]);
    const headings = ["Output tokens", "Speedup", "", "Tokens per pass", "Tokens", "Sessions that reach it"];
    return [heading("By position in the session"),
      table("Speedup by position in the output of a session", headings, rows, 5),
      note("A pass counts where it begins. Short sessions are missing from the lower rows: where the sessions differ, so " +
        "may the kind of text.")];
  }

  function sources() {
    const tokens = total("tokens");
    const rows = data.sources.filter((source) => source.proposed > 0).map((source) => [source.name, grouped(source.sent),
      grouped(source.accepted), share(source.accepted, source.sent), share(source.accepted, tokens)]);
    rows.push(["the model's own", "–", "–", "–", share(tokens - total("accepted"), tokens)]);
    const headings = ["Source", "Sent", "Accepted", "Acceptance rate", "Share of all output tokens"];
    return [heading("By source"), table("Drafted tokens by source", headings, rows)];
  }

  // Why not more?

  const meanings = {
    none: "every proposed token was sent",
    no_match: "nothing to propose: no earlier text matched",
    unlikely: "no candidate, or no further one, was likely enough to be worth its cost",
    throttled: "drafting was skipped for a while after losses",
    budget: "the limit of drafted tokens in a pass",
    shape: "the draft was malformed",
    depth: "deeper than the engine allows",
    rows: "more rows than the engine allows",
    width: "the engine allows only certain numbers of rows",
    rollback: "more drafted rows than the engine can roll back",
    context: "the context of the engine is full",
    max_tokens: "the limit of output tokens",
    out_of_memory: "no memory for a draft",
    constraint: "a grammar or another rule refused the tokens",
    strategy_threw: "the strategy failed",
  };

  function drafted() {
    const passes = total("passes");
    const [proposed, sent, accepted] = ["proposed", "sent", "accepted"].map((fate) => sum(data.sources, (one) => one[fate]));
    return [heading("Drafted tokens"),
      paragraph("All " + grouped(passes) + " passes proposed " + grouped(proposed) + " tokens. " +
        grouped(data.undrafted) + " passes (" + share(data.undrafted, passes) + ") carried no draft. In " +
        grouped(data.all_accepted) + " passes (" + share(data.all_accepted, passes) +
        ") the whole draft was accepted, so a longer one might have gained more."),
      ...stackedBar("Proposed tokens by what became of them", [["accepted", "accepted", accepted],
        ["sent and rejected", "rejected", sent - accepted], ["proposed, not sent", "withheld", proposed - sent]])];
  }

  function reasons() {
    const passes = total("passes");
    const cuts = data.cuts.map((name) => ({ name, passes: sum(main, (result) => result.cuts[name]) }));
    const rows = cuts.filter((cut) => cut.passes > 0).sort((a, b) => b.passes - a.passes).map((cut) => [code(cut.name),
      meanings[cut.name], grouped(cut.passes), share(cut.passes, passes), grouped(data.withheld[cut.name])]);
    const headings = ["Reason", "Meaning", "Passes", "Share", "Tokens not sent"];
    return [heading("Reasons"), table("Passes by the reason why their draft was not sent whole", headings, rows, 1)];
  }

  function bounds() {
    const all = [["This run", speedup, "the control decides how much of each draft is sent"],
      ["Hindsight", data.hindsight,
        "drafts of the same strategy, sent as far as they will be accepted; no control can know that"],
      ["Ceiling", data.ceiling, "an oracle that copies from the session, and knows from where and how far"]];
    const bar = bars(most(all, ([, value]) => value, 0));
    const rows = all.map(([name, value, meaning]) => [name, value.toFixed(3), bar(value), meaning]);
    return [heading("Hindsight and ceiling"), table("Speedup beside two bounds", ["", "Speedup", "", "Meaning"], rows, 3),
      note("The gap from this run to hindsight is the price of not knowing which drafts will be accepted. The gap from " +
        "hindsight to the ceiling is text that the drafter did not find, or did not rank first. A drafter with knowledge " +
        "from outside the session can exceed the ceiling.")];
  }

  // What should I set?

  /** "2nd", "11th", "23rd". */
  function ordinal(number) {
    const last = Math.floor((number % 100) / 10) === 1 ? 0 : number % 10;
    return grouped(number) + (["th", "st", "nd", "rd"][last] || "th");
  }

  function advice() {
    const { advice } = data;
    const parts = [make("p", { id: "advised" }, advice.summary)];
    if (advice.tried.length === 0) return parts;
    if (advice.every > 1)
      parts.push(note("From every " + ordinal(advice.every) + " session: " + counted(advice.sessions, "session") + ", " +
        grouped(advice.tokens) + " tokens. ", code("--advise"), " tries the settings on all."));
    const rows = advice.tried.map((one) => [one.question, one.setting, one.speedup.toFixed(3), one.change,
      one.interval || "–", one.memory || "–", one.chosen ? strong(one.verdict) : one.verdict]);
    const headings = ["Question", "Setting", "Speedup", "Change", "99% interval", "Memory", "Verdict"];
    const rankings = advice.rankings ? "rankings of accepted tokens" : "no rankings";
    parts.push(paragraph("The defaults of the library (chains, " + rankings + ", no history): ",
        strong(advice.default_speedup.toFixed(3) + "×"), " under ", code(curve), "."),
      table("Settings that were tried", headings, rows, 6),
      note("Each change is relative to the settings chosen above it. A change must gain " +
        (100 * advice.least_gain).toFixed(1) + "%, and " + (100 * advice.least_gain_per_mib).toFixed(2) +
        "% more for each MiB of memory that it adds."),
      heading("The same as C++"),
      make("pre", { class: "frame", role: "region", tabindex: 0, "aria-label": "The settings as C++" },
        make("code", {}, advice.code)));
    return parts;
  }

  // Can I trust it?

  /** Claimed against observed probability. The area of a point is proportional to its tests. */
  function reliabilityDrawing(bins) {
    const left = 46, bottom = 310, side = 290;
    const svg = make("svg", { class: "chart square", id: "reliability", viewBox: "-16 -4 380 366", role: "img",
      "aria-label": "Reliability diagram; the table after it has the numbers" });
    for (const at of [0, 0.25, 0.5, 0.75, 1]) {
      const x = left + side * at, y = bottom - side * at;
      svg.append(line("grid", left, y, left + side, y), line("grid", x, bottom, x, bottom - side),
        label(x, bottom + 20, "middle", at.toFixed(2)), label(left - 6, y + 4, "end", at.toFixed(2)));
    }
    svg.append(line("mark", left, bottom, left + side, bottom - side),
      label(left + side / 2, bottom + 38, "middle", "claimed probability"),
      make("text", { transform: "rotate(-90)", x: -165, y: 0, "text-anchor": "middle" }, "observed"));
    const highest = most(bins, (bin) => bin.tests, 1);
    for (const bin of bins)
      svg.append(make("circle", { class: "point", cx: left + side * bin.claimed, cy: bottom - side * bin.observed,
        r: 3 + 9 * Math.sqrt(bin.tests / highest) }, make("title", {}, "claimed " + bin.claimed.toFixed(3) +
        ", observed " + bin.observed.toFixed(3) + ", " + grouped(bin.tests) + " tests")));
    return make("figure", {}, svg, make("figcaption", {},
      "On the dashed diagonal, claims are exactly right. Above it, they are too low. Larger points have more tests."));
  }

  function reliability() {
    const bins = settings.reliability.map((_, i) => {
      const some = main.map((result) => result.reliability[i]);
      const tests = sum(some, (bin) => bin.tests);
      const mean = (member) => (tests === 0 ? 0 : sum(some, (bin) => bin.tests * bin[member]) / tests);
      return { tests, claimed: mean("claimed"), observed: mean("observed") };
    }).filter((bin) => bin.tests > 0);
    const title = heading("Are its probabilities right?");
    const tests = sum(bins, (bin) => bin.tests);
    if (tests === 0) return [title, paragraph("No drafted token was tested.")];
    const error = sum(bins, (bin) => bin.tests * Math.abs(bin.claimed - bin.observed)) / tests;
    const rows = bins.map((bin) => [bin.claimed.toFixed(3), bin.observed.toFixed(3), grouped(bin.tests)]);
    return [title, paragraph("Calibration error: ", strong(error.toFixed(3)),
        ", the mean distance between claimed and observed probability over " + grouped(tests) + " tests."),
      reliabilityDrawing(bins), folded("The numbers",
        table("Claimed and observed probability of drafted tokens", ["Claimed", "Observed", "Tests"], rows))];
  }

  /** The largest error of the learned curve over the passes. */
  function learned() {
    const title = heading("Does it know what a pass costs?");
    if (data.curve.length === 0)
      return [title, settings.cost_known === "unused" ? paragraph("This control does not use costs.")
        : settings.cost_known === "told" ? paragraph("The control was told the cost curve, so it had nothing to learn. " +
            "Replay with ", code("--cost-known learned"), " to see how soon an engine's times teach it.")
        : paragraph("The control received no pass times.")];
    const cells = (point, rows) => [point.learned[rows - 1].toFixed(3), point.true[rows - 1].toFixed(3),
      signedPercent(point.learned[rows - 1] / point.true[rows - 1] - 1)];
    const errors = data.curve.map((point) => [grouped(point.passes), grouped(point.largest_error_rows),
      ...cells(point, point.largest_error_rows)]);
    const end = data.curve[data.curve.length - 1];
    const costs = end.true.map((_, i) => [grouped(i + 1) + (end.uncertain.includes(i + 1) ? " (uncertain)" : ""),
      ...cells(end, i + 1)]);
    return [title, paragraph(settings.cost_known === "carried"
        ? "Over all sessions of the first trace, one after the other."
        : "In the longest session of the first trace; each session starts afresh."),
      table("Largest error of the learned costs over the passes; only row counts that at least 1% of passes have",
        ["Passes", "Rows", "Learned", "True", "Error"], errors),
      folded("The whole curve at the end", table("Learned and true cost by rows, after " + grouped(end.passes) + " passes",
        ["Rows", "Learned", "True", "Error"], costs))];
  }

  function worstWindow() {
    const title = heading("How bad did it get?");
    const worst = sessions.reduce((a, b) => (b.worstLoss > a.worstLoss ? b : a));
    if (worst.worstLoss === 0)
      return [title, paragraph("No run of passes of any session cost more than plain decoding.")];
    return [title, paragraph("Worst window: ", make("strong", { id: "worst-window" }, worst.worstLoss.toFixed(1)),
      " plain passes lost, in session ", nameOf(worst.id), ". This is the largest loss of any run of at most " +
        grouped(data.window) + " consecutive passes: their cost beyond the cost of plain decoding.")];
  }

  // The sessions, token by token.

  const hasWords = Object.keys(data.words).length > 0;
  const fates = { a: "accepted", r: "rejected", n: "not sent" };

  /** A name that cannot reverse the text around it. */
  function isolated(name) {
    return "\u2068" + printable(name) + "\u2069";
  }
  function word(token) {
    const text = data.words[token];
    return text === undefined ? String(token) : text;
  }
  /** The text of a token where blanks must be seen. */
  function visible(token) {
    return word(token).replace(/ /g, "␣").replace(/\n/g, "⏎").replace(/\t/g, "⇥");
  }

  /** The index of the accepted node at each depth. */
  function acceptedPath(pass) {
    const path = [];
    if (pass.length > 2) for (let i = 0; i < pass[5].length; ++i) if (pass[5][i] === "a") path.push(i);
    return path;
  }

  function describe(number, pass) {
    const drafted = pass.length > 2 ? pass[2].length : 0;
    const sent = pass.length > 2 ? [...pass[5]].filter((fate) => fate !== "n").length : 0;
    const counts = drafted === 0 ? "no draft" : drafted + " proposed, " + sent + " sent, " + acceptedPath(pass).length + " accepted";
    const reason = data.cuts[pass[1]];
    return "Pass " + number + ": " + pass[0] + (pass[0] === 1 ? " token" : " tokens") + "; " + counts + (reason === "none" ? "" : " (" + reason + ")");
  }

  /** A draft as nested lists. Nodes with one child continue the line of their parent. */
  function tree(pass) {
    const children = new Map();
    pass[3].forEach((parent, i) => children.set(parent, (children.get(parent) || []).concat(i)));
    const branch = (first) => {
      const item = make("li", {});
      let next = [first];
      while (next.length === 1) {
        const i = next[0];
        const fate = pass[5][i];
        const source = data.sources[Number(pass[4][i])].name;
        item.append(make("span", { class: "node " + fate },
          { a: "✓ ", r: "✗ ", n: "○ " }[fate], make("span", { class: "tok s" + pass[4][i] }, visible(pass[2][i])), " ",
          make("small", {}, pass[6][i] + "% " + source), make("span", { class: "unseen" }, " " + fates[fate])));
        next = children.get(i) || [];
      }
      if (next.length > 0) item.append(make("ul", {}, ...next.map(branch)));
      return item;
    };
    return make("ul", {}, ...(children.get(-1) || []).map(branch));
  }

  function drawSession(session, text, panel) {
    text.replaceChildren();
    panel.replaceChildren(note("Choose a pass to see its draft; the arrow keys move from pass to pass."));
    const buttons = [];
    let number = 0;
    for (const turn of session.turns) {
      text.append(make("span", { class: "head" }, "prompt of " + turn.prompt_size + " tokens" + (turn.prompt_size > turn.prompt.length ? ", the last " + turn.prompt.length : "")));
      const space = hasWords ? "" : " ";
      text.append(make("span", { class: "prompt" }, turn.prompt.map(word).join(space)));
      text.append(make("span", { class: "head" }, "output"));
      if (turn.output.length > 0) text.append(make("span", { class: "tok own", title: "from the prefill" }, word(turn.output[0])), space);
      let at = 1;
      for (const pass of turn.passes) {
        const path = acceptedPath(pass);
        const label = describe(++number, pass);
        const button = make("button", { type: "button", class: "pass", "aria-pressed": "false", "aria-label": label + ": " + turn.output.slice(at, at + pass[0]).map(word).join(space), tabindex: buttons.length ? -1 : 0 });
        for (let i = 0; i < pass[0] && at < turn.output.length; ++i, ++at) {
          const drafted = i < path.length;
          button.append(make("span", { class: "tok " + (drafted ? "s" + pass[4][path[i]] : "own") }, word(turn.output[at]).replace(/\n/g, "⏎")));
        }
        const index = buttons.length;
        button.addEventListener("click", () => {
          for (const other of buttons) other.setAttribute("aria-pressed", "false");
          button.setAttribute("aria-pressed", "true");
          panel.replaceChildren(paragraph(strong(label)));
          panel.append(pass.length > 2 ? tree(pass) : paragraph("The strategy proposed nothing: " + data.cuts[pass[1]] + "."));
        });
        button.addEventListener("keydown", (event) => {
          const to = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: buttons.length - 1 }[event.key];
          if (to === undefined || !buttons[to]) return;
          event.preventDefault();
          button.tabIndex = -1;
          buttons[to].tabIndex = 0;
          buttons[to].focus();
        });
        buttons.push(button);
        // A line break inside a button would make it two lines high.
        text.append(button, at > 0 && word(turn.output[at - 1]).includes("\n") ? "\n" : space);
      }
    }
    if (!session.complete) text.append(make("span", { class: "head" }, "The rest of this session is left out to keep the page small."));
  }

  function viewer() {
    if (data.shown.length === 0) return [paragraph("No session has output tokens from passes.")];
    const choice = make("select", { id: "session" });
    data.shown.forEach((shown, i) => {
      const { id, category, speedup, tokens } = sessions[shown.session];
      choice.append(make("option", { value: i },
        isolated(id) + " (" + isolated(category) + "): " + speedup.toFixed(3) + "×, " + tokens + " tokens"));
    });
    const used = new Set(data.shown.flatMap((session) => session.turns.flatMap((turn) => turn.passes.flatMap((pass) => (pass.length > 2 ? [...pass[4]] : [])))));
    const legend = make("ul", { class: "legend", "aria-label": "Where each token came from" });
    for (const source of [...used].sort()) legend.append(make("li", {}, make("span", { class: "tok s" + source }, "token"), " drafted from " + data.sources[Number(source)].name));
    legend.append(make("li", {}, make("span", { class: "tok own" }, "token"), " the model's own"));
    const text = make("div", { class: "tokens" + (hasWords ? "" : " ids"), role: "group", "aria-label": "Output by passes" });
    const panel = make("div", { class: "tree", role: "status", "aria-label": "Draft of the chosen pass" });
    // The choice itself is not printed.
    const printed = make("p", { class: "printed" });
    const draw = () => {
      printed.textContent = "Session " + choice.selectedOptions[0].textContent;
      drawSession(data.shown[Number(choice.value)], text, panel);
    };
    choice.addEventListener("change", draw);
    draw();
    return [make("div", { class: "pick" }, make("label", { for: "session" }, "Session"), choice), printed, legend,
      ...(hasWords ? [] : [note("Numbers are token ids; --vocabulary FILE shows words.")]), text, panel];
  }

  function drawPage() {
    const source = data.traces.length === 1 ? printable(data.traces[0]) : data.traces.length + " traces";
    document.title = "Replay of " + source;
    document.getElementById("source").append(make("bdi", {}, source));
    document.getElementById("version").append(data.version);
    document.getElementById("settings").append(counted(total("sessions"), "session") + ", " +
      counted(total("turns"), "turn") + ", " + grouped(total("tokens")) + " output tokens" +
      (settings.part === "all" ? "" : "; part " + settings.part + " of the sessions only") +
      (settings.memory === "past" ? "; past sessions are remembered" : ""));
    if (data.fault !== "")
      document.querySelector("main").prepend(make("p", { class: "fault", role: "alert" }, "NOT LOSSLESS: " + printable(data.fault)));
    const fill = (id, ...parts) => document.getElementById(id).parentElement.append(...parts);
    fill("gain", ...answer(), facts(), ...histogram(), ...strategies(), ...heads());
    fill("where", ...categories(), ...positions(), ...sources());
    fill("why", ...drafted(), ...reasons(), ...bounds());
    fill("advice", ...advice());
    fill("trust", ...reliability(), ...learned(), ...worstWindow());
    fill("sessions", ...viewer());
  }

  drawPage();
  window.addEventListener("beforeprint", () => { for (const part of document.querySelectorAll("details")) part.open = true; });
})();

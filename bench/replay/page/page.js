"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const NS = "http://www.w3.org/2000/svg";

  /** Makes an element. Names from a trace become text nodes only, never markup. */
  function make(name, attributes, ...children) {
    const drawn = ["svg", "line", "path", "text", "circle", "rect", "g", "title"].includes(name);
    const element = drawn ? document.createElementNS(NS, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {}))
      if (value !== null && value !== undefined) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  // The chart of speedups over s.

  const marks = ["M-4,-4h8v8h-8z", "M0,-5.5L5.5,4.5h-11z", "M0,-5.5L5.5,0L0,5.5L-5.5,0z", "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0z"];
  const dashes = ["", "7 4", "2 3", "10 3 2 3"];

  function lineStyle(i) {
    return "stroke:var(--c" + (i % 8) + ")" + (dashes[Math.floor(i / 2) % 4] ? ";stroke-dasharray:" + dashes[Math.floor(i / 2) % 4] : "");
  }
  function mark(i, x, y) {
    return make("path", { d: marks[i % 4], transform: "translate(" + x + "," + y + ")", style: "fill:var(--c" + (i % 8) + ")" });
  }

  function drawCurves(home) {
    const points = data.curves.map((curve, index) => ({ s: curve.slope, index })).filter((point) => point.s !== null);
    points.sort((a, b) => a.s - b.s);
    if (points.length < 2) {
      home.append(make("p", { class: "note" }, "A chart over s needs several costs of the form linear:S."));
      return;
    }
    const box = { left: 50, right: 26, top: 20, bottom: 54, width: 640, height: 348 };
    const most = points[points.length - 1].s;
    const all = data.lines.flatMap((line) => points.map((point) => line.speedups[point.index]));
    const low = Math.min(1, Math.floor(Math.min(...all) * 5) / 5);
    const high = Math.max(1.2, Math.ceil(Math.max(...all) * 5) / 5);
    // The square root spreads the small costs, where engines are.
    const x = (s) => box.left + Math.sqrt(s / most) * (box.width - box.left - box.right);
    const y = (v) => box.top + ((high - v) / (high - low)) * (box.height - box.top - box.bottom);
    const svg = make("svg", { class: "chart", viewBox: "0 0 " + box.width + " " + box.height, role: "img", "aria-label": "Speedup over the cost s of a drafted token, a curve for each strategy; the table after it has the numbers" });
    const step = [0.2, 0.5, 1, 2, 5, 10].find((each) => (high - low) / each <= 7) || 20;
    for (let v = Math.ceil(low / step) * step; v <= high + 1e-9; v += step) {
      svg.append(make("line", { class: "grid", x1: box.left, x2: box.width - box.right, y1: y(v), y2: y(v) }));
      svg.append(make("text", { x: box.left - 6, y: y(v) + 4, "text-anchor": "end" }, v.toFixed(1)));
    }
    svg.append(make("line", { class: "mark", x1: box.left, x2: box.width - box.right, y1: y(1), y2: y(1) }));
    let last = -100;
    for (const point of points) {
      if (x(point.s) - last < 52) continue;
      last = x(point.s);
      svg.append(make("text", { x: last, y: box.height - box.bottom + 22, "text-anchor": "middle" }, String(point.s)));
    }
    svg.append(make("text", { x: (box.left + box.width) / 2, y: box.height - 6, "text-anchor": "middle" }, "s: cost of a drafted token, in plain passes"));
    const rule = make("line", { class: "rule", y1: box.top, y2: box.height - box.bottom });
    svg.append(rule);

    const list = make("ul", { class: "lines" });
    const outputs = [];
    data.lines.forEach((line, i) => {
      const path = points.map((point, k) => (k ? "L" : "M") + x(point.s).toFixed(1) + "," + y(line.speedups[point.index]).toFixed(1)).join("");
      const group = make("g", { class: "curve", "data-line": line.name }, make("title", {}, line.name), make("path", { class: "line", d: path, style: lineStyle(i) }));
      for (const point of points) {
        const at = mark(i, x(point.s), y(line.speedups[point.index]));
        at.setAttribute("data-s", point.s);
        at.setAttribute("data-speedup", line.speedups[point.index]);
        at.append(make("title", {}, line.name + ", s = " + point.s + ": " + line.speedups[point.index].toFixed(3)));
        group.append(at);
      }
      svg.append(group);
      const toggle = make("input", { type: "checkbox" });
      toggle.checked = true;
      toggle.addEventListener("change", () => { group.style.display = toggle.checked ? "" : "none"; });
      const sample = make("svg", { width: 34, height: 14, "aria-hidden": "true" }, make("path", { d: "M0,7H34", style: lineStyle(i) + ";stroke-width:2.25" }), mark(i, 17, 7));
      const output = make("span", { class: "value" });
      outputs.push(output);
      list.append(make("li", {}, make("label", {}, toggle, sample, make("code", {}, line.name), output)));
    });

    const slider = make("input", { type: "range", min: 0, max: points.length - 1, step: 1, id: "s-slider" });
    const value = make("strong", {});
    function show() {
      const point = points[Number(slider.value)];
      value.textContent = "s = " + point.s;
      slider.setAttribute("aria-valuetext", "s = " + point.s + ": " + data.lines.map((line) => line.name + " " + line.speedups[point.index].toFixed(3)).join(", "));
      rule.setAttribute("x1", x(point.s));
      rule.setAttribute("x2", x(point.s));
      data.lines.forEach((line, i) => { outputs[i].textContent = line.speedups[point.index].toFixed(3) + "×"; });
    }
    const main = points.findIndex((point) => point.index === data.main);
    slider.value = main < 0 ? 0 : main;
    slider.addEventListener("input", show);
    show();
    home.append(make("figure", {}, svg), make("div", { class: "pick" }, make("label", { for: "s-slider" }, "Speedup at ", value), slider), list);
  }

  // The sessions, token by token.

  const hasWords = Object.keys(data.words).length > 0;
  const fates = { a: "accepted", r: "rejected", n: "not sent" };

  /** A name that cannot reverse the text around it. */
  function isolated(name) {
    return "\u2068" + name + "\u2069";
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
        const source = data.sources[Number(pass[4][i])];
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
    panel.replaceChildren(make("p", { class: "note" }, "Choose a pass to see its draft; the arrow keys move from pass to pass."));
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
          panel.replaceChildren(make("p", {}, make("strong", {}, label)));
          panel.append(pass.length > 2 ? tree(pass) : make("p", {}, "The strategy proposed nothing: " + data.cuts[pass[1]] + "."));
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

  function drawViewer(home) {
    if (data.sessions.length === 0) {
      home.append(make("p", {}, "No session has output tokens from passes."));
      return;
    }
    const choice = make("select", { id: "session" });
    data.sessions.forEach((session, i) => choice.append(make("option", { value: i },
      (isolated(session.id) + " (" + isolated(session.category) + "): " + session.speedup.toFixed(3) + "×, " + session.tokens + " tokens"))));
    const used = new Set(data.sessions.flatMap((session) => session.turns.flatMap((turn) => turn.passes.flatMap((pass) => (pass.length > 2 ? [...pass[4]] : [])))));
    const legend = make("ul", { class: "legend", "aria-label": "Where each token came from" });
    for (const source of [...used].sort()) legend.append(make("li", {}, make("span", { class: "tok s" + source }, "token"), " drafted from " + data.sources[Number(source)]));
    legend.append(make("li", {}, make("span", { class: "tok own" }, "token"), " the model's own"));
    const text = make("div", { class: "tokens" + (hasWords ? "" : " ids"), role: "group", "aria-label": "Output by passes" });
    const panel = make("div", { class: "tree", role: "status", "aria-label": "Draft of the chosen pass" });
    // The choice itself is not printed.
    const printed = make("p", { class: "printed" });
    const draw = () => {
      printed.textContent = "Session " + choice.selectedOptions[0].textContent;
      drawSession(data.sessions[Number(choice.value)], text, panel);
    };
    choice.addEventListener("change", draw);
    home.append(make("div", { class: "pick" }, make("label", { for: "session" }, "Session"), choice), printed, legend);
    if (!hasWords) home.append(make("p", { class: "note" }, "Numbers are token ids" + (data.curves ? "; --vocabulary FILE shows words." : ".")));
    home.append(text, panel);
    draw();
  }

  const curves = document.getElementById("curves");
  if (curves) drawCurves(curves);
  drawViewer(document.getElementById("viewer"));
  window.addEventListener("beforeprint", () => { for (const part of document.querySelectorAll("details")) part.open = true; });
})();

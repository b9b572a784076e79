// Runs: curves of one or many, differences of their recipes, statistics of modules, samples.
import { choice, counted, el, longText, numberText, shown, shownLines, table } from "./dom.js";
import { Chart } from "./chart.js";
import { Stage, colour, seriesColour, shadeText } from "./stage.js";
import { selectModule, state } from "./state.js";

/// Metrics that stand in one chart: those of updates and of evaluations.
const chartOf = key => key.replace(/^validation_/, "").replace(/ on .*/, "");
const chartNames = new Map([["loss", "Loss"], ["learning_rate", "Learning rate"], ["gradient_norm", "Gradient norm"],
  ["tokens_per_s", "Tokens per second"], ["seconds", "Seconds per update"]]);
const chartOrder = ["loss", "perplexity", "accuracy", "learning_rate", "gradient_norm", "tokens_per_s"];

export class RunsView {
  constructor(host) {
    this.runs = state.page.runs;
    this.off = new Set();
    this.shared = { from: null, to: null, at: null, log: false, weight: 0.9, charts: [] };
    this.grid = el("div", { class: "grid" });
    host.append(this.bar(), this.runs.length > 1 ? this.differences() : "", this.grid);
    for (const run of this.runs) {
      if (run.statistics.steps.length > 0) host.append(new Statistics(run).element);
      if (run.samples.length > 0) host.append(this.samples(run));
      if (this.runs.length === 1) host.append(this.recipe(run));
    }
    this.showCharts();
  }

  bar() {
    const redraw = () => this.shared.charts.forEach(chart => chart.stage.request());
    return el("div", { class: "bar" },
      this.runs.map((run, i) => el("label", { class: "key", style: { "--of": `var(--c${i % 8})` } },
        el("input", { type: "checkbox", checked: true, onchange: event => {
          event.target.checked ? this.off.delete(i) : this.off.add(i);
          this.showCharts();
        } }), shown(run.name))),
      el("label", {}, "Smoothing", el("input",
          { type: "range", min: 0, max: 0.999, step: 0.001, value: this.shared.weight, oninput: event => {
        this.shared.weight = Number(event.target.value);
        redraw();
      } })),
      el("label", {}, el("input", { type: "checkbox", onchange: event => {
        this.shared.log = event.target.checked;
        redraw();
      } }), "log scale"),
      el("span", {}, "Drag to zoom, double-click for all. Dashed: evaluations; of watched values the least."));
  }

  showCharts() {
    this.shared.charts = [];
    const charts = new Map();
    this.runs.forEach((run, i) => {
      if (this.off.has(i)) return;
      for (const [key, { steps, values, not_finite }] of Object.entries(run.curves)) {
        if (key === "tokens" || (key === "seconds" && "tokens_per_s" in run.curves)) continue;
        const evaluation = key.startsWith("validation_") || !("learning_rate" in run.curves) ||
            steps.length < run.curves.learning_rate.steps.length / 2;
        const best = run.best?.key === key ? run.best : null;
        const curve = { name: (this.runs.length > 1 ? run.name + " " : "") + key, colour: () => seriesColour(i), steps,
            values, dashed: evaluation, points: evaluation, best, exact: key === "learning_rate", bad: not_finite };
        charts.set(chartOf(key), charts.get(chartOf(key)) ?? []);
        charts.get(chartOf(key)).push(curve);
      }
    });
    this.addWatched(charts);
    const place = key => (chartOrder.includes(key) ? chartOrder.indexOf(key) : key.startsWith("Watched: ") ? 0.5 : 99);
    this.grid.replaceChildren(...[...charts.keys()].sort((a, b) => place(a) - place(b)).map(key => {
      const host = el("div", { class: "stage" }), last = charts.get(key)[0];
      const bad = Math.max(...charts.get(key).map(curve => curve.bad));
      const card = el("div", { class: "card" },
          el("h2", {}, shown(chartNames.get(key) ?? key), bad > 0 ? `, not finite at ${counted(bad, "update")}` : "",
          el("span", { class: "dim", style: { float: "right", "font-weight": 400 } },
        numberText(last.values[last.values.length - 1]))), host);
      queueMicrotask(() => new Chart(host, `${key} over the updates`, charts.get(key), this.shared));
      return card;
    }));
    if (charts.size === 0) this.grid.replaceChildren(el("p", { class: "dim" }, "No update has been recorded yet."));
  }

  /// A chart for each watched value: its least and its largest number, beside the loss.
  addWatched(charts) {
    this.runs.forEach((run, i) => {
      const { steps, kinds } = run.watched;
      if (this.off.has(i)) return;
      for (const kind of ["least", "largest"]) for (const [name, values] of Object.entries(kinds[kind] ?? {})) {
        const bad = kinds.not_finite?.[name]?.filter(count => count > 0).length ?? 0, key = `Watched: ${name}`;
        const curve = { name: (this.runs.length > 1 ? run.name + " " : "") + kind, colour: () => seriesColour(i), steps,
          values, dashed: kind === "least", exact: true, bad };
        charts.set(key, [...(charts.get(key) ?? []), curve]);
      }
    });
  }

  /// What differs between the recipes of the runs.
  differences() {
    const flat = this.runs.map(run => flattened(run.recipe)),
        keys = [...new Set(flat.flatMap(each => [...each.keys()]))];
    const differ = keys.filter(key => new Set(flat.map(each => each.get(key))).size > 1);
    return el("div", { class: "pad scroll", style: { "max-height": "30vh" } },
        el("h2", {}, "What differs between the recipes"),
        differ.length === 0 ? el("p", {}, "Nothing.")
      : table(["key", ...this.runs.map(run => run.name)],
          differ.map(key => [key, ...flat.map(each => each.get(key) ?? "–")])));
  }
  recipe(run) {
    return el("div", { class: "pad" }, el("h2", {}, "Recipe"),
        longText("Recipe", shownLines(JSON.stringify(run.recipe, null, 2))));
  }
  samples(run) {
    const all = run.samples;
    const text = longText("Sample"), number = el("span", {});
    const show = i => {
      const { step, prompt, ...rest } = all[i];
      number.textContent = `update ${step}` + (prompt !== undefined ? ", " + shown(JSON.stringify(prompt)) : "");
      text.textContent = shownLines(rest.text ?? JSON.stringify(rest));
    };
    show(all.length - 1);
    return el("div", { class: "pad" }, el("h2", {}, `Samples of ${shown(run.name)}`),
        el("label", { class: "bar", style: { padding: 0, border: 0 } },
      el("input", { type: "range", min: 0, max: all.length - 1, value: all.length - 1, "aria-label": "Sample",
          oninput: event => show(Number(event.target.value)) }), number), text);
  }
}

/// The keys and values of nested objects: "schedule.rate" → "0.001".
function flattened(value, key = "", into = new Map()) {
  if (value !== null && typeof value === "object" && !Array.isArray(value))
    for (const [name, inner] of Object.entries(value)) flattened(inner, key ? key + "." + name : name, into);
  else if (key !== "about") into.set(key, JSON.stringify(value));
  return into;
}

/// Statistics of modules over the updates as a heat map.
class Statistics {
  constructor(run) {
    this.run = run;
    const kinds = Object.keys(run.statistics.kinds);
    this.kind = kinds.includes("gradient_mean") ? "gradient_mean" : kinds[0];
    this.host = el("div", { class: "stage" });
    this.element = el("div", { class: "pad" }, el("h2", {}, `Statistics of modules of ${shown(run.name)}`),
        el("div", { class: "bar", style: { padding: "0 0 6px", border: 0 } },
      choice("Number", kinds.map(kind => [kind, kind.replaceAll("_", " ")]), this.kind, kind => {
        this.kind = kind;
        this.size();
        this.stage.request();
      }), el("span", {}, "dark: least, yellow: most, on a logarithmic scale; orange: not finite")), this.host);
    this.stage = new Stage(this.host, { label: "Statistics of modules over the updates.", moves: "none",
      draw: (context, stage) => this.draw(context, stage), hit: (x, y) => this.hit(x, y), boxes: () => this.boxes(),
      tip: cell => cell.text, click: cell => cell && state.play && selectModule(cell.module) });
    this.size();
  }
  size() {
    this.rows = Object.entries(this.run.statistics.kinds[this.kind]);
    const numbers = this.rows.flatMap(([, values]) => values).filter(value => typeof value === "number");
    const positive = numbers.filter(value => value > 0).map(Math.log);
    this.low = positive.reduce((a, b) => Math.min(a, b), Infinity);
    this.high = positive.reduce((a, b) => Math.max(a, b), -Infinity);
    this.host.style.height = 16 * this.rows.length + 28 + "px";
    this.host.style.minHeight = "0";
  }
  measure() {
    const left = Math.min(170, this.stage.width * 0.4), { steps } = this.run.statistics;
    return { steps, left, w: (this.stage.width - left) / steps.length };
  }
  boxes() {
    const { steps, left, w } = this.measure();
    return this.rows.flatMap((_, row) => steps.map((_, i) => [left + i * w, 16 * row, w, 15]));
  }
  draw(context, stage) {
    const { steps, left, w } = this.measure();
    context.font = "11px system-ui, sans-serif";
    this.rows.forEach(([module, values], row) => {
      context.fillStyle = colour("text");
      context.textAlign = "right";
      context.fillText(shown(module || "update").slice(-26), left - 8, 16 * row + 8);
      steps.forEach((_, i) => {
        const value = values[i];
        context.fillStyle = value === true ? colour("mark") : typeof value !== "number" ? colour("page")
            : shadeText(value > 0 ? (Math.log(value) - this.low) / (this.high - this.low || 1) : 0);
        context.fillRect(left + i * w, 16 * row, w - (w > 6 ? 1 : 0), 15);
      });
    });
    context.fillStyle = colour("dim");
    context.textAlign = "left";
    context.fillText(`update ${steps[0]}`, left, 16 * this.rows.length + 12);
    context.textAlign = "right";
    context.fillText(String(steps[steps.length - 1]), stage.width - 4, 16 * this.rows.length + 12);
  }
  hit(x, y) {
    const { steps, left, w } = this.measure(), i = Math.floor((x - left) / w), line = this.rows[Math.floor(y / 16)];
    if (!line || i < 0 || i >= steps.length) return null;
    const value = line[1][i] === true ? "not finite" : numberText(line[1][i]);
    return { module: line[0], text: `${line[0]}\nupdate ${steps[i]}: ${value}` };
  }
}

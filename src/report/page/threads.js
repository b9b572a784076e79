// Threads: what each did during one play.
import { counted, el, percent, secondsText, shown, table } from "./dom.js";
import { niceStep } from "./memory.js";
import { Stage, colour, fitted, ink, seriesColour } from "./stage.js";
import { select, selectStep, state } from "./state.js";

const side = 104, high = 34, below = 26;  // of the names, of a thread, of the axis

export class ThreadsView {
  constructor(host) {
    const { plan } = state.play;
    this.play = state.play;
    this.plan = plan;
    this.read(plan.trace);
    this.place = el("div", { class: "stage", style: { flex: "none", height: `${high * this.threads + below + 8}px`,
      "min-height": 0 } });
    host.append(el("div", { class: "bar" }, el("span", {}, "One play: ", el("b", {}, secondsText(this.seconds)),
      ` with ${counted(this.threads, "thread")}`), plan.trace.left_out > 0
      ? el("span", {}, `${plan.trace.left_out.toLocaleString("en")} of the shortest events are left out`) : "",
    el("button", { onclick: () => this.stage.fit() }, "Fit")), this.place, this.tables());
    this.stage = new Stage(this.place, {
      label: "What each thread does over the time. The same numbers are in the tables below.", moves: "x",
      bounds: stage => {
        const second = this.seconds / Math.max(50, stage.width - side - 12);
        return { x: -side * second, y: 0, width: this.seconds + (side + 12) * second, height: stage.height };
      },
      draw: (context, stage) => this.draw(context, stage), hit: (x, y) => this.hit(x, y),
      boxes: () => this.rows.flat().map(({ row, from, seconds }) => [from, high * row + 3, seconds, high - 6]),
      tip: event => this.tipOf(event), click: event => (event ? selectStep(event.step) : select(null)),
    });
  }

  /// Makes the events of each thread, in seconds from the beginning.
  read({ threads, thread, step, start, length }) {
    const first = start.reduce((a, b) => Math.min(a, b), Infinity);
    this.threads = threads;
    this.rows = Array.from({ length: threads }, () => []);
    thread.forEach((row, i) => this.rows[row].push({ row, step: step[i], from: (start[i] - first) / 1e7,
      seconds: length[i] / 1e7 }));
    this.seconds = Math.max(1e-7, ...this.rows.map(row => row.reduce((a, { from, seconds }) =>
      Math.max(a, from + seconds), 0)));
    const ops = [...new Set(this.plan.op)].sort();
    this.colourOf = new Map(ops.map((op, i) => [op, i]));
  }

  draw(context, stage) {
    const { selection } = state, { plan } = this;
    context.save();
    context.beginPath();
    context.rect(side, 0, stage.width - side, stage.height);
    context.clip();
    for (const row of this.rows) for (const event of row) {
      const x = stage.toX(event.from), w = event.seconds * stage.kx, y = high * event.row;
      if (x > stage.width || x + w < side) continue;
      const on = !selection?.steps || selection.steps[event.step] === 1, op = plan.op[event.step];
      context.globalAlpha = on ? 1 : 0.25;
      context.fillStyle = selection?.steps && on ? colour("mark") : seriesColour(this.colourOf.get(op));
      context.fillRect(x, y + 3, Math.max(w - 0.5, 0.5), high - 6);
      if (w > 30) {
        context.fillStyle = ink(context.fillStyle);
        context.textAlign = "left";
        context.fillText(fitted(context, shown(op), w - 8), Math.max(x, side) + 4, y + high / 2);
      }
    }
    context.restore();
    context.globalAlpha = 1;
    context.fillStyle = colour("text");
    context.textAlign = "right";
    this.rows.forEach((row, i) => {
      context.fillText(i === 0 ? "playing thread" : `thread ${i}`, side - 8, high * i + high / 2);
    });
    context.fillStyle = colour("dim");
    context.textAlign = "center";
    const per = niceStep(stage.width / stage.kx / 6), from = Math.ceil((stage.x + side / stage.kx) / per) * per;
    for (let at = Math.max(0, from); stage.toX(at) < stage.width - 20; at += per)
      context.fillText(at === 0 ? "0" : secondsText(at), stage.toX(at), high * this.threads + below / 2);
  }
  hit(x, y) {
    const near = 2 / this.stage.kx;  // events may be narrower than a pixel
    return this.rows[Math.floor((y - this.stage.y) * this.stage.ky / high)]
      ?.find(({ from, seconds }) => from - near <= x && x <= from + seconds + near) ?? null;
  }
  tipOf({ row, step, seconds }) {
    const { plan, play } = this;
    return `${shown(plan.op[step])}, step ${step}\n${row === 0 ? "playing thread" : `thread ${row}`}: ` +
      `${secondsText(seconds)}\n${shown(play.place(plan.site[step]) || plan.module[step])}`;
  }

  tables() {
    const { plan, threads } = this;
    const sum = row => row.reduce((all, event) => all + event.seconds, 0);
    const busy = this.rows.map((row, i) => [i === 0 ? "playing thread" : `thread ${i}`, secondsText(sum(row)),
      percent(sum(row) / this.seconds), new Set(row.map(event => event.step)).size]);
    // A thread waits in a step while the playing thread works on it and it does not.
    const ops = new Map();
    this.rows.forEach((row, i) => row.forEach(({ step, seconds }) => {
      const name = plan.op[step], fresh = { name, whole: 0, work: 0, steps: new Set() };
      const of = ops.get(name) ?? ops.set(name, fresh).get(name);
      if (i === 0) of.whole += seconds;
      of.work += seconds;
      of.steps.add(step);
    }));
    const waits = ({ whole, work }) => Math.max(0, whole * threads - work);
    const sorted = [...ops.values()].sort((a, b) => waits(b) - waits(a)).slice(0, 40);
    const rows = sorted.map(each => [each.name, secondsText(each.whole), secondsText(waits(each)),
      percent(Math.min(1, each.work / (each.whole * threads)))]);
    const pick = ({ name, steps }) => select({ kind: "flame", title: name, steps: [...steps],
      nodes: node => steps.has(plan.stepOf[node]) });
    return el("div", { class: "pad scroll tables" },
      el("div", {}, el("h2", {}, "Threads"), table(["thread", "busy|n", "share|n", "steps|n"], busy)),
      threads > 1 ? el("div", {}, el("h2", {}, "Where threads wait"),
        table(["op", "time|n", "all threads wait|n", "busy|n"], rows, i => pick(sorted[i]))) : "");
  }
}

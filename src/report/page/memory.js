// Memory: the arena over the steps, each buffer a rectangle at its place, from its first to its last use.
import { bytesText, choice, counted, el, fill, largest, numberText } from "./dom.js";
import { percent, plural, secondsText, shown, table } from "./dom.js";
import { Stage, colour, fitted, ink, seriesColour } from "./stage.js";
import { changed, select, selectNode, state } from "./state.js";

const edge = { left: 66, bottom: 34, top: 14 };

export class MemoryView {
  constructor(host) {
    this.play = state.play;
    this.bar = el("div", { class: "bar" });
    const place = el("div", { class: "stage" });
    this.below = el("div", { class: "pad scroll tables", style: { "max-height": "34%" } });
    host.append(this.bar, place, this.below);
    this.use();
    this.stage = new Stage(place, {
      label: "Memory over the steps. The largest buffers at the peak are in the table below.",
      bounds: stage => this.bounds(stage), draw: (context, stage) => this.draw(context, stage),
      hit: (x, y) => this.hit(x, y), boxes: () => this.buffers.map(({ first, last, offset, bytes }) =>
        [first, this.up(offset + bytes), last + 1 - first, bytes]),
      tip: buffer => this.tipOf(buffer), click: buffer => (buffer ? this.choose(buffer) : select(null)),
    });
  }

  use() {
    const { play } = this, { plan } = play;
    this.plan = plan;
    this.buffers = plan.buffers.filter(each => each.kind === "arena" && each.first >= 0 && each.bytes > 0);
    this.height = largest(this.buffers.map(each => each.offset + each.bytes), 1);
    this.backward = plan.backward(play);
    const groups = new Map();
    for (const buffer of this.buffers) {
      const module = plan.module[buffer.first].split(".").slice(0, 2).join(".");
      if (!groups.has(module)) groups.set(module, groups.size);
      buffer.group = groups.get(module);
    }
    const limit = plan => (plan.limit > 0 ? "at most " + bytesText(plan.limit) : "without a limit");
    const parts = Object.entries(plan.parts).filter(([, bytes]) => bytes > 0);
    fill(this.bar,
      el("span", {}, "Peak ", el("b", {}, bytesText(plan.peak)), parts.length > 0 ? " = " : "",
          parts.map(([name, bytes]) => `${bytesText(bytes)} ${name}`).join(" + ")),
      play.plans.length > 1 ? choice("Plan", play.plans.map((plan, i) => [String(i), limit(plan)]),
          String(play.plans.indexOf(plan)), i => this.switchTo(Number(i))) : "",
      plan.again.size > 0 ? el("span", {}, el("b", {}, plan.again.size),
        ` ${plural(plan.again.size, "step")} run again (shaded)`) : "",
      el("button", { onclick: () => this.stage.fit() }, "Fit"));
    this.listPeak();
  }
  switchTo(index) {
    this.play.plan = this.play.plans[index];
    this.use();
    this.stage.fit();
    select(null);
    changed("plan");
  }

  listPeak() {
    const { plan, play } = this, living = plan.livingAt(plan.peakStep);
    const rows = living.slice(0, 40).map(each => [
      each.label, bytesText(each.bytes), percent(each.bytes / plan.live[plan.peakStep]),
      each.node >= 0 ? play.typeText(each.node) : "", `${each.first} – ${each.last}`,
      each.node >= 0 ? play.place(play.site[each.node]) : ""]);
    fill(this.below,
      el("div", {}, el("h2", {}, `At the peak, step ${plan.peakStep} (${plan.op[plan.peakStep]}): `,
        `${bytesText(plan.live[plan.peakStep])} in ${counted(living.length, "buffer")}`),
      table(["buffer", "size|n", "share|n", "type", "steps", "line"], rows, i => this.choose(living[i]))),
      this.play.curve?.length > 1 ? this.curveTable() : "",
      this.play.plans.length > 1 ? this.planTable() : "");
  }
  curveTable() {
    const { curve } = this.play, base = curve[0][1];
    const rows = curve.map(([bytes, seconds, again]) => [bytesText(bytes), "+" + percent(seconds / base - 1), again]);
    return el("div", {}, el("h2", {}, "Plans that need less memory"),
        table(["memory|n", "time|n", "steps again|n"], rows));
  }
  planTable() {
    return el("div", {}, el("h2", {}, "The plans of this page"),
        table(["limit", "peak|n", "arena|n", "time|n", "steps again|n"],
      this.play.plans.map(plan => [plan.limit > 0 ? bytesText(plan.limit) : "none", bytesText(plan.peak),
          bytesText(plan.arena), secondsText(plan.total), plan.again.size]),
      i => this.switchTo(i)));
  }

  bounds(stage) {
    const width = this.plan.count;
    const sx = width / Math.max(50, stage.width - edge.left - 16),
        sy = this.height / Math.max(50, stage.height - edge.top - edge.bottom);
    return { x: -edge.left * sx, y: -edge.top * sy, width: width + (edge.left + 16) * sx,
        height: this.height + (edge.top + edge.bottom) * sy };
  }
  // The arena grows upwards, the coordinates of the canvas downwards.
  up(bytes) {
    return this.height - bytes;
  }

  draw(context, stage) {
    const { plan } = this, { selection } = state;
    const rect = (x, y, width, height) => [stage.toX(x), stage.toY(y), width * stage.kx, height * stage.ky];
    context.save();
    context.beginPath();
    context.rect(edge.left, 0, stage.width - edge.left, stage.height - edge.bottom);
    context.clip();
    context.fillStyle = colour("soft");
    for (const step of plan.again) context.fillRect(...rect(step, -1e12, 1, 2e12));
    for (const buffer of this.buffers) {
      const [x, y, w, h] = rect(buffer.first, this.up(buffer.offset + buffer.bytes), buffer.last + 1 - buffer.first,
          buffer.bytes);
      if (x > stage.width || y > stage.height || x + w < edge.left || y + h < 0) continue;
      const on = !selection || this.isOn(buffer, selection);
      context.globalAlpha = on ? 0.85 : 0.16;
      context.fillStyle = selection && on ? colour("mark") : seriesColour(buffer.group);
      context.fillRect(x, y, Math.max(w, 0.6), Math.max(h, 0.6));
      context.globalAlpha = 1;
      if (h > 3 && w > 3) {
        context.strokeStyle = colour(buffer === stage.hovered ? "text" : "page");
        context.lineWidth = buffer === stage.hovered ? 2 : 0.7;
        context.strokeRect(x, y, w, h);
      }
      if (h > 14 && w > 70 && on) {
        context.fillStyle = ink(context.fillStyle);
        context.textAlign = "left";
        context.fillText(fitted(context, `${shown(buffer.label)}  ${bytesText(buffer.bytes)}`, w - 10),
            Math.max(x, edge.left) + 5, y + h / 2);
      }
    }
    context.strokeStyle = colour("text");
    context.lineWidth = 1.4;
    context.beginPath();  // how much is in use
    plan.live.forEach((bytes, step) => {
      context.lineTo(stage.toX(step), stage.toY(this.up(bytes)));
      context.lineTo(stage.toX(step + 1), stage.toY(this.up(bytes)));
    });
    context.stroke();
    this.drawMark(context, stage, plan.peakStep + 0.5, "peak", 9, stage.toX(plan.peakStep) > edge.left + 40 ? -1 : 1);
    if (this.backward >= 0) this.drawMark(context, stage, this.backward, "backward", 24, 1);
    context.restore();
    this.drawAxes(context, stage);
  }
  drawMark(context, stage, step, text, y, way) {
    const x = stage.toX(step);
    context.setLineDash([5, 4]);
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, stage.height);
    context.stroke();
    context.setLineDash([]);
    context.textAlign = way < 0 ? "right" : "left";
    context.save();  // the text has an edge, because it stands on buffers and curves
    context.strokeStyle = colour("page");
    context.lineWidth = 4;
    context.strokeText(text, x + 5 * way, y);
    context.restore();
    context.fillStyle = colour("text");
    context.fillText(text, x + 5 * way, y);
  }
  drawAxes(context, stage) {
    context.fillStyle = colour("dim");
    context.textAlign = "right";
    const lowest = this.height - (stage.y + (stage.height - edge.bottom) / stage.ky), highest = this.height - stage.y;
    const step = Math.max(1, 2 ** Math.ceil(Math.log2((highest - lowest) / 8)));
    const top = highest - 8 / stage.ky;  // so that no text is cut
    for (let at = Math.max(0, Math.ceil(lowest / step) * step); at < top; at += step)
      context.fillText(bytesText(at), edge.left - 6, stage.toY(this.up(at)));
    context.textAlign = "center";
    const per = Math.max(1, niceStep(stage.width / stage.kx / 8));
    const from = Math.max(0, Math.ceil((stage.x + edge.left / stage.kx) / per) * per);
    for (let at = from; at <= this.plan.count && stage.toX(at) < stage.width; at += per)
      context.fillText(numberText(at), stage.toX(at), stage.height - edge.bottom + 11);
    context.fillText("step", (edge.left + stage.width) / 2, stage.height - 8);
  }

  isOn(buffer, selection) {
    return selection.buffer ? selection.buffer === buffer : buffer.node >= 0 && selection.nodes?.[buffer.node] === 1;
  }
  hit(x, y) {
    const bytes = this.height - y;
    return this.buffers.find(each => each.first <= x && x <= each.last + 1 && each.offset <= bytes &&
        bytes <= each.offset + each.bytes) ?? null;
  }
  tipOf(buffer) {
    const { play, plan } = this, node = buffer.node;
    return [`${shown(buffer.label)}: ${bytesText(buffer.bytes)}`, node >= 0 ? play.typeText(node) : "",
      `steps ${buffer.first} to ${buffer.last}, of ${plan.count}`,
          node >= 0 ? shown(play.place(play.site[node])) : plan.module[buffer.first]].filter(Boolean).join("\n");
  }
  choose(buffer) {
    if (buffer.node >= 0) selectNode(buffer.node);
    else select({ kind: "buffer", title: buffer.label, buffer, nodes: [], steps: [buffer.first] });
  }
}

/// A step of an axis: 1, 2 or 5 times a power of ten.
export function niceStep(about) {
  const power = 10 ** Math.floor(Math.log10(Math.max(about, 1e-300))), rest = about / power;
  return Math.max(rest <= 1 ? 1 : rest <= 2 ? 2 : rest <= 5 ? 5 : 10, 1e-300) * power;
}

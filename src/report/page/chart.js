// Curves over updates with axes, a cross-hair and a brush.
import { numberText } from "./dom.js";
import { niceStep } from "./memory.js";
import { Stage, colour } from "./stage.js";

const frame = { left: 58, right: 12, top: 10, bottom: 26 };

/// The mean of the values around each, weighted exponentially as TensorBoard does, without the bias of the start.
export function smoothed(values, weight) {
  let last = 0, seen = 0;
  return values.map(value => {
    last = last * weight + value * (1 - weight);
    seen = seen * weight + 1 - weight;
    return last / seen;
  });
}

export class Chart {
  /// `curves`: { name, colour, steps, values, dashed, points }. `shared` is what all charts of a view have in common:
  /// { from, to (the brushed updates, or null), at (the update under the pointer), log, weight, charts }.
  constructor(host, label, curves, shared) {
    Object.assign(this, { curves, shared });
    shared.charts.push(this);
    this.stage = new Stage(host, { label: `${label}. Enter begins and ends a range to show.`, moves: "none",
      draw: context => this.draw(context), hit: x => this.stepAt(x), boxes: () => this.boxes(),
      tip: step => this.tipOf(step), over: step => this.point(step), press: step => this.brushed(step),
      all: () => this.show(null, null) });
  }
  show(from, to) {
    Object.assign(this.shared, { from, to });
    for (const chart of this.shared.charts) chart.stage.request();
  }
  point(step) {
    this.shared.at = step;
    if (step === null) this.brush = undefined;
    for (const chart of this.shared.charts) chart.stage.request();
  }
  width() {
    return Math.max(1, this.stage.width - frame.left - frame.right);
  }
  stepAt(x) {
    return this.from + Math.max(0, Math.min(1, (x - frame.left) / this.width())) * (this.to - this.from);
  }
  /// The updates of the longest curve, as columns of at least 4 pixels.
  boxes() {
    const { steps } = this.curves.reduce((a, b) => (b.steps.length > a.steps.length ? b : a));
    const places = steps.filter(step => step >= this.from && step <= this.to)
      .map(step => frame.left + (step - this.from) / (this.to - this.from) * this.width());
    let last = -Infinity;
    return places.filter(x => x - last >= 4 && (last = x)).map(x => [x, 0, 0, this.stage.height]);
  }
  tipOf(step) {
    return this.curves.map(curve => {
      const i = nearest(curve.steps, step);
      return i < 0 ? "" : `${curve.name}: ${numberText(curve.values[i])} at ${curve.steps[i]}`;
    }).filter(Boolean).join("\n");
  }
  brushed(end) {
    if (this.brush === undefined) return (this.brush = end);
    const [from, to] = [Math.min(this.brush, end), Math.max(this.brush, end)];
    if (to - from > (this.to - this.from) * 0.02) this.show(from, to);
    this.brush = undefined;
  }

  /// Finds the ranges of both axes.
  measure() {
    const { shared } = this;
    let [from, to, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const { steps } of this.curves) {
      from = Math.min(from, steps[0] ?? Infinity);
      to = Math.max(to, steps[steps.length - 1] ?? -Infinity);
    }
    this.from = shared.from ?? Math.min(from, 0);
    this.to = shared.to ?? Math.max(to, this.from + 1);
    for (const { steps, values } of this.curves)
      values.forEach((value, i) => {
        if (steps[i] < this.from || steps[i] > this.to || value === null || (shared.log && value <= 0)) return;
        low = Math.min(low, value);
        high = Math.max(high, value);
      });
    if (low > high) [low, high] = [0, 1];
    if (low === high) [low, high] = shared.log ? [low / 2, high * 2]
        : [low - Math.abs(low || 1) / 2, high + Math.abs(high || 1) / 2];
    this.scale = value => (shared.log ? Math.log10(value) : value);
    const margin = (this.scale(high) - this.scale(low)) * 0.05;
    this.low = this.scale(low) - margin;
    this.high = this.scale(high) + margin;
  }

  draw(context) {
    this.measure();
    const { width, height } = this.stage, { shared } = this;
    const x = step => frame.left + (step - this.from) / (this.to - this.from) * (width - frame.left - frame.right);
    const high = height - frame.top - frame.bottom;
    const y = value => frame.top + (this.high - this.scale(value)) / (this.high - this.low) * high;
    this.drawAxes(context, x, y, width, height);
    context.save();
    context.beginPath();
    context.rect(frame.left, 0, width - frame.left, height - frame.bottom);
    context.clip();
    for (const curve of this.curves) {
      const noisy = shared.weight > 0 && !curve.points && !curve.exact && curve.values.length > 20;
      this.drawCurve(context, curve, curve.values, x, y, noisy ? 0.28 : 1);
      if (noisy) this.drawCurve(context, curve, smoothed(curve.values, shared.weight), x, y, 1);
    }
    context.restore();
    if (shared.at === null || shared.at < this.from || shared.at > this.to) return;
    context.strokeStyle = colour("dim");
    context.lineWidth = 1;
    context.strokeRect(x(shared.at), frame.top, 0.01, height - frame.top - frame.bottom);
    if (this.brush === undefined) return;
    context.fillStyle = colour("soft");
    context.globalAlpha = 0.6;
    context.fillRect(x(this.brush), frame.top, x(shared.at) - x(this.brush), height - frame.top - frame.bottom);
    context.globalAlpha = 1;
  }
  drawCurve(context, curve, values, x, y, strength) {
    context.strokeStyle = context.fillStyle = curve.colour();
    context.globalAlpha = strength;
    context.lineWidth = strength < 1 ? 1 : 1.8;
    context.setLineDash(curve.dashed ? [6, 4] : []);
    context.beginPath();
    let down = false;
    values.forEach((value, i) => {
      if (value === null || (this.shared.log && value <= 0)) return (down = false);
      down ? context.lineTo(x(curve.steps[i]), y(value)) : context.moveTo(x(curve.steps[i]), y(value));
      down = true;
    });
    context.stroke();
    context.setLineDash([]);
    const all = curve.points && values.length < 200, none = i => (values[i] ?? null) === null;
    values.forEach((value, i) => {  // a number between none is no line
      if (!none(i) && (all || (none(i - 1) && none(i + 1)))) dot(context, x(curve.steps[i]), y(value), 2.4);
    });
    if (curve.best) {
      context.lineWidth = 2;
      context.beginPath();
      context.arc(x(curve.best.step), y(curve.best.value), 6, 0, 7);
      context.stroke();
    }
    context.globalAlpha = 1;
  }
  drawAxes(context, x, y, width, height) {
    context.strokeStyle = colour("line");
    context.fillStyle = colour("dim");
    context.lineWidth = 1;
    context.font = "11px system-ui, sans-serif";
    const line = (fromX, fromY, toX, toY) => {
      context.beginPath();
      context.moveTo(fromX, fromY);
      context.lineTo(toX, toY);
      context.stroke();
    };
    context.textAlign = "right";
    for (const value of ticks(this.low, this.high, this.shared.log)) {
      line(frame.left, y(value), width - frame.right, y(value));
      context.fillText(numberText(value), frame.left - 6, y(value));
    }
    context.textAlign = "center";
    const step = Math.max(1, niceStep((this.to - this.from) / Math.max(2, width / 110)));
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step)
      context.fillText(at.toLocaleString("en"), x(at), height - 12);
    line(frame.left, height - frame.bottom, width - frame.right, height - frame.bottom);
  }
}

function dot(context, x, y, radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 7);
  context.fill();
}

function ticks(low, high, log) {
  const step = log ? Math.max(1, Math.ceil((high - low) / 5)) : niceStep((high - low) / 5), found = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step)
    found.push(log ? 10 ** at : Math.abs(at) < step / 1e6 ? 0 : at);
  return log && found.length < 2 ? [10 ** low, 10 ** ((low + high) / 2), 10 ** high] : found;
}

/// The index of the value nearest to `at` in a sorted list, or -1.
function nearest(list, at) {
  let low = 0, high = list.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < at) low = middle + 1;
    else high = middle;
  }
  return low > 0 && at - list[low - 1] < list[low] - at ? low - 1 : list.length > 0 ? low : -1;
}

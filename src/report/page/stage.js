// A canvas that is drawn at the resolution of the screen, and that pointers and keys move.
import { el, shown } from "./dom.js";

const tip = el("div", { class: "tip", hidden: true, role: "status" });

export function showTip(text, x, y) {
  if (!tip.isConnected) document.body.append(tip);
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - width - 6)) + "px";
  tip.style.top = Math.max(4, y + 16 + height > innerHeight ? y - height - 10 : y + 16) + "px";
}

/// The value of a colour of style.css, such as "accent". A drawing asks for thousands, so it looks each up once.
const colours = new Map();
export function colour(name) {
  if (!colours.has(name))
    colours.set(name, getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim());
  return colours.get(name);
}
export const seriesColour = index => colour("c" + index % 8);

/// A colour-blind-safe scale from 0 to 1, from blue over green to yellow (viridis).
const scale = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
export function shade(value) {
  const at = Math.max(0, Math.min(1, value)) * (scale.length - 1), low = Math.min(scale.length - 2, Math.floor(at));
  return scale[low].map((from, i) => Math.round(from + (scale[low + 1][i] - from) * (at - low)));
}
export const hex = bytes => "#" + bytes.map(byte => byte.toString(16).padStart(2, "0")).join("");
export const shadeText = value => hex(shade(value));
/// Black or white, whichever is easier to read on a colour "#rrggbb".
export function ink(of) {
  const [red, green, blue] = of.match(/[\da-f]{2}/gi).map(byte => (parseInt(byte, 16) / 255) ** 2.2);
  return 0.21 * red + 0.72 * green + 0.07 * blue > 0.19 ? "#10131a" : "#fff";
}

const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const orders = { PageDown: 1, PageUp: -1, Home: -Infinity, End: Infinity };
const middle = ([from, to]) => (from + to) / 2, gap = ([a, b], [c, d]) => Math.max(0, a - d, c - b);

export const stages = new Set();
/// Draws all pictures in the next frame, or now: before a page is printed there is no frame.
export function redrawAll(now = false) {
  for (const stage of stages)
    if (!stage.canvas.isConnected) stages.delete(stage);
    else if (now) stage.draw();
    else stage.request();
}

export class Stage {
  /// `options`: label, draw(context, stage), bounds(stage) in the coordinates of the drawing (default: pixels), with
  /// `top` if the picture begins below its upper edge, hit(x, y) with a thing or null, boxes() with [x, y, width,
  /// height] of all things, tip(thing), click(thing), over(thing), press(thing) where a drag begins and ends, all(),
  /// which shows everything, moves ("both", "x" or "none"), and uniform, if both axes have one scale.
  /// Keys move a pointer, `at`, from box to box. Its hover and its click are those of the mouse.
  constructor(host, options) {
    this.options = { moves: "both", bounds: ({ width, height }) => ({ x: 0, y: 0, width, height }),
        all: () => this.fit(), ...options };
    this.canvas = el("canvas", { tabindex: "0", role: "application", "aria-label": shown(options.label) +
        " Arrow keys go from one to the next, Page Down through all, Enter clicks, Shift and arrow keys move the " +
        "picture, + and - zoom, 0 shows everything." });
    host.append(this.canvas);
    Object.assign(this, { x: 0, y: 0, kx: 1, ky: 1, width: 0, height: 0, drawn: 0, hovered: null,
        at: null, pointers: new Map() });
    stages.add(this);
    new ResizeObserver(() => this.resized()).observe(host);
    this.listen();
    this.resized(false);
  }

  resized(draws = true) {
    const { clientWidth: width, clientHeight: height } = this.canvas.parentElement;
    if (width === 0 || (width === this.width && height === this.height)) return;
    const fits = this.width === 0 || this.fitted;
    Object.assign(this, { width, height });
    if (fits) this.fit();
    if (draws) this.draw();
  }
  /// Shows everything.
  fit() {
    if (this.width === 0) return;
    const { x, y, width, height, top = y } = this.options.bounds(this);
    const pad = this.options.pad ?? 0;
    this.kx = (this.width - 2 * pad) / Math.max(width, 1e-9);
    this.ky = (this.height - 2 * pad) / Math.max(height, 1e-9);
    if (this.options.uniform) {
      this.kx = this.ky = Math.min(this.kx, this.ky, 1.15);
      if (this.options.readable && this.kx < 0.55) this.kx = this.ky = 0.55;
    }
    const wide = this.options.uniform && width * this.kx > this.width;  // then the beginning is shown
    this.x = wide ? x - pad / this.kx : x - (this.width / this.kx - width) / 2;
    this.y = this.options.uniform && height * this.ky > this.height ? top - pad / this.ky
      : y - (this.height / this.ky - height) / 2;
    this.fitted = true;
    this.request();
  }
  center(x, y) {
    this.x = x - this.width / this.kx / 2;
    this.y = y - this.height / this.ky / 2;
    this.at = { x: this.width / 2, y: this.height / 2 };
    this.moved();
  }
  moved() {
    this.fitted = false;
    this.request();
  }
  request() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => this.draw());
  }
  draw() {
    this.waiting = 0;
    if (this.width === 0) return;
    const begun = performance.now(), ratio = devicePixelRatio || 1;
    const wide = Math.round(this.width * ratio), high = Math.round(this.height * ratio);
    if (this.canvas.width !== wide || this.canvas.height !== high)
      Object.assign(this.canvas, { width: wide, height: high });
    const context = this.canvas.getContext("2d");
    colours.clear();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.options.draw(context, this);
    if (this.at && document.activeElement === this.canvas) this.drawPointer(context, ratio);
    this.drawn = performance.now() - begun;
  }
  drawPointer(context, ratio) {
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    for (const [name, width] of [["page", 6], ["mark", 3]]) {
      context.strokeStyle = colour(name);
      context.lineWidth = width;
      context.beginPath();
      context.arc(this.at.x, this.at.y, 7, 0, 7);
      context.stroke();
    }
  }

  toX(x) { return (x - this.x) * this.kx; }
  toY(y) { return (y - this.y) * this.ky; }
  zoom(factor, atX = this.width / 2, atY = this.height / 2) {
    const { moves, uniform } = this.options;
    if (moves === "none") return;
    const change = Math.max(0.02, Math.min(uniform ? 4 : 1e7, this.kx * factor)) / this.kx;
    this.x += atX / this.kx * (1 - 1 / change);
    this.kx *= change;
    if (moves === "both") {
      this.y += atY / this.ky * (1 - 1 / change);
      this.ky *= change;
    }
    this.moved();
  }
  pan(x, y) {
    if (this.options.moves === "none") return;
    this.x -= x / this.kx;
    if (this.options.moves === "both" || this.options.scrolls) this.y -= y / this.ky;
    this.moved();
  }
  hit(event) {
    const box = this.canvas.getBoundingClientRect();
    return this.options.hit?.(this.x + (event.clientX - box.left) / this.kx,
        this.y + (event.clientY - box.top) / this.ky) ?? null;
  }

  listen() {
    const { canvas, pointers } = this;
    const place = event => ({ x: event.clientX, y: event.clientY });
    canvas.addEventListener("wheel", event => {
      if (this.options.moves === "none") return;
      event.preventDefault();
      const box = canvas.getBoundingClientRect();
      this.zoom(Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0016)), event.clientX - box.left,
          event.clientY - box.top);
    }, { passive: false });
    canvas.addEventListener("pointerdown", event => {
      pointers.set(event.pointerId, place(event));
      canvas.setPointerCapture(event.pointerId);
      this.travelled = pointers.size > 1 ? 99 : 0;
      this.options.press?.(this.hit(event));
    });
    canvas.addEventListener("pointermove", event => this.pointed(event, place(event)));
    canvas.addEventListener("pointerup", event => {
      if (pointers.delete(event.pointerId)) this.released(event, this.travelled < 5);
    });
    canvas.addEventListener("pointercancel", event => pointers.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => this.hover(null));
    for (const change of ["focus", "blur", "keydown"]) canvas.addEventListener(change, () => this.request());
    canvas.addEventListener("blur", () => this.hover(null));
    canvas.addEventListener("dblclick", () => this.options.all());
    canvas.addEventListener("keydown", event => this.pressed(event));
  }
  pointed(event, now) {
    const { pointers } = this, before = pointers.get(event.pointerId);
    if (this.at) this.request();
    this.at = null;
    if (!before || this.options.moves === "none") this.hover(this.hit(event), event);
    if (!before) return;
    this.travelled += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const apart = (a, b) => Math.hypot(a.x - b.x, a.y - b.y) + 1, box = this.canvas.getBoundingClientRect();
      this.zoom(apart(now, other) / apart(before, other), (now.x + other.x) / 2 - box.left,
          (now.y + other.y) / 2 - box.top);
    } else if (this.travelled >= 5) {
      this.pan(now.x - before.x, now.y - before.y);
    }
    pointers.set(event.pointerId, now);
  }
  hover(thing, event) {
    if (thing !== this.hovered) this.request();
    this.hovered = thing;
    this.options.over?.(thing);
    this.canvas.style.cursor = thing !== null ? "pointer" : this.options.moves === "none" ? "default" : "grab";
    showTip(thing !== null ? this.options.tip?.(thing) : "", event?.clientX, event?.clientY);
  }
  released(event, clicks) {
    const thing = this.hit(event);
    this.options.press?.(thing);
    if (clicks) this.options.click?.(thing);
  }

  pressed(event) {
    const { key } = event, way = ways[key], { at } = this;
    if (key === "Escape") return this.hover((this.at = null));
    if (way && event.shiftKey) this.pan(-60 * way[0], -60 * way[1]);
    else if (way || orders[key]) this.walk(way, orders[key]);
    else if (key === "Enter" || key === " ") this.touch(true);
    else if (key === "+" || key === "=") this.zoom(1.3, at?.x, at?.y);
    else if (key === "-") this.zoom(1 / 1.3, at?.x, at?.y);
    else if (key === "0") this.options.all();
    else return;
    event.preventDefault();
  }
  /// Hovers where the pointer of the keys is, perhaps after a click there.
  touch(clicks) {
    if (!this.at) return;
    const box = this.canvas.getBoundingClientRect();
    const event = { clientX: box.left + this.at.x, clientY: box.top + this.at.y };
    if (clicks) this.released(event, true);
    this.hover(this.hit(event), event);
  }
  /// The visible part of a box in pixels, or the whole box if no part is visible.
  seen([left, top, width, height]) {
    const part = (from, to, most) => (from < most && to > 0 ? [Math.max(0, from), Math.min(most, to)] : [from, to]);
    return { x: part(this.toX(left), this.toX(left + width), this.width),
      y: part(this.toY(top), this.toY(top + height), this.height) };
  }
  /// Moves the pointer of the keys to the nearest box on a way, or by some boxes in their order.
  walk(way, steps) {
    const boxes = (this.options.boxes?.() ?? []).map(box => this.seen(box)), { at } = this;
    const least = cost => boxes.reduce((best, box) => (cost(box) < cost(best) ? box : best), boxes[0]);
    const off = (span, size) => (middle(span) > 0 && middle(span) < size ? 0 : size / 2 - middle(span));
    const here = at && least(({ x, y }) => gap(x, [at.x, at.x]) + gap(y, [at.y, at.y]) +
        Math.hypot(middle(x) - at.x, middle(y) - at.y) / 1000);
    const costOf = ({ x, y }) => {
      const [along, across, from, beside] = way[0] ? [x, y, here.x, here.y] : [y, x, here.y, here.x];
      return (way[0] + way[1]) * (middle(along) - middle(from)) < 0.5 ? Infinity
        : gap(along, from) + 3 * gap(across, beside) + Math.abs(middle(across) - middle(beside)) / 10;
    };
    const place = Math.max(0, Math.min(boxes.length - 1, boxes.indexOf(here) + steps));
    const next = steps ? boxes[place] : here ? least(costOf)
        : boxes.find(({ x, y }) => !off(x, this.width) && !off(y, this.height)) ?? boxes[0];
    if (!next || (here && !steps && costOf(next) === Infinity)) return;
    const right = off(next.x, this.width), down = off(next.y, this.height);
    if (right || down) this.pan(right, down);
    this.at = { x: middle(next.x) + right, y: middle(next.y) + down };
    this.touch(false);
  }
}

/// Cuts a text so that it fits into `width` pixels.
const widths = new Map();
export function fitted(context, text, width) {
  const key = context.font + text;
  if (!widths.has(key)) widths.set(key, context.measureText(text).width);
  if (widths.get(key) <= width) return text;
  const letters = Math.floor(text.length * width / widths.get(key)) - 1;
  return letters < 1 ? "" : text.slice(0, letters) + "…";
}

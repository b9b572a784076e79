// A canvas that is drawn at the resolution of the screen, and that pointers and keys move.
import { el } from "./dom.js";

const tip = el("div", { class: "tip", hidden: true, "aria-hidden": "true" });

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
export const shadeText = value => `rgb(${shade(value).join(" ")})`;

const stages = new Set();
/// Draws all pictures in the next frame, or now: before a page is printed there is no frame.
export function redrawAll(now = false) {
  for (const stage of stages)
    if (!stage.canvas.isConnected) stages.delete(stage);
    else if (now) stage.draw();
    else stage.request();
}

export class Stage {
  /// `options`: label, draw(context, stage), bounds(stage) in the coordinates of the drawing, with `top`
  /// if the picture begins below its upper edge, hit(x, y) with a thing or null, tip(thing), click(thing, event), moves
  /// ("both", "x" or "none"), and uniform, if both axes have one scale.
  constructor(host, options) {
    this.options = { moves: "both", ...options };
    this.canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": options.label });
    host.append(this.canvas);
    Object.assign(this, { x: 0, y: 0, kx: 1, ky: 1, width: 0, height: 0, drawn: 0, hovered: null,
        pointers: new Map() });
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
    this.moved();
  }
  moved() {
    this.fitted = false;
    this.request();
    this.options.moved?.(this);
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
    this.drawn = performance.now() - begun;
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
        this.y + (event.clientY - box.top) / this.ky, this) ?? null;
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
    });
    canvas.addEventListener("pointermove", event => this.pointed(event, place(event)));
    canvas.addEventListener("pointerup", event => {
      if (pointers.delete(event.pointerId) && this.travelled < 5) this.options.click?.(this.hit(event), event);
    });
    canvas.addEventListener("pointercancel", event => pointers.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => this.hover(null));
    canvas.addEventListener("dblclick", () => this.options.moves !== "none" && this.fit());
    canvas.addEventListener("keydown", event => this.pressed(event));
  }
  pointed(event, now) {
    const { pointers } = this, before = pointers.get(event.pointerId);
    if (!before) return this.hover(this.hit(event), event);
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
    this.canvas.style.cursor = thing ? "pointer" : this.options.moves === "none" ? "default" : "grab";
    showTip(thing ? this.options.tip?.(thing, event) : "", event?.clientX, event?.clientY);
  }
  pressed(event) {
    const step = 60, ways = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    if (ways[event.key]) this.pan(...ways[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(1.3);
    else if (event.key === "-") this.zoom(1 / 1.3);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
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

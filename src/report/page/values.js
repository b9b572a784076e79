// Numbers: ranges, histograms and pictures of values. Failures: the chain of causes.
import { bytesOf, choice, el, facts, numberText, percent, roving, shortType, shown, table } from "./dom.js";
import { pixels } from "./attention.js";
import { select, selectNode, state } from "./state.js";

function svg(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

/// The range, the histogram and a picture of an array.
export function pictureOf(picture) {
  const most = Math.max(1, ...picture.bins), { image } = picture;
  const bars = svg("svg", { viewBox: "0 0 200 46", width: "100%", height: 56, preserveAspectRatio: "none", role: "img",
    "aria-label": "Histogram" });
  picture.bins.forEach((count, i) => {
    const height = count > 0 ? Math.max(1, 45 * count / most) : 0;
    bars.append(svg("rect", { x: 5 * i, y: 46 - height, width: 4.5, height, fill: "var(--c0)" }));
  });
  const share = count => (count > 0 ? `${count.toLocaleString("en")} (${percent(count / picture.count)})` : "");
  const bad = count => (count > 0 ? el("span", { class: "bad" }, share(count)) : "");
  return el("div", {}, facts([
    ["range", picture.min === null ? "no finite number" : `${numberText(picture.min)} … ${numberText(picture.max)}`],
    ["mean, RMS", picture.min === null ? "" : `${numberText(picture.mean)}, ${numberText(picture.rms)}`],
    ["zeros", share(picture.zeros)], ["NaN", bad(picture.nan)], ["infinite", bad(picture.inf)],
  ]), bars, image && bytesOf(image.pixels).length > 1 ? slicesOf(image) : "");
}

/// The last two axes of an array as an image, and a slider for each axis before them.
function slicesOf({ rows, columns, of, axes, pixels: text }) {
  const bytes = bytesOf(text), canvas = el("canvas", { class: "image" }), at = axes.map(() => 0);
  const place = axis => Math.floor(at[axis] * axes[axis][0] / axes[axis][1]);
  const label = el("span", { class: "dim" });
  const show = () => {
    const image = at.reduce((all, i, axis) => all * axes[axis][1] + i, 0);
    pixels(canvas, bytes, rows, columns, { offset: image * rows * columns });
    label.textContent = axes.length > 0 ? `[${[...at.map((_, axis) => place(axis)), ":", ":"].join(", ")}]` : "";
    canvas.setAttribute("aria-label", `Picture of the elements ${label.textContent}`);
  };
  const sliders = axes.map(([size, kept], axis) => kept < 2 ? "" : el("label", {}, `axis ${axis}`, el("input",
    { type: "range", min: 0, max: kept - 1, value: 0, oninput: event => {
      at[axis] = Number(event.target.value);
      show();
    } })));
  const thinned = [[of[0], rows, "rows"], [of[1], columns, "columns"],
    ...axes.map(([size, kept], axis) => [size, kept, `places of axis ${axis}`])].filter(([size, kept]) => kept < size)
    .map(([size, kept, what]) => `${kept} of ${size.toLocaleString("en")} ${what}`);
  show();
  return el("div", {}, el("div", { class: "bar slices" }, label, sliders), canvas,
    thinned.length > 0 ? el("div", { class: "dim" }, `Thinned: ${thinned.join(", ")}.`) : "");
}

const notFinite = value => value.nan + value.inf;
const valueOrders = {
  name: null,
  "largest size": value => -Math.max(Math.abs(value.min), Math.abs(value.max)),
  RMS: value => -value.rms,
  "share of zeros": value => -value.zeros / Math.max(1, value.count),
  "not finite": value => -notFinite(value),
};

export class ValuesView {
  constructor(host) {
    this.values = [...state.play.values.values()];
    this.order = "name";
    this.find = el("input", { type: "search", placeholder: "Filter by name or type",
      "aria-label": "Filter by name or type", oninput: () => this.show() });
    this.place = el("div", { class: "pad scroll" });
    const orders = Object.keys(valueOrders).map(name => [name, name]);
    host.append(el("div", { class: "bar" }, this.find, choice("Order", orders, this.order, name => {
      this.order = name;
      this.show();
    }), el("span", {}, `${this.values.length.toLocaleString("en")} values of one play`)), this.place);
    this.show();
  }
  show() {
    const words = this.find.value.toLowerCase(), by = valueOrders[this.order];
    const found = this.values.filter(value => (value.label + value.type).toLowerCase().includes(words));
    if (by) found.sort((a, b) => by(a) - by(b));
    const headings = ["value", "type", "least|n", "largest|n", "mean|n", "RMS|n", "zeros|n", "not finite|n"];
    this.place.replaceChildren(table(headings, found.slice(0, 400).map(value => [value.label, shortType(value.type),
      ...["min", "max", "mean", "rms"].map(key => numberText(value[key])),
          percent(value.zeros / Math.max(1, value.count)),
      notFinite(value) > 0 ? notFinite(value).toLocaleString("en") : ""]), i => this.choose(found[i])));
  }
  choose(value) {
    const { play } = state;
    if (value.node >= 0 && value.node < play.count) return selectNode(value.node);
    const isSource = node => play.label[node] !== "" && value.label.includes(`'${play.label[node]}'`);
    select({ kind: "value", title: value.label, value, nodes: isSource });
  }
}

export class FailureView {
  constructor(host) {
    const { failure } = state.play, chain = el("ol", { class: "chain" });
    const item = (title, lines, of) => chain.append(el("li", {}, el("button", { onclick: () => this.show(of) },
      el("b", {}, shown(title)), lines.filter(Boolean).map(line => el("div", { class: "dim" }, shown(line))))));
    const element = ({ element }) => element.length > 0 && `element [${element.join(", ")}]`;
    item(failure.error ? `${failure.node} throws` : `${failure.node} makes ${failure.what}`,
        [failure.error && failure.what,
      failure.type, failure.site, failure.range, element(failure), failure.backward && "in the backward part"],
          failure);
    for (const cause of failure.causes)
      item(`because of ${cause.node}`,
          [cause.type, cause.site, cause.range, element(cause) && `${element(cause)} is ${cause.number}`,
        cause.steps.length > 0 && `in time steps ${cause.steps.join(", ")}`, cause.row], cause);
    host.append(el("div", { class: "pad" }, el("h2", {}, "What failed, and why"), el("p", {}, shown(failure.text)),
        roving(chain),
      el("p", { class: "dim" }, `Found by xtape ${shown(failure.version)} on ${shown(failure.set)}. `, failure.whole
        ? "A click shows a value in the graph of the whole play."
        : "The graph is the capsule: the smallest part of the play that fails.")),
    el("div", { class: "grid" }, failure.operands.map(operand => el("div", { class: "card" },
      el("h2", {}, shown(operand.name)), el("div", { class: "dim" }, shortType(operand.type)),
          pictureOf(operand.of)))));
    this.show(failure);
  }
  /// Selects the node of a cause. In a capsule, nodes have other numbers, and the site tells which it is.
  show({ node, site }) {
    const { play } = state, number = node.startsWith("#") ? parseInt(node.slice(1), 10) : -1;
    if (play.failure.whole && number >= 0) return selectNode(number);
    const named = play.label.findIndex(label => label !== "" && node.includes(`'${label}'`));
    if (play.failure.whole && named >= 0) return selectNode(named);
    select({ kind: "site", title: node, nodes: i => site !== "" && play.sites[play.site[i]].text === site });
  }
}

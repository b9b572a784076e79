// Numbers: ranges, histograms and pictures of values. Failures: the chain of causes. Comparison of two plays.
import { bytesOf, bytesText, clickable, el, numberText, percent, secondsText, shortType, shown, table } from "./dom.js";
import { pixels } from "./attention.js";
import { select, selectNode, state } from "./state.js";

/// A card with the range, the histogram and a picture of an array.
export function pictureOf(picture) {
  const most = Math.max(1, ...picture.bins), space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  for (const [key, value] of Object.entries({ viewBox: "0 0 200 46", role: "img", width: "100%", height: "56", preserveAspectRatio: "none", "aria-label": "Histogram" })) svg.setAttribute(key, value);
  picture.bins.forEach((count, i) => {
    const bar = document.createElementNS(space, "rect"), height = count > 0 ? Math.max(1, 45 * count / most) : 0;
    for (const [key, value] of Object.entries({ x: 5 * i, y: 46 - height, width: 4.5, height, fill: "var(--c0)" })) bar.setAttribute(key, value);
    svg.append(bar);
  });
  const canvas = el("canvas", { style: { width: "100%", "max-height": "130px", "image-rendering": "pixelated" }, "aria-label": "Picture of the first matrix" });
  if (picture.image) pixels(canvas, bytesOf(picture.image.pixels), picture.image.rows, picture.image.columns, { most: 254, hole: 255 });
  const share = count => `${count.toLocaleString("en")} (${percent(count / picture.count)})`;
  return el("div", {}, el("dl", {}, ...[["range", `${numberText(picture.min)} … ${numberText(picture.max)}`], ["mean, RMS", `${numberText(picture.mean)}, ${numberText(picture.rms)}`],
    ["zeros", picture.zeros > 0 ? share(picture.zeros) : ""], ["NaN", picture.nan > 0 ? share(picture.nan) : ""], ["infinite", picture.inf > 0 ? share(picture.inf) : ""]]
    .filter(([, value]) => value !== "").flatMap(([key, value]) => [el("dt", {}, key), el("dd", { class: key === "NaN" || key === "infinite" ? "bad" : "" }, value)])),
  svg, picture.image && picture.image.rows * picture.image.columns > 1 ? canvas : "");
}

export class ValuesView {
  constructor(host) {
    const { play } = state, values = [...play.values.values()], find = el("input", { type: "search", placeholder: "Filter by name or type", "aria-label": "Filter values" });
    const place = el("div", { class: "pad scroll" }), keys = { label: "name", rms: "RMS", zeros: "share of zeros", bad: "not finite" };
    let order = "label";
    const show = () => {
      const words = find.value.toLowerCase();
      const bad = value => value.nan + value.inf, by = { rms: value => -value.rms, zeros: value => -value.zeros / value.count, bad: value => -bad(value) }[order];
      const found = values.filter(value => (value.label + value.type).toLowerCase().includes(words));
      if (by) found.sort((a, b) => by(a) - by(b));
      place.replaceChildren(table(["value", "type", "least|n", "largest|n", "mean|n", "RMS|n", "zeros|n", "not finite|n"], found.slice(0, 400).map(value =>
        [value.label, shortType(value.type), numberText(value.min), numberText(value.max), numberText(value.mean), numberText(value.rms),
          percent(value.zeros / Math.max(1, value.count)), bad(value) > 0 ? bad(value).toLocaleString("en") : ""]), i => choose(found[i])));
    };
    const choose = value => (value.node >= 0 && value.node < play.count ? selectNode(value.node) : select({ kind: "value", title: value.label, value, nodes: node => play.label[node] !== "" && value.label.includes(`'${play.label[node]}'`) }));
    find.addEventListener("input", show);
    const sort = el("select", { "aria-label": "Order", onchange: event => {
      order = event.target.value;
      show();
    } }, Object.entries(keys).map(([key, name]) => el("option", { value: key }, name)));
    host.append(el("div", { class: "bar" }, find, el("label", {}, "Order", sort), el("span", {}, `${values.length.toLocaleString("en")} values of one play`)), place);
    show();
  }
}

export class FailureView {
  constructor(host) {
    const { failure } = state.play, chain = el("ol", { class: "chain" });
    const item = (title, lines, go) => chain.append(clickable(el("li", {}, el("b", {}, shown(title)), lines.filter(Boolean).map(line => el("div", { class: "dim" }, shown(line)))), go));
    item(failure.error ? `${failure.node} throws` : `${failure.node} makes ${failure.what}`,
      [failure.error ? failure.what : "", failure.type, failure.site, failure.range, failure.element.length > 0 ? `first at element [${failure.element.join(", ")}]` : "", failure.backward ? "in the backward part" : ""], () => this.show(failure));
    for (const cause of failure.causes)
      item(`because of ${cause.node}`, [cause.type, cause.site, cause.range, cause.element.length > 0 ? `element [${cause.element.join(", ")}] is ${cause.number}` : "", cause.steps.length > 0 ? `in time steps ${cause.steps.join(", ")}` : "", cause.row], () => this.show(cause));
    host.append(el("div", { class: "pad" }, el("h2", {}, "What failed, and why"), el("p", {}, shown(failure.text)), chain,
      el("p", { class: "dim" }, `Found by xtape ${shown(failure.version)} on ${shown(failure.set)}. ` + (failure.whole ? "A click shows a value in the graph of the whole play." : "The graph is the capsule: the smallest part of the play that fails."))),
    el("div", { class: "grid" }, failure.operands.map(operand => el("div", { class: "card" }, el("h2", {}, shown(operand.name)), el("div", { class: "dim" }, shortType(operand.type)), pictureOf(operand.of)))));
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

/// Two plays side by side: sizes, ops, modules, and the first difference.
export class CompareView {
  constructor(host) {
    const [a, b] = state.page.plays;
    const count = (play, nameOf, value = () => 1) => {
      const found = new Map();
      for (let node = 0; node < play.count; ++node) if (!play.isHidden(node)) found.set(nameOf(play, node), (found.get(nameOf(play, node)) ?? 0) + value(play, node));
      return found;
    };
    const rows = nameOf => {
      const [inA, inB] = [count(a, nameOf), count(b, nameOf)];
      return [...new Set([...inA.keys(), ...inB.keys()])].map(key => [key, inA.get(key) ?? 0, inB.get(key) ?? 0]).sort((x, y) => Math.abs(y[1] - y[2]) - Math.abs(x[1] - x[2]) || y[1] - x[1]);
    };
    const plan = (text, of) => [text, a.plan ? of(a.plan) : "–", b.plan ? of(b.plan) : "–"];
    const two = (title, all) => el("div", { class: "card scroll" }, el("h2", {}, title), table(["", a.name + "|n", b.name + "|n"], all.slice(0, 60)));
    host.append(el("div", { class: "pad" }, el("h2", {}, "First difference"), el("pre", {}, shown(state.page.difference || "The tapes record the same computation.").replaceAll("␊", "\n"))),
      el("div", { class: "grid" }, two("Sizes", [["nodes", a.count, b.count], plan("steps", each => each.count), plan("peak", each => bytesText(each.peak)), plan("arena", each => bytesText(each.arena)), plan("time", each => secondsText(each.total)), plan("fused calls", each => each.fusions.filter(fusion => !fusion.miss).length)]),
        two("Nodes by op", rows((play, node) => play.op[node])), two("Nodes by module", rows((play, node) => play.modules(node).slice(0, 3).join(".") || "(no module)"))));
  }
}

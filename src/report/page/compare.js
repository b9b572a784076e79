// Two plays side by side: their graphs with what differs, their sizes, ops and modules.
import { bytesText, el, longText, secondsText, shown, shownLines, table } from "./dom.js";
import { compare } from "./difference.js";
import { GraphView } from "./graph.js";
import { colour } from "./stage.js";
import { selectNode, state, use } from "./state.js";

/// How a difference looks: by colour, sign and form, so that nobody needs to see the colour.
const looks = {
  removed: { sign: "−", says: "only in the first", radius: 0, dash: [7, 4], width: 2.5 },
  added: { sign: "+", says: "only in the second", radius: 18, dash: [], width: 2.5 },
  changed: { sign: "≠", says: "changed", radius: 6, dash: [2, 3], width: 2.5 },
};

/// "removed", "added", "changed" or "".
const kindOf = (play, node) => (play.change[node] === "" ? "" : play.change[node] !== "only" ? "changed"
    : play === state.page.plays[0] ? "removed" : "added");

/// The graph of one of the two plays.
class SideGraph extends GraphView {
  showBar() {
    this.bar.replaceChildren(el("b", {}, shown(this.play.name)),
      el("span", {}, `${this.play.count.toLocaleString("en")} nodes`),
      el("button", { onclick: () => this.stage.fit() }, "Fit"));
  }
  /// How many nodes of an item differ, by kind.
  differing(item) {
    const { play } = this;
    const add = (counts, of) => {
      for (const [kind, count] of Object.entries(of)) counts[kind] = (counts[kind] ?? 0) + count;
      return counts;
    };
    const ofNode = node => (kindOf(play, node) === "" ? {} : { [kindOf(play, node)]: 1 });
    const ofBox = box => (box.differing ??= [...box.ops.map(ofNode),
      ...(box.members ?? [...box.kids.values()]).map(ofBox)].reduce(add, {}));
    return item.box ? ofBox(item.box) : ofNode(item.node);
  }
  makeLines(item) {
    const lines = super.makeLines(item), of = this.differing(item);
    const counts = Object.keys(looks).filter(kind => of[kind] > 0)
      .map(kind => looks[kind].sign + (item.box ? of[kind].toLocaleString("en") : "")).join("  ");
    return counts === "" ? lines : item.box ? [...lines, counts] : [`${counts} ${lines[0]}`, ...lines.slice(1)];
  }
  styleOf(item) {
    const kinds = Object.keys(this.differing(item)), look = kinds.length > 1 ? "changed" : kinds[0];
    if (!look) return { fill: colour("module"), stroke: colour("view-edge") };
    return { ...looks[look], fill: colour(look), stroke: colour(look + "-edge") };
  }
  selected() {
    const { selection } = state;
    if (!selection?.nodes || this.play === state.play) return selection;
    const nodes = new Uint8Array(this.play.count), twin = selection.node === undefined ? -1
        : state.play.twin[selection.node];
    selection.nodes.forEach((on, node) => on && state.play.twin[node] >= 0 && (nodes[state.play.twin[node]] = 1));
    return { nodes, reveal: twin >= 0 ? twin : undefined };
  }
  tipOf(item) {
    if (item.box) return super.tipOf(item);
    const change = this.play.change[item.node];
    return `${super.tipOf(item)}\n${shown(change === "only" ? looks[kindOf(this.play, item.node)].says : change)}`;
  }
  clicked(item) {
    use(this.play);
    super.clicked(item);
    if (item?.box) this.other.follow(item.box);
  }
  /// Opens or closes the box of the same module as in the other graph.
  follow(box) {
    const item = this.items.find(each => each.box && each.box.path === box.path && each.box.backward === box.backward &&
        each.box.name === box.name);
    if (!item || item.box.open === box.open) return;
    item.box.open = box.open;
    this.relayout();
    this.stage.center(item.ax + item.w / 2, item.ay + Math.min(item.h, this.stage.height / this.stage.ky) / 2);
  }
}

export class CompareView {
  constructor(host) {
    const [a, b] = state.page.plays;
    compare(a, b);
    const legend = Object.entries(looks).map(([kind, { sign, says }]) =>
      el("span", { class: "key", style: { "--of": `var(--${kind}-edge)` } }, `${sign} ${says}`));
    const places = [el("div", { class: "half" }), el("div", { class: "half" })];
    host.append(el("div", { class: "bar" }, legend, el("span", {}, "A click shows a node in both graphs.")),
      el("div", { class: "pair" }, places));
    this.graphs = [a, b].map((play, i) => new SideGraph(places[i], play));
    [this.graphs[0].other, this.graphs[1].other] = [this.graphs[1], this.graphs[0]];
    host.append(this.differences(a, b), el("div", { class: "grid" }, cardsOf(a, b)));
  }
  changed(what) {
    for (const graph of this.graphs) graph.changed(what);
  }

  /// A table of all nodes that differ.
  differences(a, b) {
    const rows = [];
    const add = (play, node) => rows.push({ play, node, kind: kindOf(play, node) });
    a.change.forEach((change, node) => change !== "" && add(a, node));
    b.change.forEach((change, node) => change === "only" && add(b, node));
    const most = 400, textOf = kind => `${looks[kind].sign} ${looks[kind].says}`;
    const texts = rows.slice(0, most).map(({ play, node, kind }) => [textOf(kind), play.title(node),
      play.typeText(node), play.place(play.site[node]), kind === "changed" ? play.change[node] : ""]);
    return el("div", { class: "pad scroll" }, el("h2", {}, `Differences: ${rows.length.toLocaleString("en")}`),
      longText("Difference", shownLines(state.page.difference || "The tapes record the same computation.")),
      rows.length > 0 ? table(["", "node", "type", "line", "what"], texts, i => {
        use(rows[i].play);
        selectNode(rows[i].node);
      }) : "", rows.length > most ? el("p", { class: "dim" }, `The first ${most} of them.`) : "");
  }
}

/// Sizes, and numbers of nodes by op and by module.
function cardsOf(a, b) {
  const count = (play, nameOf) => {
    const found = new Map();
    for (let node = 0; node < play.count; ++node)
      if (!play.isHidden(node)) found.set(nameOf(play, node), (found.get(nameOf(play, node)) ?? 0) + 1);
    return found;
  };
  const rows = nameOf => {
    const [inA, inB] = [count(a, nameOf), count(b, nameOf)], apart = row => Math.abs(row[1] - row[2]);
    return [...new Set([...inA.keys(), ...inB.keys()])].map(key => [key, inA.get(key) ?? 0, inB.get(key) ?? 0])
      .sort((x, y) => apart(y) - apart(x) || y[1] - x[1]);
  };
  const plan = (text, of) => [text, a.plan ? of(a.plan) : "–", b.plan ? of(b.plan) : "–"];
  const card = (title, all) => el("div", { class: "card scroll" }, el("h2", {}, title),
    table(["", a.name + "|n", b.name + "|n"], all.slice(0, 60)));
  const moduleOf = (play, node) => play.modules(node).slice(0, 3).join(".") || "(no module)";
  const sizes = [["nodes", a.count, b.count], plan("steps", each => each.count),
    plan("peak", each => bytesText(each.peak)), plan("arena", each => bytesText(each.arena)),
    plan("time", each => secondsText(each.total)),
    plan("fused calls", each => each.fusions.filter(fusion => !fusion.miss).length)];
  return [card("Sizes", sizes), card("Nodes by op", rows((play, node) => play.op[node])),
    card("Nodes by module", rows(moduleOf))];
}

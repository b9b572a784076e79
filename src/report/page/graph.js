// The graph: modules as boxes that open, calls, and the edges between them.
import { bytesText, choice, counted, el, fill, largest, numberText, plural } from "./dom.js";
import { roving, secondsText, shortType, shown } from "./dom.js";
import { arrange, head } from "./nesting.js";
import { Stage, colour, fitted, ink, shadeText } from "./stage.js";
import { select, selectModule, selectNode, state } from "./state.js";
import { Tree } from "./tree.js";

const products = /einsum|matmul|conv|attention|linear|dot/;

/// The class of a call, which gives it a colour.
export function classOf(play, node) {
  if (play.op[node] === "input") return "source";
  if (products.test(play.op[node])) return "product";
  return play.kind[node] === "source" ? "source" : play.kind[node];
}

const colourings = {
  kind: { name: "kind of call" },
  time: { name: "time", of: (play, node) => play.plan.seconds[play.plan.stepOf[node]] ?? 0, text: secondsText },
  memory: { name: "size of results", of: (play, node) => play.bytesOf[node], text: bytesText },
  error: { name: "rounding error", of: (play, node) => play.errorOf.get(node)?.total ?? 0, text: numberText },
};

export class GraphView {
  constructor(host, play = state.play) {
    this.play = play;
    this.colouring = this.play.errors.length > 0 ? "error" : "kind";
    this.played = false;
    this.play.bytesOf = new Float64Array(this.play.count);
    for (const buffer of this.play.plan?.buffers ?? [])
        if (buffer.node >= 0) this.play.bytesOf[buffer.node] += buffer.bytes;
    this.bar = el("div", { class: "bar" });
    const place = el("div", { class: "stage" });
    host.append(this.bar, place);
    this.remake();
    this.stage = new Stage(place, {
      label: `Graph of ${play.name}. The list of modules is in the details.`,
      uniform: true, readable: true, pad: 24,
      bounds: () => ({ x: 0, y: 0, width: this.root.w, height: this.root.h, top: this.root.items[0]?.ay }),
      draw: (context, stage) => this.draw(context, stage),
      hit: (x, y) => this.hit(this.root, x, y),
      boxes: () => this.items.flatMap(item => (item === this.root ? [] : this.placesOf(item))),
      tip: item => this.tipOf(item),
      click: item => this.clicked(item),
    });
  }

  remake() {
    this.tree = new Tree(this.play, this.played);
    this.relayout();
    this.showBar();
  }
  showBar() {
    const { play } = this, backward = play.op.filter((_, i) => play.isBackward(i)).length;
    const kinds = Object.entries(colourings).filter(([key]) =>
      key === "kind" || (key === "error" ? play.errors.length > 0 : play.plan !== undefined));
    fill(this.bar,
      el("span", {}, el("b", {}, play.count.toLocaleString("en")), " " + plural(play.count, "node"),
          backward > 0 ? `, ${backward.toLocaleString("en")} of them backward` : ""),
      choice("Colour", kinds.map(([key, { name }]) => [key, name]), this.colouring, key => {
        this.colouring = key;
        this.mark();
        this.showBar();
        this.stage.request();
      }),
      play.plan ? el("label", {}, el("input", { type: "checkbox", checked: this.played, onchange: event => {
        this.played = event.target.checked;
        this.remake();
        this.stage.fit();
      } }), "fused as it plays") : "",
      el("button", { onclick: () => this.stage.fit() }, "Fit"),
      el("span", { class: "push" }, ...(this.colouring === "kind" ? this.legend()
          : [el("span", {}, "dark: little, yellow: most")])));
  }
  legend() {
    return [["product", "products"], ["elementwise", "elementwise"], ["other", "other"], ["view", "views"],
        ["random", "random"]].map(([key, text]) =>
      el("span", { class: "key", style: { "--of": `var(--${key}-edge)`, "margin-left": "10px" } }, text));
  }

  relayout() {
    ({ root: this.root, edges: this.edges } = arrange(this.tree, item => this.linesOf(item)));
    this.mark();
  }

  linesOf(item) {
    return (item.lines ??= this.makeLines(item));
  }
  makeLines(item) {
    const { play } = this;
    if (item.box) return [shown(item.box.name || "(model)"), counted(item.box.count, "call")];
    const { node } = item, step = play.plan?.stepOf[node] ?? -1;
    const name = this.played && step >= 0 ? play.plan.op[step] : play.op[node];
    const title = play.label[node] && play.op[node] === "input" ? play.label[node] : name;
    const lines = [shown((item.module ? item.module + " · " : "") + title)];
    const inputs = play.inputs[node];
    const weights = [];
    for (let i = 0; i < inputs.length; i += 2)
      if (play.op[inputs[i]] === "parameter") weights.push(inputs[i]);
    for (const weight of weights.slice(0, 2)) {
      const type = shortType(play.types[weight][0]).replace("f32 ", "");
      lines.push(shown(play.label[weight].split(".").pop()) + " " + type);
    }
    if (play.outputs.has(node)) lines.push("→ " + shown(play.outputs.get(node)).slice(0, 28));
    return lines;
  }

  /// The selection, in nodes of this play.
  selected() {
    return state.selection;
  }
  /// Computes which items are selected, and the largest value of the colouring.
  mark() {
    const selection = this.selected();
    this.items = [];
    const walk = item => {
      this.items.push(item);
      for (const each of item.items ?? []) walk(each);
    };
    walk(this.root);
    this.marked = null;
    if (selection?.nodes) {
      this.marked = new Set();
      const owner = this.tree.owner;
      selection.nodes.forEach((on, node) => {
        if (!on) return;
        let item = this.tree.itemOf[owner ? owner[node] : node];
        for (; item && !this.marked.has(item); item = item.container) this.marked.add(item);
      });
    }
    this.total = new Map();
    const { of } = colourings[this.colouring], largestOnly = this.colouring === "error";
    for (let node = 0; of && node < this.play.count; ++node) {
      const item = this.tree.itemOf[node], value = of(this.play, node), before = this.total.get(item) ?? 0;
      if (item) this.total.set(item, largestOnly ? Math.max(before, value) : before + value);
    }
    this.largest = largest([...this.total].map(([item, value]) => (item.items?.length ? 0 : value)), 0);
  }

  draw(context, stage) {
    const seen = { left: stage.x, top: stage.y, right: stage.x + stage.width / stage.kx,
        bottom: stage.y + stage.height / stage.ky };
    context.translate(-stage.x * stage.kx, -stage.y * stage.ky);
    context.scale(stage.kx, stage.ky);
    this.drawBox(context, this.root, seen, stage, true);
    const focus = stage.hovered ?? this.focused;
    context.lineWidth = 1.2;
    const colours = { dim: colour("view-edge"), accent: colour("accent"), mark: colour("mark"), label: colour("dim") };
    const labelled = new Set();
    for (const edge of this.edges) {
      const on = focus && (edge.from === focus || edge.to === focus);
      const chosen = this.marked?.has(edge.from) && this.marked.has(edge.to) && edge.from.node !== undefined;
      if (edge.across && !on && !(chosen && this.marked.size < 60)) continue;
      this.drawEdge(context, edge, seen, on ? colours.accent : colours.dim, on ? 2 : 1.2, stage, labelled,
          colours.label);
    }
    this.drawBox(context, this.root, seen, stage, false);
  }

  drawEdge(context, edge, seen, stroke, width, stage, labelled, labelColour) {
    const { from, to } = edge, up = from.backward && to.backward;
    const exit = item => (up ? item.ay : item.ay + item.h), entry = item => (up ? item.ay + item.h : item.ay);
    let points;
    if (edge.across) {
      const left = from.ax < to.ax ? [from.ax + from.w, to.ax] : [from.ax, to.ax + to.w];
      points = [{ x: left[0], y: from.ay + from.h / 2 }, { x: left[1], y: to.ay + to.h / 2 }];
    } else {
      points = [];
      const middle = item => item.ax + item.w / 2;
      edge.parts.forEach(({ container, start, end, points: bends }, i) => {
        const at = ({ x, y }) => ({ x: container.ax + x, y: container.ay + y });
        if (start.port) points.push(at({ x: start.x + 5, y: start.y }));
        else if (i === 0) points.push({ x: middle(start), y: exit(start) });
        points.push(...(bends ?? []).map(at));
        if (end.port) points.push(at({ x: end.x + 5, y: end.y }));
        else if (i === edge.parts.length - 1) points.push({ x: middle(end), y: entry(end) });
      });
    }
    const xs = points.map(point => point.x), ys = points.map(point => point.y);
    if (Math.max(...xs) < seen.left || Math.min(...xs) > seen.right || Math.max(...ys) < seen.top ||
        Math.min(...ys) > seen.bottom) return;
    context.strokeStyle = context.fillStyle = stroke;
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(points[0].x, points[0].y);
    for (let i = 1; i < points.length; ++i) {
      const a = points[i - 1], b = points[i], middle = (a.y + b.y) / 2, center = (a.x + b.x) / 2;
      if (edge.across) context.bezierCurveTo(center, a.y, center, b.y, b.x, b.y);
      else context.bezierCurveTo(a.x, middle, b.x, middle, b.x, b.y);
    }
    context.stroke();
    const end = points[points.length - 1], way = up ? -1 : 1;
    if (stage.kx < 0.3 || edge.across) return;
    context.beginPath();
    context.moveTo(end.x, end.y);
    context.lineTo(end.x - 4, end.y - 7 * way);
    context.lineTo(end.x + 4, end.y - 7 * way);
    context.fill();
    if (stage.kx < 0.6 || labelled.has(from)) return;
    labelled.add(from);
    context.fillStyle = labelColour;
    context.font = "10px system-ui, sans-serif";
    context.textAlign = "left";
    context.fillText(shortType(this.play.types[edge.node][0] ?? ""), points[0].x + 6, points[0].y + 9 * way);
  }

  /// Draws the backgrounds of open boxes, or everything else.
  drawBox(context, item, seen, stage, background) {
    if (item.ax > seen.right || item.ay > seen.bottom || item.ax + item.w < seen.left ||
        item.ay + item.h < seen.top) return;
    const open = item.box?.open;
    if (open) {
      if (item !== this.root && background) this.fillBox(context, item,
          { fill: colour("inside"), stroke: colour("line"), radius: 10, width: 1 });
      for (const each of item.items) this.drawBox(context, each, seen, stage, background);
      if (item !== this.root && !background && stage.ky * head > 6) this.drawHead(context, item);
      return;
    }
    if (background) return;
    const faded = this.marked && !this.marked.has(item);
    context.globalAlpha = faded ? 0.35 : 1;
    const { text = colour("text"), ...style } = this.styleOf(item);
    this.fillBox(context, item, this.marked && !faded ? { ...style, stroke: colour("mark"), width: 2.5 } : style);
    if (item.box) this.stack(context, item);
    if (stage.ky * 12 > 4) {
      context.fillStyle = text;
      context.textAlign = "center";
      this.linesOf(item).forEach((line, i) => {
        context.font = i === 0 ? "600 12px system-ui, sans-serif" : "11px system-ui, sans-serif";
        context.fillText(fitted(context, line, item.w - 12), item.ax + item.w / 2, item.ay + 14 + 16 * i);
      });
    }
    context.globalAlpha = 1;
  }
  /// How a call or a closed box looks: fill, stroke and, if they are not the usual ones, text, radius, width, dash.
  styleOf(item) {
    const kind = item.box ? "module" : classOf(this.play, item.node), stroke = colour(kind + "-edge");
    if (!colourings[this.colouring].of) return { fill: colour(kind), stroke };
    const strength = this.largest > 0 ? Math.sqrt((this.total.get(item) ?? 0) / this.largest) : 0;
    return { fill: shadeText(strength), stroke, text: ink(shadeText(strength)) };
  }
  fillBox(context, item, { fill, stroke, radius = 6, width = 1.2, dash = [] }) {
    context.beginPath();
    context.roundRect(item.ax, item.ay, item.w, item.h, radius);
    context.fillStyle = fill;
    context.fill();
    context.strokeStyle = stroke;
    context.lineWidth = width;
    context.setLineDash(dash);
    context.stroke();
    context.setLineDash([]);
  }
  /// A mark that a box can be opened.
  stack(context, item) {
    context.textAlign = "right";
    context.fillStyle = colour("dim");
    context.font = "12px system-ui, sans-serif";
    context.fillText("+", item.ax + item.w - 8, item.ay + 12);
  }
  drawHead(context, item) {
    const { box } = item;
    const name = !box.members ? box.path || box.name
      : `${box.members[box.shownMember].path}   ‹ ${box.shownMember + 1} of ${box.members.length} ›`;
    context.textAlign = "left";
    context.fillStyle = colour("dim");
    context.font = "600 12px system-ui, sans-serif";
    context.fillText(fitted(context, shown(name), item.w - 40), item.ax + 12, item.ay + 14);
    if (box.path || box.members) {
      context.textAlign = "right";
      context.fillText("−", item.ax + item.w - 10, item.ay + 14);
    }
  }

  hit(item, x, y) {
    if (x < item.ax || y < item.ay || x > item.ax + item.w || y > item.ay + item.h) return null;
    for (const each of item.items ?? []) {
      const found = this.hit(each, x, y);
      if (found) return found;
    }
    if (item === this.root || (item.box?.open && y > item.ay + head)) return null;
    this.hitX = x;
    return item;
  }
  /// Where an item can be clicked: a fold to the layer before, to that after, and to close it.
  placesOf({ ax, ay, w, h, box }) {
    if (!box?.open) return [[ax, ay, w, h]];
    return box.members ? [[ax, ay, w / 2, head], [ax + w / 2, ay, w / 2 - 36, head], [ax + w - 36, ay, 36, head]]
      : [[ax, ay, w, head]];
  }
  /// The layer of an open fold to which a click goes: -1 is that before, 1 that after, 0 none.
  stepOf({ box, ax, w }) {
    return !box.open || !box.members || this.hitX >= ax + w - 36 ? 0 : this.hitX < ax + w / 2 ? -1 : 1;
  }
  tipOf(item) {
    const { play } = this, of = colourings[this.colouring];
    const value = of.of ? `\n${of.name}: ${of.text(this.total.get(item) ?? 0)}` : "";
    const { box, node } = item;
    const click = box && ({ "-1": "for the layer before", 1: "for the layer after" }[this.stepOf(item)] ??
        (box.open ? "to close" : "to open"));
    if (box) return `${shown(box.path || box.name)}\n${counted(box.count, "call")}${value}\nClick ${click}`;
    return `${shown(play.title(node))}\n${play.typeText(node)}\n${shown(play.place(play.site[node]))}${value}`;
  }
  clicked(item) {
    this.focused = item;
    if (!item) return select(null);
    if (!item.box) return selectNode(item.node, false);
    const { box } = item, before = { x: item.ax, y: item.ay }, step = this.stepOf(item);
    if (step !== 0) {
      box.shownMember = (box.shownMember + step + box.members.length) % box.members.length;
    } else {
      box.open = !box.open;
    }
    this.relayout();
    const now = this.items.find(each => each.box === box);
    if (now) {  // the box stays where it was
      this.stage.x += now.ax - before.x;
      this.stage.y += now.ay - before.y;
    }
    this.stage.moved();
    if (box.path) selectModule(box.members && box.open ? box.members[box.shownMember].path : box.path);
  }

  /// Shows a node that another view has selected.
  changed(what) {
    if (what !== "selection") return;
    this.mark();
    const selection = this.selected();
    if (selection?.reveal === undefined) return;
    const node = this.tree.reveal(selection.reveal);
    this.relayout();
    const item = this.tree.itemOf[node];
    if (!item) return;
    this.focused = item;
    this.stage.center(item.ax + item.w / 2, item.ay + item.h / 2);
  }

  /// The modules as a list, for the keyboard and for people who cannot see the graph.
  outline() {
    const list = el("div", { class: "list" });
    const add = (box, depth) => {
      const go = () => box.path && selectModule(box.members ? box.members[0].path : box.path);
      if (depth > 0) list.append(el("button", { class: "plain", onclick: go,
        style: { "padding-left": 12 * depth + "px" } }, shown(box.name),
      el("span", { class: "dim" }, ` ${counted(box.count, "call")}`)));
      for (const kid of (box.members ? box.members[0] : box).kids.values())
        if (depth < 3 && kid.count > 1) add(kid, depth + 1);
    };
    add(this.tree.root, 0);
    return roving(list);
  }
}

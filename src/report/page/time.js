// Time: the steps as flames by module, by op or in order, tables of ops, and what was fused or nearly.
import { wordsOf } from "./data.js";
import { choice, counted, el, percent, secondsText, shown, table } from "./dom.js";
import { Stage, colour, fitted, ink, seriesColour } from "./stage.js";
import { select, selectModule, selectNode, selectStep, state } from "./state.js";

const rowHeight = 22;
const groupings = { module: "by module and line", layers: "by module, layers together", op: "by op",
    order: "in order" };

export class TimeView {
  constructor(host) {
    this.play = state.play;
    this.plan = state.play.plan;
    this.grouping = "module";
    this.bar = el("div", { class: "bar" });
    this.place = el("div", { class: "stage", style: { "min-height": "200px" } });
    this.below = el("div", { class: "pad scroll tables", style: { "max-height": "48%" } });
    host.append(this.bar, this.place, this.below);
    this.use();
    this.stage = new Stage(this.place, {
      label: "Flame graph of the time of steps. The same numbers are in the tables below.", moves: "x", scrolls: true,
      bounds: stage => ({ x: 0, y: 0, width: this.plan.total, height: stage.height }),
      draw: (context, stage) => this.draw(context, stage), hit: (x, y) => this.hit(x, y),
      boxes: () => this.boxes(this.root), tip: flame => this.tipOf(flame), click: flame => this.clicked(flame),
    });
    this.showTables();
  }

  use() {
    const measured = this.plan.plays > 0;
    this.bar.replaceChildren(
      el("span", {}, el("b", {}, secondsText(this.plan.total)),
          measured ? ` a play, the mean of ${this.plan.plays} measured`
        : " a play, predicted from arithmetic and bytes (--plays 5 measures)", `, ${counted(this.plan.count, "step")}`),
      choice("Flames", Object.entries(groupings), this.grouping, grouping => {
        this.grouping = grouping;
        this.grow();
        this.stage.fit();
      }),
      el("button", { onclick: () => this.stage.fit() }, "Fit"));
    this.grow();
  }

  /// The words from the root to a step.
  words(step) {
    const { play, plan } = this, site = play.sites[plan.site[step]], module = plan.module[step];
    if (this.grouping === "op") return [plan.op[step], module || "(no module)"];
    const words = module ? wordsOf(module) : ["(no module)"];
    const node = plan.nodeOf[step];
    if (this.grouping === "layers") words.forEach((word, i) => /^\d+$/.test(word) && (words[i] = "0, 1, …"));
    if (this.grouping !== "order" && play.loss >= 0) words.unshift(node >= 0 && play.isBackward(node) ? "backward"
        : "forward");
    return [...words, ...(site.line > 0 ? [`line ${site.line}`] : []), plan.op[step]];
  }
  /// Makes the flames: equal words of neighbours, or of all steps, are one.
  grow() {
    const { plan } = this, merge = this.grouping !== "order";
    this.root = { name: "all", kids: [], named: new Map(), seconds: plan.total, steps: [], depth: -1, start: 0 };
    for (let step = 0; step < plan.count; ++step) {
      let flame = this.root;
      this.words(step).forEach((word, depth) => {
        const known = merge ? flame.named.get(word) : flame.kids[flame.kids.length - 1];
        let next = known?.name === word ? known : null;
        if (!next) {
          next = { name: word, kids: [], named: new Map(), seconds: 0, steps: [], depth };
          flame.kids.push(next);
          flame.named.set(word, next);
        }
        next.seconds += plan.seconds[step];
        next.steps.push(step);
        flame = next;
      });
    }
    const settle = flame => {
      if (merge && flame.depth >= 0) flame.kids.sort((a, b) => b.seconds - a.seconds);
      let at = flame.start;
      for (const kid of flame.kids) {
        kid.start = at;
        at += kid.seconds;
        settle(kid);
      }
    };
    settle(this.root);
  }

  draw(context, stage) {
    const { selection } = state;
    const coloured = this.grouping !== "op" && this.grouping !== "order" && this.play.loss >= 0 ? 1 : 0;  // the depth
    const look = (flame, hue) => {
      for (const kid of flame.kids) {
        const x = stage.toX(kid.start), w = kid.seconds * stage.kx, y = stage.toY(kid.depth * rowHeight);
        if (x > stage.width || x + w < 0 || w < 0.3) continue;
        const index = kid.depth <= coloured ? hash(kid.name) : hue;
        const on = !selection?.steps || kid.steps.some(step => selection.steps[step]);
        context.globalAlpha = on ? 1 : 0.25;
        context.fillStyle = selection?.steps && on ? colour("mark") : seriesColour(index);
        context.fillRect(x, y, Math.max(w - 0.8, 0.4), rowHeight - 2);
        if (w > 26) {
          context.fillStyle = ink(context.fillStyle);
          context.textAlign = "left";
          const from = Math.max(x, 0);
          context.fillText(fitted(context, `${shown(kid.name)}  ${percent(kid.seconds / this.plan.total)}`,
              x + w - from - 8), from + 4, y + rowHeight / 2 - 1);
        }
        context.globalAlpha = 1;
        look(kid, index);
      }
    };
    look(this.root, null);
  }
  boxes(flame) {
    return flame.kids.flatMap(kid =>
      [[kid.start, kid.depth * rowHeight, kid.seconds, rowHeight - 2], ...this.boxes(kid)]);
  }
  hit(x, y) {
    let flame = this.root;
    const depth = Math.floor(y / rowHeight);
    while (flame && flame.depth < depth) flame = flame.kids.find(kid => kid.start <= x && x < kid.start + kid.seconds);
    return flame && flame.depth >= 0 ? flame : null;
  }
  tipOf(flame) {
    const { plan } = this, sum = key => flame.steps.reduce((all, step) => all + (plan[key][step] ?? 0), 0);
    const rates = [sum("flops") > 0 ? `${(sum("flops") / flame.seconds / 1e9).toFixed(1)} GFLOP/s` : "",
        `${(sum("bytes") / flame.seconds / 1e9).toFixed(1)} GB/s`];
    return `${shown(flame.name)}\n${secondsText(flame.seconds)}, ${percent(flame.seconds / plan.total)}, ` +
      `${counted(flame.steps.length, "step")}\n${rates.filter(Boolean).join(", ")}`;
  }
  clicked(flame) {
    if (!flame) return select(null);
    if (flame.steps.length === 1) return selectStep(flame.steps[0]);
    this.pick(flame);
  }
  pick({ name, steps }) {
    const on = new Set(steps);
    select({ kind: "flame", title: name, nodes: node => on.has(this.plan.stepOf[node]), steps });
  }

  showTables() {
    const { plan, play } = this;
    const rows = nameOf => {
      const found = new Map();
      for (let step = 0; step < plan.count; ++step) {
        const name = nameOf(step), fresh = { name, seconds: 0, steps: [], flops: 0, bytes: 0 };
        const each = found.get(name) ?? found.set(name, fresh).get(name);
        each.seconds += plan.seconds[step];
        each.steps.push(step);
        each.flops += plan.flops[step] ?? 0;
        each.bytes += plan.bytes[step] ?? 0;
      }
      return [...found.values()].sort((a, b) => b.seconds - a.seconds).slice(0, 40);
    };
    const times = (heading, all, go) =>
        el("div", {}, el("h2", {}, heading),
        table([heading.slice(3), "time|n", "share|n", "calls|n", "GFLOP/s|n", "GB/s|n"],
      all.map(each => [each.name, secondsText(each.seconds), percent(each.seconds / plan.total), each.steps.length,
        each.flops > 0 ? (each.flops / each.seconds / 1e9).toFixed(1) : "",
            each.bytes > 0 ? (each.bytes / each.seconds / 1e9).toFixed(1) : ""]), i => go(all[i])));
    const ops = rows(step => plan.op[step]), modules = rows(step => plan.module[step] || "(no module)");
    const pick = each => this.pick(each);
    const misses = plan.fusions.filter(each => each.miss), applied = new Map();
    for (const { rule, miss } of plan.fusions) if (!miss) applied.set(rule, (applied.get(rule) ?? 0) + 1);
    this.below.replaceChildren(times("By op", ops, pick),
        times("By module", modules, each => each.name === "(no module)" ? pick(each) : selectModule(each.name)),
      el("div", {}, el("h2", {}, "Fused"), table(["rule", "times|n"], [...applied])),
      misses.length > 0 ? el("div", {}, el("h2", {}, "Nearly fused"),
          table(["rule", "call", "why not"], misses.map(each => [each.rule, each.place, each.miss]),
        i => misses[i].node >= 0 && misses[i].node < play.count && selectNode(misses[i].node))) : "");
  }
}

function hash(text) {
  let sum = 7;
  for (let i = 0; i < text.length; ++i) sum = (sum * 31 + text.charCodeAt(i)) >>> 0;
  return sum % 7;
}

// The details of what is selected, and the text of the definition, whose lines select.
import { bytesText, choice, el, facts, fill, largest, numberText, percent } from "./dom.js";
import { link, longText, roving, secondsText, shown, shownLines } from "./dom.js";
import { selectLine, selectModule, selectNode, state } from "./state.js";
import { pictureOf } from "./values.js";

function nodeLinks(play, nodes, most = 12) {
  const lines = nodes.slice(0, most).map(node =>
    el("div", {}, link(play.title(node), () => selectNode(node)),
        el("span", { class: "dim" }, " " + play.typeText(node))));
  const more = nodes.length > most ? el("div", { class: "dim" }, `… ${nodes.length - most} more`) : "";
  return roving(el("div", {}, lines, more));
}

function siteLink(play, index) {
  const site = play.sites[index];
  if (site.text === "") return "";
  const lines = [site.path ? link(site.path, () => selectModule(site.path)) : ""];
  const line = `${site.file.split("/").pop()}, line ${site.line}`, owner = site.owner ? ", " + shown(site.owner) : "";
  if (site.line > 0 && site.file)
    lines.push(el("div", {}, link(line, () => selectLine(site.file, site.line)), el("span", { class: "dim" }, owner)));
  else if (!site.path) lines.push(shown(site.text));
  return el("div", {}, lines);
}

function nodeDetails(play, node) {
  const { plan } = play, inputs = play.inputs[node].filter((_, i) => i % 2 === 0), step = plan?.stepOf[node] ?? -1;
  const fusions = (plan?.fusions ?? [])
      .filter(each => each.node === node || (each.miss && each.site === play.site[node]));
  const buffers = (plan?.buffers ?? []).filter(each => each.node === node), error = play.errorOf.get(node);
  const value = [...play.values.values()].find(each => each.node === node ||
      (play.label[node] && each.label.includes(`'${play.label[node]}'`)));
  const together = [];
  if (step >= 0) plan.stepOf.forEach((each, i) => each === step && i !== node && together.push(i));
  const asView = plan && play.kind[node] === "view" ? "a view, without a copy" : "";
  return [
    facts([
      ["type", play.typeText(node)],
      ["attributes", play.note[node]],
      ["at", siteLink(play, play.site[node])],
      ["part", play.loss >= 0 ? (play.isBackward(node) ? "backward" : "forward") : ""],
      ["result", play.outputs.get(node)],
      ["plays as", step < 0 ? asView : `step ${step} of ${plan.count}: ${plan.op[step]}`],
      ["time", step < 0 ? "" : `${secondsText(plan.seconds[step])}, ${percent(plan.seconds[step] / plan.total)}`],
      ["memory", buffers.map(each => `${bytesText(each.bytes)} (${each.kind}), steps ${each.first} to ${each.last}`)
          .join("; ")],
      ["rounding error", error && `${numberText(error.total)}, of which this call adds ${numberText(error.added)}`],
      ["not fused", fusions.filter(each => each.miss).map(each => `${each.rule}: ${each.miss}`).join("; ")],
      ["in the other tape", { "": "the same", only: "missing" }[play.change?.[node]] ?? play.change?.[node]],
      ["fused by", fusions.filter(each => !each.miss).map(each => each.rule).join(", ")],
    ]),
    value ? pictureOf(value) : "",
    inputs.length > 0 ? [el("h3", {}, "Operands"), nodeLinks(play, inputs)] : "",
    play.readers[node].length > 0 ? [el("h3", {}, "Read by"), nodeLinks(play, [...new Set(play.readers[node])])] : "",
    together.length > 0 ? [el("h3", {}, "In the same step"), nodeLinks(play, together)] : "",
    play.bodies[node] ? [el("h3", {}, "Its body"), longText("Body", shownLines(play.bodies[node]))] : "",
  ];
}

/// The time of the selected steps, and the bytes of the selected nodes at the peak.
function totals(play, selection) {
  const nodes = [...selection.nodes.keys()].filter(node => selection.nodes[node] && play.op[node] !== "constant"),
      { plan } = play;
  let seconds = 0, bytes = 0;
  selection.steps.forEach((on, step) => on && (seconds += plan.seconds[step]));
  for (const buffer of plan ? plan.livingAt(plan.peakStep) : [])
      if (buffer.node >= 0 && selection.nodes[buffer.node]) bytes += buffer.bytes;
  const backward = nodes.filter(node => play.isBackward(node)).length;
  return [
    facts([
      ["nodes", `${nodes.length}${backward > 0 ? `, ${backward} of them backward` : ""}`],
      ["time", seconds > 0 ? `${secondsText(seconds)}, ${percent(seconds / plan.total)}` : ""],
      ["at the peak", bytes > 0 ? `${bytesText(bytes)}, ${percent(bytes / plan.live[plan.peakStep])}` : ""],
    ]),
    nodes.length > 0 ? [el("h3", {}, "Calls"), nodeLinks(play, nodes, 60)] : "",
  ];
}

export function showDetails(host, outline) {
  const { play, selection, page } = state, inside = host.contains(document.activeElement);
  if (selection && play) {
    host.replaceChildren(el("h2", { tabindex: "-1" }, shown(selection.title)),
      ...(selection.value ? [pictureOf(selection.value)] : []),
      ...(selection.node !== undefined ? nodeDetails(play, selection.node) : totals(play, selection)).flat(3));
    if (inside) host.firstChild.focus();  // not on the link that is gone
    return;
  }
  const { plan } = play ?? {};
  host.replaceChildren(el("h2", {}, "About"),
    play ? facts([
      ["tape", play.name],
      ["mode", play.mode],
      ["nodes", play.count.toLocaleString("en")],
      ["results", String(play.outputs.size)],
      ["peak", plan && bytesText(plan.peak)],
      ["time", plan && secondsText(plan.total) + (plan.plays > 0 ? "" : ", predicted")],
    ]) : el("p", {}, `${page.runs.length} runs`),
    ...(outline ? [el("h3", {}, "Modules"), outline] : []),
    el("p", { class: "dim" }, "Click on a box, a buffer, a flame or a line: every view shows it. " +
      "Keys: 1 to 9 views, / search, d dark, Esc nothing selected."),
    el("p", { class: "dim" }, `Written by xtape ${shown(page.version)}.`));
}

/// The texts of files. Bars beside lines: orange for time, blue for memory at the peak.
export class SourcePanel {
  constructor(host) {
    this.host = host;
    this.file = 0;
  }
  use() {
    const { play } = state;
    this.host.replaceChildren();
    if (!play || play.files.length === 0) return;
    const lines = new Map();
    for (const { file, line } of play.sites) lines.set(file, (lines.get(file) ?? new Set()).add(line));
    this.files = [...play.files].sort((a, b) => (lines.get(b.name)?.size ?? 0) - (lines.get(a.name)?.size ?? 0));
    this.weigh(play);
    this.show(0);
  }
  weigh(play) {
    const { plan } = play;
    this.time = new Map();
    this.memory = new Map();
    if (!plan) return;
    const add = (map, key, value) => key && map.set(key, (map.get(key) ?? 0) + value);
    plan.site.forEach((site, step) => add(this.time, play.lineKey(site), plan.seconds[step]));
    for (const { node, bytes } of plan.livingAt(plan.peakStep))
      if (node >= 0) add(this.memory, play.lineKey(play.site[node]), bytes);
    this.mostTime = largest([...this.time.values()], 1e-12);
    this.mostMemory = largest([...this.memory.values()], 1);
  }
  show(index) {
    this.file = index;
    const file = this.files[index],
        used = new Set(state.play.sites.filter(site => site.file === file.name).map(site => site.line));
    this.lines = file.lines.map((text, i) => {
      const key = file.name + "\n" + (i + 1), time = this.time.get(key) ?? 0, memory = this.memory.get(key) ?? 0;
      const bars = el("u", { title: time > 0 || memory > 0 ? `${secondsText(time)}, ${bytesText(memory)} at the peak`
          : "" },
        el("s", { style: { width: `${15 * time / this.mostTime}px` } }),
            el("s", { style: { width: `${15 * memory / this.mostMemory}px` } }));
      const cells = [el("i", {}, String(i + 1)), bars, shown(text.replace(/\r$/, "")) || " "];
      const known = used.has(i + 1), go = () => selectLine(file.name, i + 1);
      return el("button", { class: known ? "" : "dim", tabindex: known ? "0" : "-1", onclick: go }, cells);
    });
    this.code = roving(el("div", { class: "code" }, this.lines));
    const names = this.files.map((each, i) => [String(i), each.name.split("/").pop()]);
    fill(this.host, el("div", { class: "bar" }, choice("", names, String(index), i => {
      this.show(Number(i));
      this.mark(false);
    }, "File"), el("span", { class: "key", style: { "--of": "var(--c1)" } }, "time"),
        el("span", { class: "key", style: { "--of": "var(--c0)" } }, "memory at the peak")), this.code);
  }
  /// Marks the lines of the selection, and shows the first.
  mark(follow = true) {
    const { play, selection } = state;
    if (!play || play.files.length === 0) return;
    const on = new Set();
    selection?.nodes?.forEach((yes, node) => yes && play.sites[play.site[node]].line > 0 && on.add(play.site[node]));
    const sites = [...on].map(site => play.sites[site]);
    if (selection?.file) sites.unshift({ file: selection.file, line: selection.line });
    const known = this.files.findIndex(file => sites[0]?.file === file.name);
    const visible = sites.some(site => site.file === this.files[this.file].name);
    if (follow && known >= 0 && !visible) this.show(known);
    const here = new Set(sites.filter(site => site.file === this.files[this.file].name).map(site => site.line));
    this.lines.forEach((line, i) => line.classList.toggle("on", here.has(i + 1)));
    if (follow && here.size > 0 && selection.kind !== "line") {
      const line = this.lines[-largest([...here].map(each => -each)) - 1];
      this.code.scrollTop = line.offsetTop - this.code.offsetTop - this.code.clientHeight / 3;
    }
  }
}

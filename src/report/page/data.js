// The data of the page: plays with their graphs and plans, by columns as src/report/gathered.hpp writes them.
import { bytesOf, shortType } from "./dom.js";

export async function readPage(text) {
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const page = JSON.parse(await new Response(stream).text());
  page.plays = page.plays.map(play => new Play(play, page.strings));
  return page;
}

/// "#12 add" gives 12; names of sources give -1.
const numberOf = label => (label.startsWith("#") ? parseInt(label.slice(1), 10) : -1);

/// The words of the path of a module, of which ONNX separates by "/". Views follow them by recursion, so a hostile path
/// gets no more than `most`.
export function wordsOf(path) {
  const most = 100, by = path.startsWith("/") ? "/" : ".", words = path.split(by).filter(word => word !== "");
  return words.length > most ? [...words.slice(0, most - 1), words.slice(most - 1).join(by)] : words;
}

export class Play {
  constructor(raw, strings) {
    const { graph } = raw;
    Object.assign(this, { name: raw.name, mode: graph.mode, loss: graph.loss, errors: raw.errors,
        failure: raw.failure, sparsity: raw.sparsity });
    this.curve = raw.curve;
    this.count = graph.op.length;
    const text = index => strings[index];
    this.op = graph.op.map(text);
    this.label = graph.name.map(text);
    this.note = graph.note.map(text);
    this.types = graph.types.map(types => types.map(text));
    this.inputs = graph.inputs;
    this.site = graph.site;
    this.bodies = graph.bodies;
    this.sites = raw.sites.map(([place, path, file, owner, line]) =>
      ({ text: text(place), path: text(path), file: text(file), owner: text(owner), line }));
    this.files = raw.files.map(file => ({ name: text(file.name), lines: file.text.split("\n") }));
    this.kind = this.op.map(op => graph.kinds[op]);
    this.outputs = new Map();
    graph.outputs.forEach(([node, , name], i) => this.outputs.set(node, name || `result ${i}`));
    this.readers = this.op.map(() => []);
    this.inputs.forEach((inputs, node) => {
      for (let i = 0; i < inputs.length; i += 2) this.readers[inputs[i]].push(node);
    });
    this.plans = raw.plans.map(plan => new Plan(plan, this, text));
    this.plan = this.plans[0];
    this.readErrors(text);
    this.values = new Map();
    for (const value of raw.values ?? []) {
      const label = text(value.node);
      this.values.set(label + (value.output > 0 ? "." + value.output : ""),
        { ...value.of, label, type: text(value.type), node: numberOf(label) });
    }
  }

  readErrors(text) {
    this.errors = (this.errors ?? []).map(([label, total, added]) =>
      ({ node: numberOf(text(label)), total, added }));
    this.errorOf = new Map(this.errors.map(error => [error.node, error]));
  }

  isBackward(node) {
    return this.loss >= 0 && node > this.loss && this.op[node] !== "parameter" && this.op[node] !== "input";
  }
  /// Parameters and constants, which the graph shows inside their readers.
  isHidden(node) {
    return this.kind[node] === "source" && this.op[node] !== "input";
  }
  /// The modules around a node. Lines of functions belong to no module.
  modules(node) {
    const site = this.sites[this.site[node]];
    return site.owner.startsWith("function '") ? [] : wordsOf(site.path);
  }
  typeText(node) {
    return this.types[node].map(shortType).join(", ");
  }
  title(node) {
    return `#${node} ${this.op[node]}${this.label[node] ? " '" + this.label[node] + "'" : ""}`;
  }
  /// "h.0.attn, gpt2.json, line 28".
  place(site) {
    const { path, file, line, text } = this.sites[site];
    return file && line > 0 ? (path ? path + ", " : "") + `${file.split("/").pop()}, line ${line}` : path || text;
  }
  lineKey(site) {
    const { file, line } = this.sites[site];
    return file && line > 0 ? file + "\n" + line : "";
  }
}

export class Plan {
  constructor(raw, play, text) {
    const { steps, buffers } = raw;
    Object.assign(this, { limit: raw.limit, peak: raw.peak, arena: raw.arena, parts: raw.parts, plays: raw.plays,
        trace: raw.trace });
    this.count = steps.op.length;
    this.op = steps.op.map(text);
    this.site = steps.site;
    this.module = steps.module.map(text);
    Object.assign(this, { flops: steps.flops, bytes: steps.bytes });
    this.again = new Set(steps.again);
    this.seconds = raw.measured.length > 0 ? raw.measured : steps.seconds;
    this.total = this.seconds.reduce((sum, each) => sum + each, 0);
    this.buffers = buffers.name.map((name, i) => ({
      label: text(name), kind: text(buffers.kind[i]), node: numberOf(text(name)), bytes: buffers.bytes[i],
      offset: buffers.offset[i], first: buffers.first[i], last: buffers.last[i],
    }));
    this.fusions = raw.fusions.map(([rule, place, site, miss]) =>
      ({ rule: text(rule), place: text(place), node: numberOf(text(place)), site, miss: text(miss) }));
    this.placeNodes(play);
    this.measureMemory();
  }

  /// Finds the step that computes each node (-1: none), and the node whose box shows it: `owner`. A node without a
  /// buffer is a view of its first operand, or is computed inside the step of a reader.
  placeNodes(play) {
    this.stepOf = new Int32Array(play.count).fill(-1);
    this.owner = Int32Array.from({ length: play.count }, (_, i) => i);
    this.nodeOf = new Int32Array(this.count).fill(-1);
    for (const { kind, node, first } of this.buffers) {
      if (node < 0 || node >= play.count || first < 0 || (kind !== "arena" && kind !== "output")) continue;
      if (this.stepOf[node] < 0 || first < this.stepOf[node]) this.stepOf[node] = first;
      this.nodeOf[first] = Math.max(this.nodeOf[first], node);
    }
    for (let node = play.count - 1; node >= 0; --node) {
      if (this.stepOf[node] >= 0 || play.kind[node] === "source" || play.kind[node] === "view") continue;
      const reader = play.readers[node].find(each => this.stepOf[this.owner[each]] >= 0);
      if (reader === undefined) continue;
      this.owner[node] = this.owner[reader];
      this.stepOf[node] = this.stepOf[reader];
    }
    for (let node = 0; node < play.count; ++node)
      if (play.kind[node] === "view" && this.stepOf[node] < 0 && play.inputs[node].length > 0 &&
          play.kind[play.inputs[node][0]] !== "source") this.owner[node] = this.owner[play.inputs[node][0]];
  }

  /// The bytes of the arena in use at each step, and the step of the peak.
  measureMemory() {
    const change = new Float64Array(this.count + 1);
    for (const { kind, first, last, bytes } of this.buffers) {
      if (kind !== "arena" || first < 0) continue;
      change[first] += bytes;
      change[last + 1] -= bytes;
    }
    this.live = new Float64Array(this.count);
    let now = 0;
    this.peakStep = 0;
    for (let step = 0; step < this.count; ++step) {
      now += change[step];
      this.live[step] = now;
      if (now > this.live[this.peakStep]) this.peakStep = step;
    }
  }
  livingAt(step) {
    return this.buffers.filter(each => each.kind === "arena" && each.first >= 0 && each.first <= step &&
        step <= each.last)
      .sort((a, b) => b.bytes - a.bytes);
  }
  /// The first step of the backward part, or -1.
  backward(play) {
    let first = -1;
    for (const { node, first: step } of this.buffers)
      if (step >= 0 && node >= 0 && play.isBackward(node) && (first < 0 || step < first)) first = step;
    return first;
  }
}

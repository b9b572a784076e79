// The difference of two plays: which node of one is which of the other, and what differs between them.

/// What is known of a node, from most to least: nodes of equal keys are one, the first of one play with the first of
/// the other, and so on. Types and modules may change, but not the op.
function keysOf(play) {
  const is = node => [play.op[node], play.label[node], play.types[node].join(), play.note[node]].join("\n");
  const way = node => (play.isBackward(node) ? "backward" : "forward");
  const operands = node => play.inputs[node].filter((_, i) => i % 2 === 0)
    .map(input => play.op[input] + play.label[input]).join();
  const path = node => play.sites[play.site[node]].path;
  return [
    node => [is(node), way(node), operands(node), play.sites[play.site[node]].text].join("\n"),
    node => [is(node), way(node), operands(node), path(node)].join("\n"),
    node => [play.op[node], play.label[node], way(node), path(node)].join("\n"),
    node => [is(node), way(node), operands(node)].join("\n"),
  ];
}

/// Sets `twin` of both plays: for each node, the node of the other play, or -1. Sets `change`: for each node what
/// differs, "only" if it has no twin, "" if nothing does.
export function compare(a, b) {
  for (const play of [a, b]) play.twin = new Int32Array(play.count).fill(-1);
  const ofA = keysOf(a), ofB = keysOf(b);
  ofA.forEach((keyA, level) => {
    const waiting = new Map();
    for (let node = b.count - 1; node >= 0; --node) {
      if (b.twin[node] >= 0) continue;
      const key = ofB[level](node);
      waiting.has(key) ? waiting.get(key).push(node) : waiting.set(key, [node]);
    }
    for (let node = 0; node < a.count; ++node) {
      const found = a.twin[node] < 0 ? waiting.get(keyA(node))?.pop() : undefined;
      if (found === undefined) continue;
      a.twin[node] = found;
      b.twin[found] = node;
    }
  });
  a.change = [];  // operands come before their readers
  a.twin.forEach((twin, node) => a.change.push(twin < 0 ? "only" : changeOf(a, node, b, twin)));
  b.change = Array.from(b.twin, twin => (twin < 0 ? "only" : a.change[twin]));
}

function changeOf(a, node, b, twin) {
  const changes = [], add = (what, from, to) => from !== to && changes.push(`${what}: ${from || "–"} → ${to || "–"}`);
  add("type", a.typeText(node), b.typeText(twin));
  add("attributes", a.note[node], b.note[twin]);
  add("module", a.sites[a.site[node]].path, b.sites[b.site[twin]].path);
  const operands = (play, of) => play.inputs[of].filter((_, i) => i % 2 === 0);
  const from = operands(a, node), to = operands(b, twin);
  const title = (play, at) => (at === undefined ? "" : play.title(at));
  for (let i = 0; i < Math.max(from.length, to.length); ++i)
    if (a.twin[from[i]] !== to[i]) add(`operand ${i}`, title(a, from[i]), title(b, to[i]));
    // Parameters and constants stand in the boxes of their readers.
    else if (a.isHidden(from[i]) && a.change[from[i]] !== "") changes.push(`${a.title(from[i])}: ${a.change[from[i]]}`);
  return changes.join("; ");
}

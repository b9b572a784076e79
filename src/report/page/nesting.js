// The layout of boxes in boxes: each box has a layout of its own, and edges pass through its entry and exit.
import { layered } from "./layout.js";

export const head = 26;  // the height of the title of an open box
const margin = 16;

/// Places the visible items of a tree. Returns the outermost item and the edges. Items get w, h and, for the whole
/// picture, ax and ay. `linesOf` gives the lines of text of an item.
export function arrange(tree, linesOf) {
  const root = tree.visible(), edges = tree.edges(), inside = new Map();
  for (const edge of edges) {
    edge.across = edge.from.backward !== edge.to.backward;
    edge.parts = edge.across ? [] : partsOf(edge, inside, tree);
  }
  place(root, inside, linesOf);
  settle(root, 0, 0);
  return { root, edges };
}

/// The parts of an edge, one for each box that it passes: out of boxes to their exits, then within the box around both
/// ends, then into boxes from their entries. Parts between the same items are one.
function partsOf({ from, to }, inside, tree) {
  const part = (container, start, end) => {
    const parts = inside.get(container) ?? inside.set(container, new Map()).get(container);
    const key = `${start.id} ${end.id}`;
    return parts.get(key) ?? parts.set(key, { container, start, end }).get(key);
  };
  const port = (item, name) => (item[name] ??= { id: tree.made++, port: name, w: 10, h: 0 });
  const out = [], into = [];
  while (from !== to && from.container !== to.container) {
    if (from.depth >= to.depth) {
      out.push(part(from.container, from, port(from.container, "exit")));
      from = from.container;
    } else {
      into.unshift(part(to.container, port(to.container, "entry"), to));
      to = to.container;
    }
  }
  return [...out, ...(from === to ? [] : [part(from.container, from, to)]), ...into];
}

/// Sets sizes and relative positions, from the inside out.
function place(item, inside, linesOf) {
  if (!item.box?.open) {
    const lines = linesOf(item);
    item.w = Math.min(260, Math.max(item.box ? 150 : 96, 22 + 7.2 * Math.max(...lines.map(line => line.length))));
    item.h = 12 + 16 * lines.length;
    return;
  }
  for (const each of item.items) place(each, inside, linesOf);
  const placed = [item.entry, ...item.items, item.exit].filter(Boolean);
  const index = new Map(placed.map((each, i) => [each, i])), parts = [...(inside.get(item)?.values() ?? [])];
  for (const part of parts) Object.assign(part, { from: index.get(part.start), to: index.get(part.end) });
  const isRoot = item.container === null, columns = isRoot && item.items.some(each => each.backward);
  const size = columns ? beside(item.items) : layered(placed, parts);
  item.w = Math.max(size.w + 2 * margin, isRoot ? 0 : 170);
  item.h = size.h + margin + (isRoot ? margin : head + margin);
  const left = (item.w - size.w) / 2, top = isRoot ? margin : head + margin / 2, up = item.backward && !columns;
  for (const each of placed) {
    each.x += left;
    each.y = top + (up ? size.h - each.y - each.h : each.y);
  }
  for (const point of parts.flatMap(part => part.points ?? [])) {
    point.x += left;
    point.y = top + (up ? size.h - point.y : point.y);
  }
}

/// Forward goes down on the left, backward goes up on the right, so that both parts of a layer are near each other.
function beside(items) {
  const high = Math.max(...items.map(item => item.h));
  let x = 0;
  for (const item of items) {
    Object.assign(item, { x, y: high - item.h });
    x += item.w + 70;
  }
  return { w: x - 70, h: high };
}

function settle(item, x, y) {
  item.ax = x + (item.x ?? 0);
  item.ay = y + (item.y ?? 0);
  for (const each of item.items ?? []) settle(each, item.ax, item.ay);
}

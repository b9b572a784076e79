// The layout of a graph in layers (Sugiyama, Tagawa and Toda, 1981): every edge goes down.
import { largest } from "./dom.js";

/// Moves the centres of a row of boxes as little as possible from where they want to be, so that they do not overlap:
/// isotonic regression by pooling.
function spread(row, wanted, gap) {
  const blocks = [], offsets = [], place = ({ sum, count }) => sum / count;
  row.forEach((box, i) => {
    offsets.push(i > 0 ? offsets[i - 1] + (row[i - 1].w + box.w) / 2 + gap : 0);
    const block = { sum: wanted[i] - offsets[i], count: 1 };
    while (blocks.length > 0 && place(blocks[blocks.length - 1]) > place(block)) {
      const before = blocks.pop();
      block.sum += before.sum;
      block.count += before.count;
    }
    blocks.push(block);
  });
  let i = 0;
  for (const block of blocks) for (const end = i + block.count; i < end; ++i) row[i].cx = place(block) + offsets[i];
}

const mean = numbers => numbers.reduce((sum, each) => sum + each, 0) / numbers.length;

/// Places `items` ({ w, h } in the order of recording) and sets their x and y. `edges` are pairs of indices and get
/// `points`, through which they pass. Returns the size of the whole.
export function layered(items, edges) {
  const first = items[0]?.port === "entry" ? 1 : 0;
  const boxes = items.map((item, i) =>
      ({ item, index: i, w: item.w, h: item.h, layer: item.port === "entry" ? 0 : first, up: [], down: [] }));
  const down = edges.filter(edge => edge.from < edge.to);
  for (const { from, to } of [...down].sort((a, b) => a.from - b.from || a.to - b.to))
    boxes[from].down.push(to);
  for (const box of boxes) for (const to of box.down) boxes[to].layer = Math.max(boxes[to].layer, box.layer + 1);
  // An item without operands stands directly above its first reader, and the exit of a box below everything.
  const hasUp = new Set(down.map(edge => edge.to)), deepest = largest(boxes.map(box => box.layer), 0);
  for (const box of [...boxes].reverse())
    if (box.item.port === "exit") box.layer = deepest;
    else if (!hasUp.has(box.index) && box.down.length > 0 && !box.item.port)
      box.layer = -largest(box.down.map(to => -boxes[to].layer)) - 1;
  const layers = [];
  for (const box of boxes) (layers[box.layer] ??= []).push(box);
  for (let i = 0; i < layers.length; ++i) layers[i] ??= [];
  for (const box of boxes) box.down = [];
  addEdges(boxes, down, layers);
  orderLayers(layers);
  placeX(layers, 26);
  return finish(layers, items, edges, 40);
}

/// Connects boxes. Edges over a few layers get a narrow box in each, so that they pass between others.
function addEdges(boxes, down, layers) {
  const longest = 12, most = 3000;
  let bends = 0;
  for (const edge of down) {
    let from = boxes[edge.from];
    const to = boxes[edge.to], span = to.layer - from.layer;
    edge.bends = [];
    for (let layer = from.layer + 1; layer < to.layer && span <= longest && bends < most; ++layer, ++bends) {
      const bend = { w: 12, h: 0, layer, up: [from], down: [], bend: true };
      from.down.push(bend);
      layers[layer].push(bend);
      edge.bends.push(bend);
      from = bend;
    }
    if (to.layer - from.layer > 1) continue;
    from.down.push(to);
    to.up.push(from);
  }
}

/// Orders each layer by the mean places of its neighbours, to avoid crossings.
function orderLayers(layers) {
  const number = layer => layer.forEach((box, i) => (box.at = i));
  layers.forEach(number);
  for (let sweep = 0; sweep < 6; ++sweep) {
    const downwards = sweep % 2 === 0;
    for (const layer of downwards ? layers : [...layers].reverse()) {
      for (const box of layer) {
        const near = downwards ? box.up : box.down;
        box.key = near.length > 0 ? mean(near.map(each => each.at)) : box.at;
      }
      layer.sort((a, b) => a.key - b.key || a.at - b.at);
      number(layer);
    }
  }
}

function placeX(layers, gap) {
  for (const layer of layers) {
    let x = 0;
    for (const box of layer) {
      box.cx = x + box.w / 2;
      x += box.w + gap;
    }
    for (const box of layer) box.cx -= x / 2;
  }
  for (let sweep = 0; sweep < 8; ++sweep) {
    const downwards = sweep % 2 === 0;
    for (const layer of downwards ? layers : [...layers].reverse())
      spread(layer, layer.map(box => {
        const near = downwards ? box.up : box.down;
        return near.length > 0 ? mean(near.map(each => each.cx)) : box.cx;
      }), gap);
  }
}

function finish(layers, items, edges, gapY) {
  let left = Infinity, right = -Infinity, y = 0;
  for (const layer of layers) {
    const high = largest(layer.map(box => box.h), 0);
    for (const box of layer) {
      box.cy = y + high / 2;
      left = Math.min(left, box.cx - box.w / 2);
      right = Math.max(right, box.cx + box.w / 2);
      if (box.item) Object.assign(box.item, { x: box.cx - box.w / 2, y: y + (high - box.h) / 2 });
    }
    y += high + (high > 0 ? gapY : 12);
  }
  if (layers.length === 0) return { w: 0, h: 0 };
  for (const item of items) item.x -= left;
  for (const edge of edges) edge.points = (edge.bends ?? []).map(bend => ({ x: bend.cx - left, y: bend.cy }));
  return { w: right - left, h: y - (layers[layers.length - 1].some(box => box.h > 0) ? gapY : 12) };
}

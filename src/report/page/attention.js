// Attention: layers × heads as small pictures, and one of them with its tokens.
import { bytesOf, choice, el, fill, percent, roving, shown } from "./dom.js";
import { Stage, colour, fitted, hex, shade, shadeText } from "./stage.js";
import { state } from "./state.js";

// A byte of a picture is a number from 0 to 1, as 0 to 254, or 255 for one that is not finite.
const brightest = 254, orange = [213, 94, 0];

/// Draws a matrix of bytes, one pixel for each element. `empty` stands for no element.
export function pixels(canvas, bytes, rows, columns, { offset = 0, empty = -1 } = {}) {
  Object.assign(canvas, { width: columns, height: rows });
  const image = new ImageData(columns, rows);
  for (let i = 0; i < rows * columns; ++i) {
    const byte = bytes[offset + i];
    image.data.set([...(byte > brightest ? orange : shade(byte / brightest)), byte === empty ? 0 : 255], 4 * i);
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

export class AttentionView {
  constructor(host) {
    this.all = state.page.attention.map(each => ({ ...each, bytes: bytesOf(each.weights) }));
    this.host = host;
    this.use(0);
  }
  use(index) {
    this.chosen = this.all[index];
    const [layers, heads, rows, columns] = this.chosen.shape, tokens = this.chosen.keys.tokens;
    this.row = null;
    this.small = [];  // a picture for each head
    for (let at = 0; at < layers * heads; ++at) {
      const layer = Math.floor(at / heads), head = at % heads, canvas = el("canvas", { "aria-hidden": "true" });
      pixels(canvas, this.chosen.bytes, rows, columns, { offset: at * rows * columns });
      canvas.style.aspectRatio = `${columns} / ${rows}`;
      const name = `layer ${layer + 1}, head ${head + 1}`, share = el("span", {});
      const button = el("button", { "aria-pressed": "false", onclick: () => this.choose(layer, head) }, canvas, name,
          share);
      this.small.push({ layer, head, share, button });
    }
    this.grid = roving(el("div", { class: "small" }, this.small.map(({ button }) => button)));
    const place = el("div", { class: "stage", style: { "min-height": "420px" } });
    this.title = el("b", {});
    fill(this.host, el("div", { class: "bar" },
      this.all.length > 1 ? choice("Attention", this.all.map((each, i) => [String(i), `${each.which}: ${each.name}`]),
          String(index), i => this.use(Number(i))) : "",
      this.title, choice("Heads by attention to", [["", "–"],
          ...tokens.map((token, i) => [String(i), `${i + 1}: ${token}`])], "", column => this.rank(column)),
      el("span", {}, `rows: ${shown(this.chosen.queries.text)}, columns: ${shown(this.chosen.keys.text)}. `,
        "Hover over a token or a cell.")), place, this.grid);
    this.stage = new Stage(place, {
      label: "Attention weights of one head.", moves: "none", draw: (context, stage) => this.draw(context, stage),
      hit: (x, y) => this.hit(x, y), boxes: () => this.boxes(), tip: cell => cell.text,
    });
    this.choose(layers - 1, 0);
  }
  choose(layer, head) {
    Object.assign(this, { layer, head });
    this.title.textContent = `${shown(this.chosen.which)}, layer ${layer + 1}, head ${head + 1}`;
    for (const each of this.small)
      each.button.setAttribute("aria-pressed", each.layer === layer && each.head === head);
    this.stage.request();
  }
  /// Orders the heads by the mean weight of a column, the largest first, and shows that head.
  rank(column) {
    const [, , rows] = this.chosen.shape;
    const mean = ({ layer, head }) => {
      let sum = 0;
      for (let row = 0; row < rows; ++row) sum += this.weight(row, Number(column), layer, head) || 0;
      return sum / rows;
    };
    const ranked = this.small.map(each => ({ ...each, mean: column === "" ? 0 : mean(each) }))
      .sort((a, b) => b.mean - a.mean);
    for (const { share, mean } of ranked) share.textContent = column === "" ? "" : `: ${percent(mean)}`;
    this.grid.replaceChildren(...ranked.map(({ button }) => button));
    this.choose(ranked[0].layer, ranked[0].head);
  }
  /// A weight from 0 to 1. NaN if it is not finite.
  weight(row, column, layer = this.layer, head = this.head) {
    const [, heads, rows, columns] = this.chosen.shape;
    const byte = this.chosen.bytes[((layer * heads + head) * rows + row) * columns + column];
    return byte > brightest ? NaN : byte / brightest;
  }
  measure(stage) {
    const [, , rows, columns] = this.chosen.shape;
    const left = Math.min(130, stage.width * 0.3), top = 84;
    const cell = Math.min((stage.width - left - 10) / columns, (stage.height - top - 10) / rows, 46);
    return { rows, columns, left, top, cell };
  }
  draw(context, stage) {
    const { rows, columns, left, top, cell } = this.measure(stage), { keys, queries } = this.chosen;
    const focus = stage.hovered?.row ?? null;
    for (let row = 0; row < rows; ++row) for (let column = 0; column < columns; ++column) {
      context.globalAlpha = focus === null || focus === row ? 1 : 0.35;
      const weight = this.weight(row, column);
      context.fillStyle = Number.isNaN(weight) ? hex(orange) : shadeText(weight);
      context.fillRect(left + column * cell, top + row * cell, cell - (cell > 8 ? 1 : 0), cell - (cell > 8 ? 1 : 0));
    }
    context.globalAlpha = 1;
    context.font = `${Math.min(13, Math.max(8, cell - 1))}px system-ui, sans-serif`;
    context.textAlign = "right";
    for (let row = 0; row < rows && cell > 7; ++row) {
      context.fillStyle = focus === row ? colour("accent") : colour("text");
      context.fillText(fitted(context, shown(queries.tokens[row]), left - 10), left - 6, top + (row + 0.5) * cell);
    }
    context.textAlign = "left";
    for (let column = 0; column < columns && cell > 7; ++column) {
      context.save();
      context.translate(left + (column + 0.5) * cell, top - 6);
      context.rotate(-Math.PI / 3);
      context.fillStyle = focus !== null && this.weight(focus, column) > 0.25 ? colour("mark") : colour("text");
      context.fillText(fitted(context, shown(keys.tokens[column]), 88), 0, 0);
      context.restore();
    }
  }
  /// The cells, each row behind its token.
  boxes() {
    const { rows, columns, left, top, cell } = this.measure(this.stage);
    return Array.from({ length: rows }, (_, row) => [[0, top + row * cell, left, cell],
      ...Array.from({ length: columns }, (_, i) => [left + i * cell, top + row * cell, cell, cell])]).flat();
  }
  hit(x, y) {
    const { rows, columns, left, top, cell } = this.measure(this.stage);
    const row = Math.floor((y - top) / cell), column = Math.floor((x - left) / cell);
    if (row < 0 || row >= rows || column >= columns) return null;
    const { queries, keys } = this.chosen,
        size = at => this.weight(row, at) || 0,
        text = weight => (Number.isNaN(weight) ? "not finite" : percent(weight)),
        best = [...Array(columns).keys()].sort((a, b) => size(b) - size(a)).slice(0, 3);
    const of = at => `${shown(keys.tokens[at])} ${text(this.weight(row, at))}`;
    const here = column >= 0 ? "\nhere: " + of(column) : "";
    return { row, text: `${shown(queries.tokens[row])} attends to\n${best.map(of).join(", ")}${here}` };
  }
}

// Sparsity of Jacobians and Hessians: which elements may differ from zero, and how many plays they need.
import { bytesOf, counted, el, facts, link, percent, shown } from "./dom.js";
import { pixels } from "./attention.js";
import { selectNode, state } from "./state.js";

export class SparsityView {
  constructor(host) {
    const { sparsity } = state.play, { left_out, most } = sparsity;
    const output = `${state.play.title(sparsity.output)} (${state.play.outputs.get(sparsity.output) ?? "result"})`;
    host.append(el("div", { class: "bar" }, el("span", {}, el("b", {}, sparsity.kind), ` of ${shown(output)}`),
      el("span", {}, "Empty: zero for all values. Yellow: all elements of a cell may differ from zero.")),
    left_out.length > 0 ? el("p", { class: "pad" }, `Left out: ${left_out.map(shown).join(", ")}. ` +
      `Their elements times those of all values are more than ${most.toLocaleString("en")}.`) : "",
    el("div", { class: "grid" }, sparsity.matrices.map(matrix => this.card(sparsity, matrix))));
  }
  card({ kind, output }, matrix) {
    const { play } = state, { rows, columns, elements, picture } = matrix;
    const canvas = rows * columns > 0 && el("canvas", { class: "matrix", role: "img", style: { "--columns":
      picture.columns, "--rows": picture.rows }, "aria-label": `${kind} with ${rows} rows and ${columns} columns` });
    if (canvas) pixels(canvas, bytesOf(picture.pixels), picture.rows, picture.columns, { empty: 0 });
    const count = number => number.toLocaleString("en");
    const thinned = picture.rows < rows || picture.columns < columns;
    return el("div", { class: "card" }, el("h2", {}, link(`${kind} by ${play.label[matrix.input]}`,
      () => selectNode(matrix.input))), canvas, facts([
      ["rows, columns", `${count(rows)} (${play.typeText(kind === "Jacobian" ? output : matrix.input)}), ` +
        `${count(columns)} (${play.typeText(matrix.input)})`],
      ["elements", `${count(elements)}, ${percent(elements / Math.max(1, rows * columns))}`],
      ["forward", matrix.tangents !== undefined && `${counted(matrix.tangents, "tangent")}, not ${count(columns)}`],
      ["reverse", matrix.cotangents !== undefined && `${counted(matrix.cotangents, "cotangent")}, not ${count(rows)}`],
      ["products", matrix.products !== undefined && `${counted(matrix.products, "direction")}, not ${count(columns)}`],
      ["picture", thinned && `${picture.rows} × ${picture.columns} cells, each for several elements`],
    ].filter(([, value]) => value !== false)));
  }
}

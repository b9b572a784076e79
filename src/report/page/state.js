// What is selected. Every view shows the same selection.
import { redrawAll } from "./stage.js";

export const state = { page: null, play: null, view: "", selection: null };
const listeners = [];

/// `change` is called after each change of the selection, the play or the plan.
export function onChange(change) {
  listeners.push(change);
}
export function changed(what) {
  for (const listener of listeners) listener(what);
  redrawAll();
}

/// Makes another play that of all views.
export function use(play) {
  if (play === state.play) return;
  Object.assign(state, { play, selection: null });
  changed("play");
}

/// Selects nodes and steps. `selection`: title, nodes and steps as predicates or lists, node (if it is one), line.
export function select(selection) {
  const { play } = state;
  if (selection && play) {
    const mask = (count, of) => {
      const all = new Uint8Array(count);
      if (typeof of === "function") for (let i = 0; i < count; ++i) all[i] = of(i) ? 1 : 0;
      else for (const i of of ?? []) if (i >= 0 && i < count) all[i] = 1;
      return all;
    };
    selection = { ...selection, nodes: mask(play.count, selection.nodes),
        steps: mask(play.plan?.count ?? 0, selection.steps) };
  }
  state.selection = selection;
  changed("selection");
}

export function selectNode(node, reveal = true) {
  const step = state.play.plan?.stepOf[node] ?? -1;
  select({ kind: "node", title: state.play.title(node), node, nodes: [node], steps: [step],
      reveal: reveal ? node : undefined });
}

export function selectStep(step) {
  const { play } = state, node = play.plan.nodeOf[step];
  const nodes = [];
  play.plan.stepOf.forEach((each, i) => each === step && nodes.push(i));
  select({ kind: "step", title: `Step ${step}: ${play.plan.op[step]}`, step, nodes, steps: [step],
      reveal: node >= 0 ? node : undefined });
}

export function selectLine(file, line) {
  const { play } = state;
  const on = play.sites.map(site => site.file === file && site.line === line);
  select({ kind: "line", title: `${file.split("/").pop()}, line ${line}`, file, line, nodes: i => on[play.site[i]],
    steps: i => on[play.plan.site[i]] });
}

export function selectModule(path, backward = null) {
  const { play } = state;
  const inside = each => each === path || each.startsWith(path + ".") ||
      (path.startsWith("/") && each.startsWith(path + "/"));
  const on = play.sites.map(site => inside(site.path));
  select({ kind: "module", title: path, path,
      nodes: i => on[play.site[i]] && (backward === null || play.isBackward(i) === backward),
    steps: i => on[play.plan.site[i]] || inside(play.plan.module[i]) });
}

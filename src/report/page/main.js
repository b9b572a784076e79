// Starts the page: views and their tabs, search, keys, the theme, and the reload of a page that grows.
import { AttentionView } from "./attention.js";
import { CompareView } from "./compare.js";
import { byId, el, fill, roving, shown, shownLines } from "./dom.js";
import { readPage } from "./data.js";
import { GraphView } from "./graph.js";
import { MemoryView } from "./memory.js";
import { showDetails, SourcePanel } from "./panels.js";
import { RunsView } from "./runs.js";
import { SparsityView } from "./sparsity.js";
import { redrawAll, stages } from "./stage.js";
import { onChange, select, selectNode, state } from "./state.js";
import { ThreadsView } from "./threads.js";
import { TimeView } from "./time.js";
import { FailureView, ValuesView } from "./values.js";

const views = [
  ["runs", "Run", RunsView, page => page.runs.length > 0],
  ["failure", "Failure", FailureView, (page, play) => play?.failure],
  ["graph", "Graph", GraphView, (page, play) => play],
  ["memory", "Memory", MemoryView, (page, play) => play?.plan],
  ["time", "Time", TimeView, (page, play) => play?.plan],
  ["threads", "Threads", ThreadsView, (page, play) => play?.plan?.trace],
  ["sparsity", "Sparsity", SparsityView, (page, play) => play?.sparsity],
  ["values", "Numbers", ValuesView, (page, play) => play?.values.size > 0],
  ["attention", "Attention", AttentionView, page => page.attention.length > 0],
  ["compare", "Compare", CompareView, page => page.plays.length === 2 && !page.plays.some(play => play.failure)],
];
const ofPage = ["runs", "attention", "compare"];  // the others belong to a play
const made = new Map();  // views by name and play
let current = null, sourcePanel = null;

const available = () => views.filter(([, , , has]) => has(state.page, state.play));

function showTabs() {
  fill(byId("tabs"), ...available().map(([key, name]) => el("button", {
    role: "tab", id: "tab-" + key, "aria-selected": key === state.view, "aria-controls": "view",
    tabindex: key === state.view ? "0" : "-1", onclick: () => open(key),
  }, name)));
}

/// Opens a view. It is made once for each play, and keeps its place.
function open(key) {
  const found = available().find(([each]) => each === key) ?? available()[0];
  if (!found) return;
  state.view = found[0];
  const name = found[0] + (ofPage.includes(found[0]) ? "" : state.page.plays.indexOf(state.play));
  if (!made.has(name)) {
    const host = el("div", { style: { display: "contents" } });
    byId("view").replaceChildren(host);
    made.set(name, { host, view: new found[2](host) });
  }
  current = made.get(name);
  byId("view").replaceChildren(current.host);
  current.view.changed?.("selection");
  showTabs();
  redrawAll();
  refreshDetails();
  history.replaceState(null, "", "#" + state.view);
}

function refreshDetails() {
  const graph = made.get("graph" + state.page.plays.indexOf(state.play))?.view;
  showDetails(byId("details"), graph?.outline());
  sourcePanel.mark();
}

function usePlay(index) {
  state.play = state.page.plays[index] ?? null;
  state.selection = null;
  sourcePanel.use();
  byId("side").hidden = !state.play;
  open(state.view);
}

function search(words) {
  const { play } = state, found = byId("found"), wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  found.hidden = wanted.length === 0 || !play;
  if (found.hidden) return [];
  const all = [];
  for (let node = 0; node < play.count; ++node) {
    const line = [play.title(node), play.types[node].join(" "), play.typeText(node), play.outputs.get(node) ?? "",
      play.sites[play.site[node]].text, play.plan?.op[play.plan.stepOf[node]] ?? ""].join(" ").toLowerCase();
    if (wanted.every(word => line.includes(word))) all.push(node);
  }
  const item = (title, rest, go) => el("button", { onclick: () => {
    byId("search").focus();
    found.hidden = true;
    go();
  } }, title, el("span", { class: "dim" }, rest));
  found.replaceChildren(item(`All ${all.length} matches`, "", () => selectAll(words, all)),
    ...all.slice(0, 60).map(node =>
        item(shown(play.title(node)), ` ${play.typeText(node)}  ${shown(play.sites[play.site[node]].path)}`,
        () => selectNode(node))));
  return all;
}
const selectAll = (words, nodes) =>
    select({ kind: "search", title: `“${words}”`, nodes,
    steps: nodes.map(node => state.play.plan?.stepOf[node] ?? -1) });

function listen() {
  const input = byId("search"), found = byId("found");
  input.addEventListener("input", () => search(input.value));
  input.addEventListener("keydown", event => {
    if (event.key === "Enter") {
      selectAll(input.value, search(input.value));
      found.hidden = true;
    }
    if (event.key === "ArrowDown") found.querySelector("button")?.focus();
  });
  input.parentElement.addEventListener("keydown", event => {
    if (event.key !== "Escape" || found.hidden) return;
    event.stopPropagation();  // the selection stays
    input.focus();
    found.hidden = true;
  });
  for (const leaving of ["pointerdown", "focusin"])
    document.addEventListener(leaving, event => event.target.closest(".search") || (found.hidden = true));
  roving(found);
  roving(byId("tabs"), tab => tab.click());
  document.addEventListener("keydown", event => {
    const typing = event.target.closest("input:not([type=checkbox], [type=range]), select");
    if (event.ctrlKey || event.metaKey || event.altKey || (typing && event.key !== "Escape")) return;
    const tab = /^[1-9]$/.test(event.key) && byId("tabs").children[event.key - 1];
    if (tab) {
      tab.focus();
      tab.click();
    } else if (event.key === "/") input.focus();
    else if (event.key === "d") switchTheme();
    else if (event.key === "Escape") select(null);
    else return;
    event.preventDefault();
  });
}

const dark = matchMedia("(prefers-color-scheme: dark)");
function useTheme(theme) {
  document.documentElement.dataset.theme = theme;
  redrawAll();
}
function switchTheme() {
  useTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
}

async function start() {
  useTheme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => useTheme(dark.matches ? "dark" : "light"));
  let before = "";
  addEventListener("beforeprint", () => {
    before = document.documentElement.dataset.theme;
    useTheme("light");
    redrawAll(true);
  });
  addEventListener("afterprint", () => useTheme(before));
  if (typeof DecompressionStream === "undefined") throw new Error("it needs a browser of 2023 or later");
  const page = (state.page = await readPage(byId("data").textContent));
  byId("title").textContent = document.title = shown(page.title);
  byId("title").title = shown(page.title);
  byId("notes").replaceChildren(...page.notes.map(note => el("p", {}, shownLines(note))));
  byId("play").hidden = page.plays.length < 2;
  byId("play").append(...page.plays.map((play, i) => el("option", { value: i }, shown(play.name))));
  byId("play").addEventListener("change", event => usePlay(Number(event.target.value)));
  byId("theme").addEventListener("click", switchTheme);
  byId("search").parentElement.hidden = page.plays.length === 0;
  sourcePanel = new SourcePanel(byId("source"));
  onChange(what => {
    if (what === "plan" || what === "play") sourcePanel.use();
    if (what === "plan")
      for (const [name, each] of made) if (each !== current) made.delete(name);  // they show the plan before
    byId("play").value = state.page.plays.indexOf(state.play);
    current?.view.changed?.(what);
    refreshDetails();
  });
  listen();
  state.view = location.hash.slice(1) || (page.plays[0]?.failure ? "failure" : "");
  const controls = () => [...document.querySelectorAll("button, select, input, canvas")];
  const { focus } = history.state ?? {};
  usePlay(0);
  await null;  // until the charts are made
  controls()[focus]?.focus();
  if (page.reload > 0) setTimeout(() => {
    history.replaceState({ focus: controls().indexOf(document.activeElement) }, "");
    location.reload();
  }, 1000 * page.reload);
  globalThis.report = { state, views: made, stages: () => [...stages] };  // for the console
  document.documentElement.dataset.ready = Math.round(performance.now());
}
start();

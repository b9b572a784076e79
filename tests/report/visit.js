// Runs in a page that `xtape report` has written: opens every view, uses it as a person would, and gives what it finds.
const found = {};
const wait = () => new Promise(resolve => setTimeout(resolve, 30));

function painted(canvas) {
  if (canvas.width === 0 || canvas.height === 0) return false;
  return canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some(byte => byte !== 0);
}

/// Faults of a layout: boxes that overlap or leave their box, and edges that go against their direction.
function layoutFaults(view) {
  const faults = [], epsilon = 0.01;
  const inside = (a, b) => a.ax >= b.ax - epsilon && a.ay >= b.ay - epsilon && a.ax + a.w <= b.ax + b.w + epsilon && a.ay + a.h <= b.ay + b.h + epsilon;
  const apart = (a, b) => a.ax + a.w <= b.ax + epsilon || b.ax + b.w <= a.ax + epsilon || a.ay + a.h <= b.ay + epsilon || b.ay + b.h <= a.ay + epsilon;
  for (const item of view.items) {
    const items = item.items ?? [];
    items.forEach((each, i) => {
      if (!inside(each, item)) faults.push(`${each.first} leaves its box`);
      for (const other of items.slice(i + 1)) if (!apart(each, other)) faults.push(`${each.first} and ${other.first} overlap`);
    });
  }
  for (const { from, to, across } of view.edges) {
    if (across || from.container !== to.container || from.first > to.first) continue;
    if (from.backward ? from.ay < to.ay + to.h : from.ay + from.h > to.ay) faults.push(`the edge from ${from.first} to ${to.first} goes back`);
  }
  return faults;
}

async function openAll(view) {
  for (let i = 0; i < 30; ++i) {
    const closed = view.items.find(item => item.box && !item.box.open);
    if (!closed) return;
    view.hitX = 1e9;
    view.clicked(closed);
  }
}

async function visit() {
  found.views = {};
  for (const key of [...document.querySelectorAll("#tabs button")].map(tab => tab.id)) {
    document.getElementById(key).click();
    await wait();
    const canvases = [...document.querySelectorAll("#view .stage canvas")];
    for (let i = 0; i < 100 && !canvases.every(painted); ++i) await wait();  // a busy machine draws later
    found.views[key.slice(4)] = { text: document.getElementById("view").textContent.slice(0, 20000), painted: canvases.map(painted) };
  }
  const graph = report.views.get("graph0")?.view;
  if (graph) {
    document.getElementById("tab-graph").click();
    found.folds = graph.items.filter(item => item.box?.members).map(item => item.box.name);
    found.faults = layoutFaults(graph);
    await openAll(graph);
    await wait();
    found.faults.push(...layoutFaults(graph));
    const search = document.getElementById("search");
    const searched = words => {
      search.value = words;
      search.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
      return report.state.selection?.nodes.reduce((sum, on) => sum + on, 0) ?? 0;
    };
    found.searched = ["einsum", "einsum h.0", "h.0 einsum"].map(searched);
    const line = [...document.querySelectorAll(".code button")].find(button => !button.classList.contains("dim"));
    line?.click();
    found.lineNodes = report.state.selection.nodes.reduce((sum, on) => sum + on, 0);
    found.details = document.getElementById("details").textContent;
  }
  if (report.state.play?.plans.length > 1) {
    found.planSteps = [];
    for (const value of ["0", "1"]) {
      document.getElementById("tab-memory").click();
      const choice = [...document.querySelectorAll("#view select")].find(each => each.labels[0].textContent.startsWith("Plan"));
      choice.value = value;
      choice.dispatchEvent(new Event("change"));
      document.getElementById("tab-time").click();
      found.planSteps.push(document.querySelector("#view .bar").textContent.match(/\d+ steps/)[0]);
    }
  }
  found.strangers = document.querySelectorAll("img, iframe, object, embed, link, form, [onerror], [onclick]").length;
  found.attacked = window.attacked ?? 0;
  found.wide = document.body.scrollWidth > innerWidth;
  return found;
}
visit();

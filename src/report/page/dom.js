// Elements, and texts for people. Texts from data become text nodes only, so no name is ever read as HTML.

/// Makes an element. Attributes that begin with "on" are listeners; `style` is an object of properties.
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, to] of Object.entries(value)) element.style.setProperty(key, to);
    else if (name.startsWith("aria-")) element.setAttribute(name, String(value));
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter(child => child !== null && child !== undefined && child !== false));
  return element;
}

/// The largest of many numbers, and at least `least`. (Math.max takes no long lists.)
export const largest = (numbers, least = -Infinity) => numbers.reduce((a, b) => Math.max(a, b), least);

/// A list of terms with their values. Terms without a value are left out.
export function facts(rows) {
  const given = rows.filter(([, value]) => value !== "" && value !== undefined && value !== null && value.length !== 0);
  return el("dl", {}, given.flatMap(([key, value]) =>
    [el("dt", {}, key), el("dd", {}, typeof value === "string" ? shown(value) : value)]));
}

export const byId = id => document.getElementById(id);

/// Makes control characters and marks of direction visible: "\n" becomes "␊", U+202E becomes "‹U+202E›".
export function shown(text) {
  return String(text)
    .replace(/[\u0000-\u001f]/g, c => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(/[\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
      c => "‹U+" + c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0") + "›");
}

/// The same for texts of several lines.
export const shownLines = text => shown(text).replaceAll("␊", "\n");

/// A text that is a button.
export const link = (text, go) => el("button", { class: "plain link", onclick: go }, shown(text));

/// A text of many lines, which keys scroll.
export const longText = (name, text = "") => el("pre", { tabindex: "0", role: "group", "aria-label": name }, text);

/// Makes the buttons of a list one stop of Tab, among which arrow keys, Home and End move. `then` gets the next one.
export function roving(list, then) {
  const buttons = () => [...list.querySelectorAll("button:not(.dim)")];
  buttons().forEach((button, i) => (button.tabIndex = i === 0 ? 0 : -1));
  list.addEventListener("focusin", event =>
    buttons().forEach(button => (button.tabIndex = button === event.target ? 0 : -1)));
  list.addEventListener("keydown", event => {
    const all = buttons(), at = all.indexOf(event.target), last = all.length - 1;
    const next = all[{ ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1, Home: 0,
      End: last }[event.key]];
    if (at < 0 || !next) return;
    event.preventDefault();
    next.focus();
    then?.(next);
  });
  return list;
}

/// Replaces what is in a place. A control that has the focus gives it to the one that comes to its place.
export function fill(host, ...children) {
  const controls = () => [...host.querySelectorAll("button, select, input")];
  const at = controls().indexOf(document.activeElement);
  host.replaceChildren(...children);
  controls()[at]?.focus();
}

/// "1 step", "2,000 steps".
export const plural = (count, what) => (count === 1 ? what : what + "s");
export const counted = (count, what) => `${count.toLocaleString("en")} ${plural(count, what)}`;

export function bytesText(bytes) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < 4) {
    bytes /= 1024;
    ++unit;
  }
  return (unit === 0 ? bytes : bytes.toPrecision(bytes >= 1000 ? 4 : 3)) + " " + units[unit];
}

export function secondsText(seconds) {
  if (!(seconds > 0)) return "0";
  if (seconds >= 1) return seconds.toPrecision(3) + " s";
  if (seconds >= 1e-3) return (seconds * 1e3).toPrecision(3) + " ms";
  return (seconds * 1e6).toPrecision(3) + " µs";
}

export function numberText(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) return value.toExponential(2).replace("e+", "e");
  return String(Number(value.toPrecision(4)));
}

export const percent = share => (100 * share).toFixed(share >= 0.0995 ? 0 : 1) + " %";

/// "float32 (4, 64, 768)" becomes "f32 4×64×768".
export function shortType(type) {
  const found = /^(\w+) \((.*?),?\)$/.exec(type);
  if (!found) return type;
  const dtype = found[1].replace("bfloat", "bf").replace("float", "f").replace(/^int/, "i");
  return found[2] === "" ? dtype : dtype + " " + found[2].replaceAll(", ", "×");
}

/// A table. Headings that end in "|n" are those of numbers, which align right. `go` is called with the index of a row.
export function table(headings, rows, go) {
  const right = headings.map(heading => heading.endsWith("|n"));
  const head = el("tr", {}, headings.map((heading, i) =>
    el("th", { class: right[i] ? "n" : "", scope: "col" }, heading.replace("|n", ""))));
  const body = rows.map((row, i) => {
    const cells = row.map((cell, j) => el("td", { class: right[j] ? "n" : "" },
      go && j === 0 ? el("button", { class: "plain" }, shown(cell)) : shown(cell ?? "")));
    return el("tr", go ? { class: "go", onclick: () => go(i) } : {}, cells);
  });
  const none = rows.length > 0 ? "" : el("caption", { class: "dim" }, "None.");
  return roving(el("table", {}, none, el("thead", {}, head), el("tbody", {}, body)));
}

/// A list of choices with a label. `change` gets the value. `name` is for those who cannot see what it stands beside.
export function choice(label, options, value, change, name = label) {
  const select = el("select", { "aria-label": name, onchange: event => change(event.target.value) },
    options.map(([key, text]) => el("option", { value: key, selected: key === value }, shown(text))));
  return el("label", {}, label, select);
}

export function bytesOf(base64) {
  return Uint8Array.from(atob(base64), c => c.charCodeAt(0));
}

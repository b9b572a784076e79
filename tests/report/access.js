// Runs in a page: what a person meets who uses keys, a screen reader, or eyes that need contrast. Gives the faults of the view.
(() => {
  const faults = [], visible = element => element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;
  const called = element => `${element.tagName.toLowerCase()} ${(element.id || element.getAttribute("aria-label") || element.textContent).trim().slice(0, 40)}`;
  // Headings: one of the first level, and none that skips a level.
  const levels = [...document.querySelectorAll("h1, h2, h3, h4")].filter(visible).map(heading => Number(heading.tagName[1]));
  if (levels[0] !== 1 || levels.filter(level => level === 1).length !== 1) faults.push(`the headings are ${levels}`);
  levels.forEach((level, i) => i > 0 && level > levels[i - 1] + 1 && faults.push(`h${level} follows h${levels[i - 1]}`));
  // Names of elements are unique, and those that attributes name exist.
  const ids = [...document.querySelectorAll("[id]")].map(element => element.id);
  ids.filter((id, i) => ids.indexOf(id) < i).forEach(id => faults.push(`two elements are ${id}`));
  for (const name of ["aria-controls", "aria-labelledby"])
    for (const element of document.querySelectorAll(`[${name}]`)) if (!ids.includes(element.getAttribute(name))) faults.push(`${called(element)}: ${name} names nothing`);
  // What scrolls can be reached by keys.
  for (const element of document.querySelectorAll("main, main *")) {
    const { overflowX, overflowY } = getComputedStyle(element);
    const scrolls = (/auto|scroll/.test(overflowX) && element.scrollWidth > element.clientWidth + 1) || (/auto|scroll/.test(overflowY) && element.scrollHeight > element.clientHeight + 1);
    if (scrolls && visible(element) && element.tabIndex < 0 && !element.querySelector("[tabindex='0'], select, input, button:not([tabindex='-1'])")) faults.push(`no key scrolls ${called(element)}`);
  }
  // Contrast of texts: at least 4.5.
  const context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const over = (colours) => {
    context.clearRect(0, 0, 1, 1);
    for (const colour of colours) {
      context.fillStyle = colour;
      context.fillRect(0, 0, 1, 1);
    }
    return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = bytes => bytes.map(byte => (byte / 255 <= 0.04045 ? byte / 255 / 12.92 : ((byte / 255 + 0.055) / 1.055) ** 2.4)).reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
  const ratios = new Map();
  const ratioOf = (behind, front) => {
    const key = [...behind, front].join();
    if (ratios.has(key)) return ratios.get(key);
    const [a, b] = [over(behind), over([...behind, front])].map(light);
    return ratios.set(key, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)).get(key);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), seen = new Set();
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const element = text.parentElement;
    if (!text.data.trim() || seen.has(element) || element.closest("script, noscript, style") || !visible(element)) continue;
    seen.add(element);
    const behind = [];
    for (let each = element; each; each = each.parentElement) behind.unshift(getComputedStyle(each).backgroundColor);
    const ratio = ratioOf(behind, getComputedStyle(element).color);
    if (ratio < 4.5) faults.push(`contrast ${ratio.toFixed(1)}: ${called(element)}`);
  }
  return [...new Set(faults)];
})()

// Runs in the page: what a reader needs of every page. An empty list: nothing is wrong.
export function wrongOnPage() {
  const wrong = [];
  const wide = document.documentElement.scrollWidth - window.innerWidth;
  if (wide > 0) wrong.push(`the page is ${wide} px wider than the window`);
  for (const input of document.querySelectorAll("input, select, textarea")) {
    if (input.labels.length === 0 && !input.getAttribute("aria-label")) wrong.push(`no label: ${input.outerHTML.slice(0, 80)}`);
  }
  for (const control of document.querySelectorAll("button, a[href]")) {
    if (!control.textContent.trim() && !control.getAttribute("aria-label")) wrong.push(`no text: ${control.outerHTML.slice(0, 80)}`);
  }
  if (document.querySelectorAll("h1").length !== 1) wrong.push("not exactly one h1");
  const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
  for (const id of new Set(ids.filter((each, index) => ids.indexOf(each) !== index))) wrong.push(`id twice: ${id}`);

  // WCAG 2.2, 1.4.3: 4.5 to 1.
  const parse = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
  const light = ([red, green, blue]) => [red, green, blue].map((each) => each / 255)
    .map((each) => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4)
    .reduce((sum, each, index) => sum + each * [0.2126, 0.7152, 0.0722][index], 0);
  const backOf = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const seen = new Set();
  for (const element of document.querySelectorAll("body *")) {
    const hasText = [...element.childNodes].some((each) => each.nodeType === Node.TEXT_NODE && each.data.trim());
    if (!hasText || element.getClientRects().length === 0 || element.disabled) continue;
    const one = light(parse(getComputedStyle(element).color));
    const other = light(backOf(element));
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const name = `${element.tagName}.${element.className}`;
    if (ratio < 4.5 && !seen.has(name)) {
      seen.add(name);
      wrong.push(`contrast ${ratio.toFixed(2)}: ${name} "${element.textContent.trim().slice(0, 30)}"`);
    }
  }
  return wrong;
}

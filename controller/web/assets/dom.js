// Elements without markup in strings: text comes in as text nodes, so nothing that a node or an
// operator wrote can become markup.

const kSvg = "http://www.w3.org/2000/svg";

function add(parent, child) {
  if (child === null || child === undefined || child === false || child === "") return;
  if (Array.isArray(child)) {
    for (const each of child) add(parent, each);
    return;
  }
  parent.append(child instanceof Node ? child : document.createTextNode(String(child)));
}

function make(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node[name] = value;
    else if (name === "style") for (const [key, each] of Object.entries(value)) node.style.setProperty(key, each);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  add(node, children);
  return node;
}

/** h("p", {class: "quiet", onclick}, "text", child, [children]): properties may be left out as null. */
export function h(tag, props, ...children) {
  return make(document.createElement(tag), props, children);
}

export function svg(tag, props, ...children) {
  return make(document.createElementNS(kSvg, tag), props, children);
}

const kTyped = ["INPUT", "TEXTAREA", "SELECT"];
const kHandlers = ["onclick", "oninput", "onchange", "onsubmit", "onkeydown", "ontoggle"];

function attributes(old, next) {
  for (const {name} of [...old.attributes]) {
    if (name === "open" && old.tagName === "DETAILS") continue;  // the reader opened it
    if (!next.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const {name, value} of next.attributes) {
    if (name === "open" && old.tagName === "DETAILS") continue;
    if (old.getAttribute(name) === value) continue;
    // The policy of the page allows no style attribute; the object behind it is allowed.
    if (name === "style") old.style.cssText = value;
    else old.setAttribute(name, value);
  }
  for (const each of kHandlers) old[each] = next[each];
}

function isSame(old, next) {
  return old.nodeType === next.nodeType && old.nodeName === next.nodeName &&
    (old.nodeType !== Node.ELEMENT_NODE || old.getAttribute("data-key") === next.getAttribute("data-key"));
}

/** Makes the children of `old` those of `next` and keeps what is the same: focus, open details, scroll. */
export function morph(old, next) {
  const wanted = [...next.childNodes];
  let at = old.firstChild;
  for (const each of wanted) {
    let found = at;
    while (found && !isSame(found, each)) found = found.nextSibling;
    if (!found) {
      old.insertBefore(each, at);
      continue;
    }
    while (at !== found) {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    }
    if (found.nodeType === Node.TEXT_NODE) {
      if (found.data !== each.data) found.data = each.data;
    } else if (found.nodeType === Node.ELEMENT_NODE) {
      attributes(found, each);
      // What is being typed or chosen is the reader's.
      if (!kTyped.includes(found.tagName) || found !== document.activeElement) morph(found, each);
    }
    at = found.nextSibling;
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

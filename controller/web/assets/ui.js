// What pages share: states, tables, problems, questions.

import {h} from "./dom.js";
import {bytes, kNone, moment, number, seconds} from "./format.js";
import {newKey, Problem} from "./api.js";

/** What a state means for the reader; its mark beside the colour is for those who do not see that. */
const kTones = {
  good: "✓", bad: "✕", warn: "!", busy: "●", wait: "◷", idle: "○"
};
const kStates = {
  done: "good", healthy: "good", open: "good", passed: "good", undone: "good",
  failed: "bad", "not-undone": "bad", "done-with-differences": "warn", closed: "wait", cancelled: "idle",
  running: "busy", acting: "busy", cancelling: "busy", "under-way": "busy", planned: "idle", pending: "idle",
  waiting: "wait", paused: "wait", pausing: "wait", deferred: "wait", unknown: "warn", not_seen: "warn",
  skipped: "idle", started: "busy", "needs-approval": "warn", "not-needed": "idle", dropped: "warn"
};

export function badge(text, tone) {
  const kind = tone ?? kStates[text] ?? "idle";
  return h("span", {class: `badge ${kind}`}, h("span", {"aria-hidden": "true"}, kTones[kind]), " ", text.replaceAll("_", " "));
}

export function link(to, ...text) {
  return h("a", {href: "#/" + to}, ...text);
}

/** `columns`: [title, cell of a row, class]; on narrow screens each row is a block with the titles inside. */
export function table(caption, columns, rows, {key, empty = "None.", sub} = {}) {
  if (rows.length === 0) return h("p", {class: "quiet"}, empty);
  const body = [];
  rows.forEach((row, index) => {
    const name = key ? key(row) : index;
    body.push(h("tr", {"data-key": name}, columns.map(([title, cell, kind], at) =>
      h(at === 0 ? "th" : "td", {class: kind, "data-title": title, scope: at === 0 ? "row" : null}, h("div", null, cell(row))))));
    const more = sub?.(row);
    if (more) body.push(h("tr", {class: "sub", "data-key": name + " more"}, h("td", {colspan: columns.length}, more)));
  });
  return h("div", {class: "table", tabindex: "0", role: "region", "aria-label": caption},
    h("table", null, h("caption", {class: "unseen"}, caption),
      h("thead", null, h("tr", null, columns.map(([title, , kind]) => h("th", {scope: "col", class: kind}, title)))),
      h("tbody", null, body)));
}

export function facts(...pairs) {
  return h("dl", {class: "facts"}, pairs.filter(Boolean).map(([name, ...value]) =>
    h("div", {"data-key": name}, h("dt", null, name), h("dd", null, ...value))));
}

export function panel(title, ...content) {
  return h("section", {class: "panel", "data-key": title, "aria-label": title}, h("h2", null, title), ...content);
}

export function note(tone, ...text) {
  return h("p", {class: `note ${tone}`}, h("span", {"aria-hidden": "true"}, kTones[tone]), " ", h("span", null, ...text));
}

/** A bar from 0 to `total`; the text beside it says the same. */
export function meter(done, total, label, tone = "busy") {
  const share = total > 0 ? Math.max(0, Math.min(100, 100 * done / total)) : 0;
  return h("span", {class: `meter ${tone}`, role: "img", "aria-label": label}, h("span", {style: {width: `${share}%`}}));
}

export function problemText(problem) {
  if (!(problem instanceof Problem)) return String(problem?.message ?? problem);
  const more = [...problem.body.differences ?? [],
    ...(problem.body.refusals ?? []).map((each) => [each.node, each.message].filter(Boolean).join(": "))];
  const acting = problem.body.acting?.url ? ` The active controller is ${problem.body.acting.url}.` : "";
  return [problem.message + acting, ...more.filter((each) => !problem.message.includes(each))].join("\n");
}

export function problemNote(problem) {
  return note("bad", problemText(problem));
}

const title = (name) => name.replace(/_(seconds|ms)$/, "").replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase());
const kFirst = ["name", "node", "state"];
const kDigest = /^[0-9a-f]{32,}$/;
const kByteNames = /bytes|space_saved|_before$|_after$|position$/;

function scalar(name, value) {
  if (value === null || value === undefined || value === "") return kNone;
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") {
    if (name.endsWith("_seconds") || name === "seconds") return seconds(value);
    if (name.endsWith("_ms")) return seconds(value / 1000);
    return kByteNames.test(name) && !/position|records|serial|removed/.test(name) ? bytes(value) : number(value);
  }
  if (typeof value === "string" && kDigest.test(value)) return h("code", {title: value}, value.slice(0, 12), "…");
  if (typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value)) return moment(value);
  if (typeof value === "string") return /^[\w.-]{1,20}$/.test(value) ? value : h("span", {class: "text"}, value);
  return h("span", {class: "text"}, Object.entries(value).map(([key, each]) => h("div", null, `${title(key)}: `, scalar(key, each))));
}

/** Any object of the API, such as a report: the members that this page does not know, too. */
export function object(value, caption) {
  const simple = [];
  const rest = [];
  for (const [name, member] of Object.entries(value)) {
    if (Array.isArray(member) && member.length > 0 && typeof member[0] === "object") {
      const names = [...new Set([...kFirst, ...member.flatMap(Object.keys)])].filter((each) => member.some((row) => each in row));
      rest.push(h("h3", null, title(name)), table(`${caption}: ${title(name)}`,
        names.map((each) => [title(each), (row) => cellOf(each, row[each])]), member));
    } else if (Array.isArray(member)) {
      if (member.length > 0) rest.push(h("h3", null, title(name)), h("ul", null, member.map((each) => h("li", null, scalar(name, each)))));
    } else if (member && typeof member === "object") {
      rest.push(h("h3", null, title(name)), object(member, `${caption}: ${title(name)}`));
    } else {
      simple.push([title(name), scalar(name, member)]);
    }
  }
  return [simple.length > 0 ? facts(...simple) : null, ...rest];
}

function cellOf(name, value) {
  if (Array.isArray(value)) return value.length === 0 ? kNone : value.map((each) => h("div", null, scalar(name, each)));
  return scalar(name, value);
}

/**
 * Asks before something is done. `fields`: {name, label, kind: "text"|"select"|"check", options, required, help};
 * `act(values, key)` does it: the dialog stays with the refusal where that fails, and the key is the same then.
 */
export function ask({heading, text, fields = [], confirm, tone = "", act}) {
  const dialog = document.getElementById("dialog");
  const refusal = h("div", {role: "alert"});
  const key = newKey();
  const inputs = {};
  const rows = fields.map((field) => {
    const id = `field-${field.name}`;
    let input;
    if (field.kind === "select") {
      input = h("select", {id}, field.options.map(([value, label]) => h("option", {value}, label)));
    } else if (field.kind === "check") {
      input = h("input", {id, type: "checkbox"});
    } else {
      input = h("input", {id, type: "text", required: field.required, maxlength: 500, autocomplete: "off"});
    }
    inputs[field.name] = input;
    const label = h("label", {for: id}, field.label);
    return h("div", {class: `field ${field.kind ?? "text"}`}, field.kind === "check" ? [input, label] : [label, input],
      field.help ? h("p", {class: "quiet"}, field.help) : null);
  });
  const send = h("button", {type: "submit", class: `main ${tone}`}, confirm);
  const close = () => dialog.close();
  const submit = async (event) => {
    event.preventDefault();
    send.disabled = true;
    refusal.replaceChildren();
    const values = {};
    for (const [name, input] of Object.entries(inputs)) values[name] = input.type === "checkbox" ? input.checked : input.value.trim();
    try {
      await act(values, key);
      dialog.close();
    } catch (problem) {
      refusal.replaceChildren(problemNote(problem));
      send.disabled = false;
    }
  };
  dialog.setAttribute("aria-label", heading);
  dialog.replaceChildren(h("form", {onsubmit: submit}, h("h2", null, heading), text ? h("p", null, text) : null, rows, refusal,
    h("div", {class: "actions"}, h("button", {type: "button", onclick: close}, "Back"), send)));
  dialog.showModal();
}

export const kReason = {name: "reason", label: "Reason (for the audit trail)"};

export function button(label, onclick, kind = "") {
  return h("button", {type: "button", class: kind, onclick}, label);
}

import {h} from "./dom.js";
import * as api from "./api.js";
import {lengthText, sizeText} from "./format.js";
import {badge, facts, kReason, link, note, panel, problemNote, table} from "./ui.js";
import {operationsOf, requestOf} from "./plan_form.js";

const words = (name) => name.replace(/_ms$/, "").replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase());

/** A value as the reader would type it. */
function typed(field, value) {
  if (field.unit === "bytes") return sizeText(value);
  return field.unit === "milliseconds" ? lengthText(value) : String(value);
}

function input(field, value, take) {
  const id = `field-${field.name}`;
  const props = {id, name: field.name, "aria-describedby": `${id}-help`};
  const choices = field.choices ?? (field.type === "boolean" ? ["true", "false"] : null);
  if (choices) {
    return h("select", {...props, onchange: (event) => take(event.target.value)},
      choices.map((each) => h("option", {value: each, selected: each === (value ?? typed(field, field.preset))}, each)));
  }
  const number = field.type === "integer" && !field.unit;
  return h("input", {...props, type: number ? "number" : "text", min: field.least, max: field.most, step: number ? 1 : null, value: value ?? "",
    autocomplete: "off", spellcheck: "false", oninput: (event) => take(event.target.value), placeholder: typed(field, field.preset)});
}

function help(field) {
  const takes = field.unit === "bytes" ? "a size, such as 16MiB" : field.unit === "milliseconds" ? "a length of time, such as 90m"
    : field.type === "integer" ? `${field.least} to ${field.most}` : "";
  return [field.help, takes ? ` (${takes})` : "", "."];
}

/** What stands against the plan, each with what to do about it. */
function refused(problem) {
  const refusals = problem.body?.refusals ?? [];
  if (refusals.length === 0) return problemNote(problem);
  return panel("No plan can be made now", table("Refusals", [
    ["Where", (each) => each.node || "cluster"],
    ["Refused because", (each) => h("span", {class: "text"}, each.message)],
    ["What to do", (each) => h("span", {class: "text"}, each.hint || "See the message.")],
    ["Code", (each) => badge(each.code, "bad")]
  ], refusals, {key: (each) => `${each.code} ${each.node} ${each.message}`}));
}

/** The form of a new plan: what can be asked for is what the API's own document says. */
export function newPlanPage({session, redraw}, cluster, wanted) {
  const path = "/clusters/" + api.segment(cluster);
  let chosen = wanted ?? "scavenge";
  let policy = "";
  let reason = "";
  let values = {};  // what was typed or chosen, by name
  let problem = null;
  let sending = false;
  let key = api.newKey();
  const changed = () => {
    key = api.newKey();
  };
  const start = (operation, of) => {
    chosen = operation;
    policy = of;
    values = {};
    problem = null;
    changed();
    redraw();
  };
  const send = async (event, operation) => {
    event.preventDefault();
    if (sending) return;
    sending = true;
    problem = null;
    redraw();
    try {
      const made = await api.post(path + "/plans", {...requestOf(operation, values), ...(policy ? {policy} : {}), ...(reason.trim() ? {reason: reason.trim()} : {})}, key);
      location.hash = "#/plans/" + made.hash;
      return;
    } catch (refusal) {
      problem = refusal;
      if (refusal.status > 0 && refusal.status < 500) changed();  // the answer to this key is known
    }
    sending = false;
    redraw();
    document.getElementById("refusal")?.scrollIntoView({block: "nearest"});
  };
  return {
    title: `New plan for ${cluster}`,
    slowest: Infinity,
    concerns: () => false,
    async load(signal) {
      const [document, policies, clusters] = await Promise.all([api.get("/openapi.json", signal), api.all("/policies", "policies", signal),
        api.all("/clusters", "clusters", signal)]);
      const known = clusters.find((each) => each.name === cluster);
      return {document, known, policies: policies.filter((each) => each.selected.some((one) => one.cluster === cluster))};
    },
    render({document, known, policies}) {
      const head = [h("p", {class: "trail"}, link("", "Fleet"), " / ", link("clusters/" + api.segment(cluster), cluster), " / new plan"),
        h("h1", null, `New plan for ${cluster}`)];
      if (session.role === "viewer") return [...head, note("idle", "Your role, viewer, may not make plans.")];
      if (!known) return [...head, note("bad", `No cluster ${cluster} is registered.`)];
      const operations = operationsOf(document);
      const base = operations.find((each) => each.name === chosen) ?? operations[0];
      const ofIt = policies.filter((each) => each.plan.operation === base.name);
      const from = ofIt.find((each) => each.name === policy);
      const [operation] = operationsOf(document, from?.plan).filter((each) => each.name === base.name);
      const choice = (id, label, options, value, take, about = "") => h("div", {class: "field", "data-key": `${id} ${about}`}, h("label", {for: id}, label),
        h("select", {id, onchange: (event) => take(event.target.value)}, options.map(([each, text]) => h("option", {value: each, selected: each === value}, text))));
      return [...head,
        h("p", {class: "quiet"}, "A plan is made of what the nodes show now. No node is changed until the plan is applied, on its own page."),
        facts(["Nodes", known.nodes.map((each) => each.name).join(", ")]),
        h("form", {class: "panel", onsubmit: (event) => send(event, operation)},
          h("div", {class: "fields"},
            choice("operation", "What", operations.map((each) => [each.name, each.name]), operation.name, (value) => start(value, "")),
            choice("policy", "As", [["", "vergerd's defaults say"], ...ofIt.map((each) => [each.name, `the policy ${each.name} says`])], from ? policy : "", (value) => start(operation.name, value), operation.name)),
          h("p", null, operation.summary, "."),
          h("fieldset", {"data-key": `${operation.name} ${policy}`}, h("legend", null, "Parameters; what is left as it is, is not sent"),
            h("div", {class: "fields"}, operation.fields.map((field) => h("div", {class: "field", "data-key": field.name},
              h("label", {for: `field-${field.name}`}, words(field.name)),
              input(field, values[field.name], (value) => {
                values[field.name] = value;
                changed();
              }),
              h("p", {class: "quiet small", id: `field-${field.name}-help`}, help(field)))))),
          h("div", {class: "field"}, h("label", {for: "why"}, kReason.label), h("input", {id: "why", type: "text", maxlength: 500, autocomplete: "off", oninput: (event) => {
            reason = event.target.value;
            changed();
          }})),
          h("div", {id: "refusal", role: "alert"}, problem ? refused(problem) : null),
          h("div", {class: "actions"}, h("button", {type: "submit", class: "main", disabled: sending}, sending ? "Looking at the nodes…" : "Make the plan")))
      ];
    }
  };
}

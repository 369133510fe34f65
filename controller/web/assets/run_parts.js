// What a run waits for, as the pages of the cluster and of the run show it.

import {h} from "./dom.js";
import {kNone, relative, when} from "./format.js";
import {badge, table} from "./ui.js";

/** A stage for a deferred node that was never needed. */
export const isUnused = (stage) => stage.if_put_off !== "" && stage.steps.every((step) => step.state === "pending");
export const allSteps = (run) => run.stages.flatMap((stage) => stage.steps);

/** The gates that hold steps back: from the journal, with what the last check has of them beside it. */
export function waits(run, checked) {
  const rows = [];
  for (const step of allSteps(run)) {
    const seen = checked?.find((each) => each.step === step.id)?.gates ?? [];
    for (const gate of step.waiting_for) {
      const now = seen.find((each) => each.gate === gate.gate && each.node === gate.node);
      rows.push({...gate, step: step.id, of: step.node, value: now?.value || gate.value, hint: now?.hint ?? ""});
    }
  }
  return table("What it waits for", [
    ["Step", (row) => row.step],
    ["Gate", (row) => [badge("closed"), " ", row.gate, row.node ? ` at ${row.node}` : ""]],
    ["Value", (row) => row.value || kNone],
    ["Limit", (row) => row.limit || kNone],
    ["Since", (row) => [when(row.since), row.alert_at ? h("div", {class: "quiet small"}, `alert ${relative(row.alert_at)}`) : null]],
    ["Reason", (row) => [h("span", {class: "text"}, row.reason), row.hint ? h("div", {class: "quiet small text"}, row.hint) : null]]
  ], rows, {key: (row) => `${row.step} ${row.gate} ${row.node}`, empty: "It waits for nothing."});
}


import {h} from "./dom.js";
import * as api from "./api.js";
import {absolute, between, bytes, kNone, moment, number, percent, plural, range, relative, seconds, short, when} from "./format.js";
import {ask, badge, button, facts, kReason, link, meter, note, object, panel, table} from "./ui.js";
import {allSteps, isUnused, waits} from "./run_parts.js";

const kPauseModes = [["policy", "as its policy says"], ["drain", "the step under way ends first"], ["now", "the step under way is stopped"]];

function progress(step) {
  const now = step.progress;
  if (!now || step.state === "done") return null;
  const done = now.done ?? now.chunks_done;
  const total = now.total ?? now.chunks_total;
  const unit = now.done === null || now.done === undefined ? "chunks" : now.unit ?? "";
  const amount = unit === "bytes" ? `${bytes(done)} of ${bytes(total)}` : `${number(done)} of ${number(total)} ${unit}`;
  const text = [now.phase, total > 0 ? `${amount}, ${percent(done, total)} %` : "", now.rate ? `${unit === "bytes" ? bytes(now.rate) : number(Math.round(now.rate))} an hour` : "",
    now.bytes_saved > 0 ? `${bytes(now.bytes_saved)} freed` : ""].filter(Boolean).join(", ");
  return h("div", {class: "progress"}, total > 0 ? meter(done, total, text) : null, h("span", {class: "small"}, text));
}

function stepDetails(step) {
  const failed = step.outcomes.filter((each) => each.reason);
  const line = step.timeline;
  return [
    progress(step),
    step.reason ? h("p", {class: "text small"}, step.reason) : null,
    step.not_seen.map((each) => note("warn", `${each.gate}${each.node ? ` at ${each.node}` : ""} was not checked: ${each.reason}`)),
    failed.length > 0 || Object.keys(step.result ?? {}).length > 0 ? h("details", null,
      h("summary", null, "Attempts and result"),
      facts(["Preparing", seconds(line.preparing_seconds)], ["Waiting", seconds(line.waiting_seconds)],
        ["Acting", seconds(line.acting_seconds)], ["Observing", seconds(line.observing_seconds)]),
      h("ul", null, failed.map((each) => h("li", {class: "text"}, `Attempt ${each.attempt}: ${each.outcome}: ${each.reason}`))),
      step.result ? object(step.result, `Result of ${step.id}`) : null) : null
  ].flat().filter(Boolean);
}

function stages(run) {
  const unused = run.stages.filter(isUnused);
  return [
    run.stages.filter((stage) => !isUnused(stage)).map(stagePanel),
    unused.length > 0 ? h("details", {"data-key": "conditional"},
      h("summary", null, `${plural(unused.length, "conditional stage")}, only for a node that leads when its turn comes`), unused.map(stagePanel)) : null
  ];
}

function stagePanel(stage) {
  return panel(`Stage: ${stage.name}`,
    stage.atomic ? h("p", {class: "quiet small"}, "Atomic: once begun, it is done on all of its nodes or undone on all.") : null,
    table(`Steps of ${stage.name}`, [
      ["Step", (step) => step.kind.replaceAll("_", " ")],
      ["Node", (step) => step.node || "cluster"],
      ["State", (step) => badge(step.state)],
      ["Since", (step) => when(step.finished_at ?? step.since ?? step.started_at)],
      ["Took", (step) => step.started_at ? seconds(between(step.started_at, step.finished_at)) : kNone, "number"],
      ["Attempts", (step) => number(step.attempts), "number"]
    ], stage.steps, {key: (step) => step.id, sub: (step) => {
      const details = stepDetails(step);
      return details.length > 0 ? details : null;
    }}));
}

function end(run) {
  const expected = run.expected_end;
  if (!expected) return null;
  const closes = run.hours?.open ? run.hours.until : null;
  return [
    expected.overdue ? note("warn", `A step takes longer than was expected; what is left after it takes ${range(expected.seconds_left)}.`)
      : note("idle", `Expected end: ${absolute(expected.earliest)} to ${absolute(expected.latest)} (${range(expected.seconds_left)} left).`),
    expected.resumes_at ? note("wait", `It stands still until ${absolute(expected.resumes_at)} (${relative(expected.resumes_at)}).`) : null,
    closes ? note(Date.parse(expected.latest) > Date.parse(closes) ? "warn" : "good",
      `The maintenance window closes ${absolute(closes)} (${relative(closes)})`,
      Date.parse(expected.latest) > Date.parse(closes) ? ": the run may not end before that." : ": the run is expected to end before that.") : null
  ];
}

function actions(run, {session, refresh}) {
  if (run.finished_at) return null;
  if (session.role === "viewer") return h("p", {class: "quiet"}, "Your role, viewer, may look and not change anything.");
  const path = "/runs/" + run.id;
  const does = (verb) => async ({reason, ...values}, key) => {
    await api.post(`${path}/${verb}`, {...values, ...(reason ? {reason} : {})}, key);
    refresh();
  };
  const halted = run.state === "paused" || run.state === "pausing";
  const pause = () => ask({heading: "Pause the run", confirm: "Pause", tone: "warn", act: does("pause"),
    fields: [{name: "mode", label: "What is under way", kind: "select", options: kPauseModes}, kReason]});
  const resume = () => ask({heading: "Resume the run", confirm: "Resume",
    fields: [{name: "ignore_hours", label: "Ignore all maintenance windows from now on", kind: "check"}, kReason],
    act: ({ignore_hours, reason}, key) => does("resume")({...(ignore_hours ? {ignore_hours} : {}), reason}, key)});
  const cancel = () => ask({heading: "Cancel the run", confirm: "Cancel the run", tone: "bad", act: does("cancel"),
    text: "It ends in a safe state: what was begun is undone or completed, nothing new begins. A cancelled run cannot be resumed.", fields: [kReason]});
  const nodes = [...new Set(allSteps(run).filter((step) => step.node && step.state !== "done" && step.state !== "skipped").map((step) => step.node))];
  const skip = () => ask({heading: "Leave a node out", confirm: "Leave it out", tone: "warn", act: ({force, ...values}, key) => does("skip")({...values, ...(force ? {force} : {})}, key),
    text: "The run does nothing more on this node.",
    fields: [{name: "node", label: "Node", kind: "select", options: nodes.map((node) => [node, node])},
      {name: "force", label: "Also if work may still be running on it", kind: "check", help: "This needs a reason."}, kReason]});
  return h("div", {class: "actions"},
    halted || run.state === "waiting" ? button("Resume…", resume, halted ? "main" : "") : null,
    halted ? null : button("Pause…", pause, "warn"),
    nodes.length > 0 ? button("Leave a node out…", skip) : null,
    run.state === "cancelling" ? null : button("Cancel…", cancel, "bad"));
}

function gatesPanel(gates) {
  const steps = gates?.steps?.filter((each) => each.gates.length > 0) ?? [];
  if (steps.length === 0) return null;
  return panel("Gates of the steps that wait or are under way", steps.map((each) => h("div", {"data-key": each.step},
    h("h3", null, each.step, " ", each.evaluated_at ? h("span", {class: "quiet small"}, "checked ", when(each.evaluated_at)) : h("span", {class: "quiet small"}, "not checked since vergerd's start")),
    table(`Gates of ${each.step}`, [
      ["Gate", (gate) => gate.gate],
      ["Node", (gate) => gate.node || kNone],
      ["State", (gate) => badge(gate.state)],
      ["Value", (gate) => gate.value || kNone],
      ["Limit", (gate) => gate.limit || kNone],
      ["Closed since", (gate) => when(gate.since)]
    ], each.gates, {key: (gate) => `${gate.gate} ${gate.node}`}))));
}

export function runPage(context, id) {
  return {
    title: `Run ${short(id)}`,
    concerns: (event) => event.stream.startsWith("run/" + id.slice(0, 12)) || event.stream.startsWith("cluster/"),
    async load(signal) {
      const run = await api.get("/runs/" + api.segment(id), signal);
      const gates = run.finished_at ? null : await api.get(`/runs/${run.id}/gates`, signal);
      return {run, gates};
    },
    render({run, gates}) {
      const steps = run.stages.filter((stage) => !isUnused(stage)).flatMap((stage) => stage.steps);
      const done = steps.filter((step) => ["done", "skipped", "undone"].includes(step.state)).length;
      return [
        h("p", {class: "trail"}, link("", "Fleet"), " / ", link("clusters/" + api.segment(run.cluster), run.cluster), " / run ", short(run.id)),
        h("h1", null, `${run.operation} of ${run.cluster} `, badge(run.state)),
        run.reason ? h("p", {class: "text"}, run.reason) : null,
        run.notice ? note("wait", run.notice) : null,
        h("div", {class: "progress wide"}, meter(done, steps.length, `${done} of ${steps.length} steps`, {failed: "bad", "done-with-differences": "warn"}[run.state] ?? (run.finished_at ? "good" : "busy")),
          h("span", null, `${done} of ${steps.length} steps`)),
        facts(["Started", moment(run.started_at)], ["By", run.started_by], ["Plan", link("plans/" + run.plan, short(run.plan))],
          run.finished_at ? ["Ended", moment(run.finished_at)] : null,
          ["Duration", seconds(between(run.started_at, run.finished_at))],
          run.throttle ? ["Throttle", `${run.throttle.percent} %${run.throttle.bytes_per_second > 0 ? `, ${bytes(run.throttle.bytes_per_second)} a second` : ""}`] : null,
          run.ignores_hours ? ["Windows", "ignored"] : null),
        end(run),
        actions(run, context),
        run.alerts.map((each) => note(each.cleared_at ? "idle" : "bad", each.step ? `${each.step}: ` : "", each.reason, " (", when(each.at), each.cleared_at ? ", over)" : ")")),
        run.finished_at ? null : panel("What it waits for", waits(run, gates?.steps)),
        run.undo.length > 0 ? panel("Undo", table("Undo", [
          ["Node", (each) => each.node], ["State", (each) => badge(each.state)], ["At", (each) => when(each.at)],
          ["Reason", (each) => h("span", {class: "text"}, each.reason)],
          ["Commands for the operator", (each) => each.commands.length > 0 ? each.commands.map((command) => h("code", {class: "text"}, command)) : kNone]
        ], run.undo, {key: (each) => each.node})) : null,
        stages(run),
        gatesPanel(gates),
        run.leader_moves.length > 0 ? panel("Moves of the leader", table("Moves of the leader", [
          ["At", (each) => moment(each.at)], ["From", (each) => each.from || kNone], ["To", (each) => each.to || kNone],
          ["Kind", (each) => each.planned ? badge("planned", "good") : badge("not planned", "warn")]], run.leader_moves)) : null,
        run.report ? panel("Report: what was observed on the nodes", object(run.report, "Report")) : null
      ];
    }
  };
}

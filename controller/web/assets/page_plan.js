import {h} from "./dom.js";
import * as api from "./api.js";
import {bytes, kNone, moment, number, plural, range, seconds, short, when} from "./format.js";
import {differences, lastBefore} from "./plan_diff.js";
import {ask, badge, button, facts, kReason, link, note, object, panel, table} from "./ui.js";

/** The stages one below the other, each as long as it is expected to take; the text says the same. */
function timeline(plan) {
  const expected = (stage) => stage.steps.reduce((sum, step) => sum + (step.expected_seconds?.max ?? 0), 0);
  const longest = Math.max(1, ...plan.stages.map(expected));
  return h("ol", {class: "timeline"}, plan.stages.map((stage, index) => {
    const most = expected(stage);
    return h("li", {"data-key": stage.id}, h("a", {href: `#stage-${index}`, onclick: (event) => {
      event.preventDefault();
      document.getElementById(`stage-${index}`)?.scrollIntoView({block: "start"});
    }}, stage.name), h("span", {class: stage.if_put_off ? "bar conditional" : "bar", style: {width: `${Math.max(2, 100 * most / longest)}%`}, "aria-hidden": "true"}),
    h("span", {class: "quiet small"}, `${plural(stage.steps.length, "step")}, ${most > 0 ? `up to ${seconds(most)}` : "duration not known"}`,
      stage.if_put_off ? ", only if deferred" : "", stage.atomic ? ", atomic" : ""));
  }));
}

function stageTable(stage) {
  return table(`Steps of ${stage.name}`, [
    ["Step", (step) => step.kind.replaceAll("_", " ")],
    ["Node", (step) => step.node || "cluster"],
    ["Expected", (step) => range(step.expected_seconds)],
    ["Cost", (step) => [step.cost ? badge(step.cost, "warn") : kNone]],
    ["Gates", (step) => step.gates.length > 0 ? h("details", null, h("summary", null, `${step.gates.length}`), h("ul", null, step.gates.map((gate) => h("li", null, gate)))) : kNone]
  ], stage.steps, {key: (step) => step.id, sub: (step) => h("div", {class: "small"},
    h("p", {class: "text"}, step.reason),
    step.undo ? h("p", {class: "text quiet"}, `Undo: ${step.undo}`) : null)});
}

/** The plan of the same operation that was made before this one. */
function comparison(plan, before) {
  const changes = differences(before, plan);
  const value = (text) => text === "" ? kNone : h("span", {class: "text"}, text);
  return [
    h("p", {class: "quiet small"}, "The last plan: ", link("plans/" + before.hash, short(before.hash)), ", made ", when(before.created_at), "."),
    table("Compared with the last plan", [
      ["What", (each) => each.what],
      ["Of it", (each) => each.name || kNone],
      ["Before", (each) => value(each.before)],
      ["Now", (each) => value(each.now)]
    ], changes, {key: (each) => `${each.what} ${each.name} ${each.before}`, empty: "It does the same on the same nodes."})
  ];
}

export function planPage({session}, hash) {
  const apply = (plan) => ask({
    heading: `Apply plan ${short(plan.hash)}`, confirm: "Apply", tone: "main", fields: [kReason],
    text: `A ${plan.operation} of ${plan.cluster} starts: ${plan.stages.length} stages, expected to take ${range(plan.expected_seconds)}. It is refused if the cluster is no longer as the plan saw it.`,
    act: async ({reason}, key) => {
      const run = await api.post(`/plans/${plan.hash}/apply`, reason ? {reason} : {}, key);
      location.hash = "#/runs/" + run.id;
    }
  });
  return {
    title: `Plan ${short(hash)}`,
    concerns: (event) => event.stream.startsWith("run/") || event.stream.startsWith("cluster/"),
    async load(signal) {
      const plan = await api.get("/plans/" + api.segment(hash), signal);
      const runs = await api.get(`/runs?cluster=${api.segment(plan.cluster)}&limit=50`, signal);
      const plans = await api.get(`/clusters/${api.segment(plan.cluster)}/plans?limit=100`, signal);
      return {plan, runs: runs.runs.filter((run) => run.plan === plan.hash), before: lastBefore(plan, plans.plans)};
    },
    render({plan, runs, before}) {
      // Of operations that need no room of their own nothing is forecast.
      const forecast = plan.forecast.filter((each) => [each.database_bytes, each.disk_free_bytes, each.disk_needed_bytes].some((one) => one !== null));
      const moves = plan.stages.filter((stage) => !stage.if_put_off).flatMap((stage) => stage.steps).filter((step) => step.cost).length;
      const stagePanel = (stage, index) => h("div", {id: `stage-${index}`, "data-key": stage.id}, panel(`Stage: ${stage.name}`,
        h("p", {class: "quiet small"}, stage.if_put_off ? "Conditional: only if the node leads when its turn comes. " : "",
          `Deadline ${seconds(stage.deadline_seconds)}; on failure: ${stage.failure_rule}.`), stageTable(stage)));
      return [
        h("p", {class: "trail"}, link("", "Fleet"), " / ", link("clusters/" + api.segment(plan.cluster), plan.cluster), " / plan ", short(plan.hash)),
        h("h1", null, `Plan: ${plan.operation} of ${plan.cluster}`),
        plan.awaits_approval_of ? note("wait", `The policy ${plan.awaits_approval_of} waits for an operator to apply this plan.`) : null,
        plan.cluster_pause ? note("warn", `The cluster is paused: ${plan.cluster_pause.reason}`) : null,
        runs.map((run) => note("idle", "Applied: ", link("runs/" + run.id, `run ${short(run.id)}`), " ", run.state, ", ", when(run.started_at))),
        facts(["Made", moment(plan.created_at)], ["By", plan.created_by], ["Policy", plan.policy || kNone],
          ["Expected", [range(plan.expected_seconds), plan.expected_from ? ` (from ${plan.expected_from})` : ""]],
          ["Moves of the leader", number(moves)],
          plan.last_success ? ["Last success", link("runs/" + plan.last_success.run, when(plan.last_success.finished_at))] : null,
          ["Hash", h("code", {class: "text"}, plan.hash)]),
        session.role === "viewer" ? h("p", {class: "quiet"}, "Your role, viewer, may not apply plans.")
          : h("div", {class: "actions"}, button("Apply this plan…", () => apply(plan), "main")),
        panel("Timeline", timeline(plan)),
        before ? panel("Compared with the last plan", comparison(plan, before)) : null,
        plan.notes.length > 0 ? panel("Notes", h("ul", null, plan.notes.map((each) => h("li", {class: "text"}, each)))) : null,
        forecast.length > 0 ? panel("Disk", table("Disk", [
          ["Node", (each) => each.node],
          ["Database", (each) => bytes(each.database_bytes), "number"],
          ["Free", (each) => bytes(each.disk_free_bytes), "number"],
          ["Needed meanwhile", (each) => bytes(each.disk_needed_bytes), "number"],
          ["Freed last time", (each) => bytes(plan.freed_before?.find((one) => one.node === each.node)?.space_saved), "number"]
        ], forecast, {key: (each) => each.node})) : null,
        plan.stages.map(stagePanel),
        panel("Parameters", object(plan.parameters, "Parameters")),
        panel("What the plan depends on", table("What the plan depends on", [
          ["Node", (each) => each.name], ["Role", (each) => each.role], ["Version", (each) => each.version]
        ], plan.basis, {key: (each) => each.name}))
      ];
    }
  };
}

import {h} from "./dom.js";
import * as api from "./api.js";
import {absolute, bytes, day, kNone, number, plural, range, relative, seconds, short, when} from "./format.js";
import {ask, badge, button, facts, kReason, link, note, panel, problemText, table} from "./ui.js";
import {isUnused, waits} from "./run_parts.js";

const kLeader = "Leader";

function stateOf(node) {
  if (!node.reachable) return badge("not reached", "bad");
  if (!node.is_alive) return badge(node.state, "bad");
  return node.state === kLeader ? badge(kLeader, "good") : badge(node.state, node.state === "Follower" || node.state === "ReadOnlyReplica" ? "idle" : "warn");
}

function nodes(snapshot, certificates) {
  const ends = new Map((certificates?.nodes ?? []).map((each) => [each.node, each.served.find((one) => one.kind === "leaf")]));
  return table("Nodes", [
    ["Node", (node) => [h("strong", null, node.name), h("div", {class: "quiet small"}, node.url)]],
    ["State", (node) => [stateOf(node), node.is_read_only_replica ? h("div", {class: "quiet small"}, "read-only replica") : null]],
    ["Lag", (node) => node.state === kLeader ? kNone : bytes(node.lag_bytes), "number"],
    ["Database", (node) => bytes(node.database_bytes), "number"],
    ["Free disk", (node) => bytes(node.disk_free_bytes), "number"],
    ["Version", (node) => node.version || kNone],
    ["Agent", (node) => node.agent_reachable === null ? badge("none", "idle")
      : [node.agent_reachable ? badge("answers", "good") : badge("does not answer", "bad"), node.agent_version ? h("div", {class: "quiet small"}, node.agent_version) : null]],
    ["Certificate", (node) => {
      const leaf = ends.get(node.name);
      return leaf ? [day(leaf.not_after), h("div", {class: leaf.days_left < 14 ? "bad small" : "quiet small"}, `${plural(leaf.days_left, "day")} left`)] : kNone;
    }],
    ["Scavenge", (node) => node.running_scavenge ? badge(node.running_scavenge.phase || "running", "busy")
      : node.last_finished_point ? h("span", {class: "quiet"}, `up to point ${node.last_finished_point.number}`) : kNone]
  ], snapshot.nodes, {
    key: (node) => node.name,
    sub: (node) => node.problem ? note("warn", node.problem) : null
  });
}

async function optional(work) {
  try {
    return await work;
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    return {problem};
  }
}

function pauseOf(cluster) {
  return note("wait", "Paused: ", cluster.pause_reason ?? "", cluster.pause_until ? `, until ${absolute(cluster.pause_until)} (${relative(cluster.pause_until)})` : "");
}

function actions({name, cluster, session, refresh}) {
  if (session.role === "viewer") return h("p", {class: "quiet"}, "Your role, viewer, may look and not change anything.");
  const path = "/clusters/" + api.segment(name);
  const pause = () => ask({
    heading: `Pause ${name}`, confirm: "Pause", tone: "warn", text: "No run starts or continues on this cluster until it is resumed.",
    fields: [{name: "mode", label: "What is under way", kind: "select",
      options: [["policy", "as the run's policy says"], ["drain", "ends first"], ["now", "is stopped"]]}, kReason],
    act: async ({mode, reason}, key) => {
      await api.post(path + "/pause", {mode, ...(reason ? {reason} : {})}, key);
      refresh();
    }
  });
  const resume = () => ask({
    heading: `Resume ${name}`, confirm: "Resume", fields: [kReason],
    act: async ({reason}, key) => {
      await api.post(path + "/resume", reason ? {reason} : {}, key);
      refresh();
    }
  });
  return h("div", {class: "actions"}, h("a", {class: "button main", href: `#/clusters/${api.segment(name)}/new-plan`}, "New plan…"),
    cluster.paused ? button("Resume the cluster…", resume) : button("Pause the cluster…", pause));
}

function certificateFacts(certificates) {
  if (!certificates) return kNone;
  if (certificates.problem) return h("span", {class: "text"}, problemText(certificates.problem));
  const first = certificates.first_end;
  return first ? [day(first.not_after), ` (${relative(first.not_after)}): `, `${first.kind} of ${first.node}, ${first.of}`] : "none is known";
}

export function clusterPage({session, refresh}, name) {
  const path = "/clusters/" + api.segment(name);
  let certificates = null;
  let certificatesAt = 0;
  return {
    title: name,
    slowest: 10_000,
    concerns: (event) => /^(run|plan|policy|schedule)\//.test(event.stream) || event.stream === "cluster/" + name,
    async load(signal) {
      const [cluster, runs, plans, schedule] = await Promise.all([
        api.get(path, signal), api.get(`/runs?cluster=${api.segment(name)}&limit=10`, signal),
        api.get(path + "/plans?limit=20", signal), optional(api.get(path + "/schedule", signal))
      ]);
      const active = runs.runs.find((run) => !run.finished_at);
      const [run, gates] = active ? await Promise.all([api.get("/runs/" + active.id, signal), optional(api.get(`/runs/${active.id}/gates`, signal))]) : [null, null];
      // Handshakes with every node and agent: not at each event.
      if (Date.now() - certificatesAt > 300_000) {
        certificates = await optional(api.get(path + "/certificates", signal));
        certificatesAt = Date.now();
      }
      return {cluster, runs: runs.runs, plans: plans.plans, schedule, run, gates, certificates};
    },
    render({cluster, runs, plans, schedule, run, gates, certificates: shown}) {
      const {snapshot} = cluster;
      const policies = schedule.policies ?? [];
      const applied = new Set(runs.map((each) => each.plan));
      return [
        h("p", {class: "trail"}, link("", "Fleet"), " / ", name),
        h("h1", null, name, " ", Object.entries(cluster.labels ?? {}).map(([key, value]) => h("span", {class: "label"}, `${key}=${value}`))),
        cluster.paused ? pauseOf(cluster) : null,
        snapshot.warnings.map((each) => note("warn", each)),
        facts(["Leader", snapshot.leader ?? badge("none", "bad")],
          ["Nodes", `${snapshot.nodes.filter((node) => node.reachable && node.is_alive).length} of ${snapshot.nodes.length} up`],
          ["Observed", when(snapshot.taken_at)],
          ["First certificate to expire", certificateFacts(shown)]),
        actions({name, cluster, session, refresh}),
        panel("Nodes", nodes(snapshot, shown)),
        panel("Runs now", run ? [
          facts(["Run", link("runs/" + run.id, short(run.id))], ["Operation", run.operation], ["State", badge(run.state)],
            ["Started", when(run.started_at)],
            ["Expected end", run.expected_end ? `in ${range(run.expected_end.seconds_left)}` : kNone],
            ["Window", run.hours ? [run.hours.open ? "open" : "closed", run.hours.until ? ` until ${absolute(run.hours.until)}` : ""] : kNone]),
          run.reason ? h("p", {class: "text"}, run.reason) : null,
          waits(run, gates?.steps)
        ] : h("p", {class: "quiet"}, "Nothing runs.")),
        panel("Policies and what is due", table("Policies", [
          ["Policy", (each) => each.policy],
          ["State", (each) => each.enabled ? badge("followed", "good") : badge("disabled", "idle")],
          ["Last due time", (each) => each.outcome ? badge(each.outcome) : kNone],
          ["Waits or is late", (each) => [each.waiting, each.late, each.too_old, each.reason].filter(Boolean).map((text) => h("div", {class: "text"}, text))]
        ], policies, {key: (each) => each.policy, empty: "No policy selects this cluster."}),
        policies.length > 0 ? table("Next windows and due times", [
          ["At", (each) => [h("time", {datetime: each.at, title: relative(each.at)}, each.policys), " ", h("span", {class: "quiet small"}, each.zone)]],
          ["What", (each) => each.kind === "due" ? (each.inside ? "due" : badge("due outside of its window", "warn"))
            : Date.parse(each.at) < Date.parse(schedule.now) ? ["window is open", each.until ? ` until ${absolute(each.until)}` : ""]
              : `window opens${each.length_seconds === null ? "" : ` for ${seconds(each.length_seconds)}`}`],
          ["Policy", (each) => each.policy]
        ], (schedule.times ?? []).slice(0, 6), {key: (each) => `${each.kind} ${each.policy} ${each.at}`}) : null),
        panel("Plans", table("Plans", [
          ["Plan", (plan) => link("plans/" + plan.hash, short(plan.hash))],
          ["Operation", (plan) => plan.operation],
          ["Policy", (plan) => plan.policy || kNone],
          ["Made", (plan) => [when(plan.created_at), ` by ${plan.created_by}`]],
          ["Expected", (plan) => range(plan.expected_seconds)],
          ["State", (plan) => plan.awaits_approval_of ? badge("needs approval", "warn") : applied.has(plan.hash) ? badge("applied", "good") : badge("not applied", "idle")]
        ], [...plans].sort((one, two) => two.created_at.localeCompare(one.created_at)).slice(0, 8), {key: (plan) => plan.hash, empty: "No plan was made."})),
        panel("Last runs", table("Last runs", [
          ["Run", (each) => link("runs/" + each.id, short(each.id))],
          ["Operation", (each) => each.operation],
          ["State", (each) => badge(each.state)],
          ["Started", (each) => [when(each.started_at), ` by ${each.started_by}`]],
          ["Steps", (each) => {
            const steps = each.stages.filter((stage) => !isUnused(stage)).flatMap((stage) => stage.steps);
            return `${number(steps.filter((step) => step.state === "done").length)} of ${number(steps.length)}`;
          }]
        ], runs, {key: (each) => each.id, empty: "Nothing has run."}))
      ];
    }
  };
}

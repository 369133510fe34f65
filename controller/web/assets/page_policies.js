import {h} from "./dom.js";
import * as api from "./api.js";
import {absolute, kNone, moment, relative, seconds} from "./format.js";
import {ask, badge, button, facts, kReason, link, note, panel, table} from "./ui.js";

const kMonths = 1;
const kWeekdays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const kMostTimes = 500;

/** Year, month, day and time of an instant, as the wall clock of `zone` has it. */
function wallOf(instant, zone) {
  const parts = Object.fromEntries(new Intl.DateTimeFormat("en-GB", {
    timeZone: zone, year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", hourCycle: "h23"
  }).formatToParts(new Date(instant)).map(({type, value}) => [type, value]));
  return {month: `${parts.year}-${parts.month}`, day: `${parts.year}-${parts.month}-${parts.day}`, time: `${parts.hour}:${parts.minute}`};
}

/** The days of a month as weeks of seven, with null before the first and behind the last one. */
function weeksOf(month) {
  const [year, number] = month.split("-").map(Number);
  const days = new Date(Date.UTC(year, number, 0)).getUTCDate();
  const before = (new Date(Date.UTC(year, number - 1, 1)).getUTCDay() + 6) % 7;
  const cells = [...Array(before).fill(null), ...Array.from({length: days}, (_, index) => `${month}-${String(index + 1).padStart(2, "0")}`)];
  while (cells.length % 7 !== 0) cells.push(null);
  return Array.from({length: cells.length / 7}, (_, week) => cells.slice(7 * week, 7 * week + 7));
}

function monthAfter(month, step) {
  const [year, number] = month.split("-").map(Number);
  return new Date(Date.UTC(year, number - 1 + step, 1)).toISOString().slice(0, 7);
}

/** Why a run that is due then cannot end in its window; null: it can, or nothing is known. */
function misfit(due, windows, policy) {
  if (!due.inside) return "outside of its windows";
  const expected = policy.expected_duration_seconds;
  if (!expected || policy.spans_openings) return null;
  const window = windows.find((each) => Date.parse(each.at) <= Date.parse(due.at) && each.until && Date.parse(each.until) > Date.parse(due.at));
  if (!window) return null;
  const left = (Date.parse(window.until) - Date.parse(due.at)) / 1000;
  return left < expected ? `${seconds(expected)} expected, its window has ${seconds(left)} left` : null;
}

/** What the days of a month hold: [text, tone] by day. A window stands at the day on which it opens. */
function entriesOf(policy, times, zone) {
  const windows = times.filter((each) => each.kind === "opens");
  const out = new Map();
  const add = (day, entry) => out.set(day, [...out.get(day) ?? [], entry]);
  for (const each of times) {
    const at = wallOf(each.at, zone);
    if (each.kind === "opens") {
      const until = each.until ? wallOf(each.until, zone) : null;
      add(at.day, {tone: "good", at: each.at, text: `${at.time} to ${until ? (until.day === at.day ? until.time : `${until.day.slice(5)} ${until.time}`) : "open end"}`, what: "window"});
    } else {
      const wrong = misfit(each, windows, policy);
      add(at.day, {tone: wrong ? "bad" : "busy", at: each.at, text: `${at.time} due`, what: wrong ?? "run due"});
    }
  }
  return out;
}

function calendar(policy, schedule, month, zone) {
  const entries = entriesOf(policy, schedule.times.filter((each) => each.policy === policy.name), zone);
  const today = wallOf(schedule.now, zone).day;
  return h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": `Calendar of ${month}`},
    h("table", {class: "calendar"}, h("caption", null, `${new Intl.DateTimeFormat("en", {month: "long", year: "numeric", timeZone: "UTC"}).format(new Date(month + "-01T00:00:00Z"))}, in ${zone}`),
      h("thead", null, h("tr", null, kWeekdays.map((name) => h("th", {scope: "col"}, name)))),
      h("tbody", null, weeksOf(month).map((week) => h("tr", null, week.map((day) => h("td", {
        class: day === null ? "none" : day === today ? "today" : day < today ? "past" : "", "data-title": day ?? ""
      }, day === null ? null : [h("div", {class: "day", "aria-current": day === today ? "date" : null}, String(Number(day.slice(8)))),
        (entries.get(day) ?? []).map((each) => h("div", {class: `entry ${each.tone}`, title: `${each.what}; ${absolute(each.at)}`}, each.text,
          each.what === "window" || each.what === "run due" ? h("span", {class: "unseen"}, ` (${each.what})`) : h("div", {class: "small"}, each.what)))])))))));
}

/** Without the path of a webhook, which is a secret of some services. */
function recipientOf(each) {
  if (each.email) return each.email;
  if (each.command.length > 0) return `command ${each.command[0]}`;
  return URL.canParse(each.webhook) ? new URL(each.webhook).origin : "webhook";
}

function notifications(policy, tested, test) {
  return panel("Notifications", table("Notifications", [
    ["Recipient", (each) => h("span", {class: "text"}, recipientOf(each))],
    ["As", (each) => each.email ? "mail" : each.webhook ? (each.format === "json" ? "JSON" : `text for ${each.format}`) : "JSON on its standard input"],
    ["Moments", (each) => each.on.join(", ")]
  ], policy.notifications, {empty: `The policy ${policy.name} notifies no recipient.`}),
  policy.notifications.length > 0 && test ? h("div", {class: "actions"}, button("Send a test…", test)) : null,
  tested ? h("div", {role: "status", "data-key": "tested"}, tested.map((each) => note(each.delivered ? "good" : "bad",
    `${each.to}: ${each.delivered ? "delivered" : each.problem}`))) : null);
}

export function policiesPage({session, redraw}) {
  let chosen = "";
  let cluster = "";
  let step = 0;
  let schedule = null;
  let shownFor = "";
  let refusal = null;
  let tested = null;
  const pick = async (name, of, signal) => {
    shownFor = `${name} ${of}`;
    schedule = null;
    tested = null;
    refusal = null;
    if (!of) return;
    try {
      schedule = await api.get(`/clusters/${api.segment(of)}/schedule?count=${kMostTimes}`, signal);
    } catch (problem) {
      if (problem.name === "AbortError") throw problem;
      refusal = problem.message;
    }
  };
  const choose = async (name, of) => {
    chosen = name;
    cluster = of;
    await pick(name, of);
    redraw();
  };
  const test = () => ask({
    heading: `Test the notifications of ${chosen}`, confirm: "Send", fields: [kReason],
    text: "Each recipient of the policy gets one notification with the moment \"test\".",
    act: async ({reason}, key) => {
      tested = (await api.post(`/policies/${api.segment(chosen)}/notifications/test`, reason ? {reason} : {}, key)).recipients;
      redraw();
    }
  });
  return {
    title: "Policies",
    concerns: (event) => /^(policy|schedule)\//.test(event.stream),
    async load(signal) {
      const policies = await api.all("/policies", "policies", signal);
      const policy = policies.find((each) => each.name === chosen) ?? policies.find((each) => each.selected.length > 0) ?? policies[0];
      chosen = policy?.name ?? "";
      if (!policy?.selected.some((each) => each.cluster === cluster)) cluster = policy?.selected[0]?.cluster ?? "";
      await pick(chosen, cluster, signal);
      return policies;
    },
    render(policies) {
      const policy = policies.find((each) => each.name === chosen);
      const zone = policy ? policy.schedule[0]?.zone ?? policy.windows.allow[0]?.zone ?? policy.windows.deny[0]?.zone ?? "UTC" : "UTC";
      const month = schedule ? monthAfter(wallOf(schedule.now, zone).month, step) : "";
      const months = schedule ? Array.from({length: kMonths + 1}, (_, index) => monthAfter(wallOf(schedule.now, zone).month, index)) : [];
      const ofPolicy = schedule?.times.filter((each) => each.policy === chosen) ?? [];
      // The answer ends somewhere: only before the end of the last month is that worth a word.
      const truncated = ["opens", "due"].some((kind) => {
        const ofKind = (schedule?.times ?? []).filter((each) => each.kind === kind);
        return ofKind.length >= kMostTimes && wallOf(ofKind.at(-1).at, zone).month <= months.at(-1);
      });
      return [
        h("h1", null, "Policies"),
        table("Policies", [
          ["Policy", (each) => [h("strong", null, each.name), each.description ? h("div", {class: "quiet small text"}, each.description) : null]],
          ["State", (each) => each.enabled ? badge("followed", "good") : badge("disabled", "idle")],
          ["Operation", (each) => each.operation ?? each.plan?.operation ?? kNone],
          ["Due", (each) => each.schedule.length > 0 ? each.schedule.map((one) => h("div", null, h("code", null, one.cron), ` ${one.zone}`)) : "by hand"],
          ["Windows", (each) => [...each.windows.allow.map((one) => h("div", {class: "text"}, one.text)),
            ...each.windows.deny.map((one) => h("div", {class: "text"}, "not: ", one.text))]],
          ["Clusters", (each) => each.selected.length === 0 ? "none" : each.selected.map((one) => h("div", null, link("clusters/" + api.segment(one.cluster), one.cluster), " ",
            one.outcome ? badge(one.outcome) : null, [one.waiting, one.late, one.too_old].filter(Boolean).map((text) => h("div", {class: "small text"}, text))))],
          ["Applied", (each) => [moment(each.applied_at), ` by ${each.applied_by}, revision ${each.revision}`]]
        ], policies, {key: (each) => each.name, empty: "No policy is followed. Apply one with: verger policy apply FILE"}),
        policy ? panel("Calendar", h("div", {class: "filters"},
          h("span", {class: "pair"}, h("label", {for: "policy"}, "Policy"), h("select", {id: "policy", onchange: (event) => {
            const next = policies.find((each) => each.name === event.target.value);
            choose(next.name, next.selected[0]?.cluster ?? "");
          }}, policies.map((each) => h("option", {value: each.name, selected: each.name === chosen}, each.name)))),
          policy.selected.length > 0 ? h("span", {class: "pair"}, h("label", {for: "cluster"}, "Cluster"), h("select", {id: "cluster", onchange: (event) => choose(chosen, event.target.value)},
            policy.selected.map((each) => h("option", {value: each.cluster, selected: each.cluster === cluster}, each.cluster)))) : null,
          months.length > 0 ? h("span", {class: "pair"}, h("label", {for: "month"}, "Month"), h("select", {id: "month", onchange: (event) => {
            step = Number(event.target.value);
            redraw();
          }}, months.map((each, index) => h("option", {value: index, selected: index === step}, each)))) : null),
        refusal ? note("bad", refusal) : null,
        policy.selected.length === 0 ? note("idle", "The policy selects no cluster, so no time is due.") : null,
        !policy.enabled ? note("idle", "The policy is disabled: nothing is due.") : null,
        schedule && policy.enabled && shownFor === `${chosen} ${cluster}` ? [
          facts(["Expected duration", policy.expected_duration_seconds ? seconds(policy.expected_duration_seconds) : "not set"],
            ["Next due", ofPolicy.find((each) => each.kind === "due") ? relative(ofPolicy.find((each) => each.kind === "due").at) : kNone],
            ["Missed due times", policy.catch_up]),
          truncated ? note("idle", `The calendar ends after ${kMostTimes} windows and due times of the cluster's policies.`) : null,
          calendar(policy, schedule, month, zone),
          h("p", {class: "quiet small"}, "Windows of all policies and deny windows are already taken into account. Red: a due time outside of its windows, or one after which the window is shorter than the expected duration.")
        ] : null) : null,
        policy ? notifications(policy, tested, session.role === "viewer" ? null : test) : null
      ];
    }
  };
}

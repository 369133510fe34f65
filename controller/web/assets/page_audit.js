import {h} from "./dom.js";
import * as api from "./api.js";
import {kNone, moment, number, plural} from "./format.js";
import {badge, button, facts, note, panel, problemNote, table} from "./ui.js";

const kSpan = 5000;  // events of the journal that are looked through for one page
const kShown = 500;

/** All entries of the audit trail in (after, until]. */
async function entriesBetween(after, until, signal) {
  const out = [];
  for (let at = after; at < until;) {
    const page = await api.get(`/audit?after=${at}`, signal);
    out.push(...page.entries.filter((each) => each.sequence <= until));
    if (page.next <= at) break;
    at = page.next;
  }
  return out;
}

/** A request and its answer are two entries: the page shows them as one. */
function joined(entries) {
  const answers = new Map(entries.filter((each) => each.type === "audit-answered").map((each) => [each.data.asked, each.data.status]));
  return entries.filter((each) => each.type !== "audit-answered").map((each) => ({
    ...each, status: each.type === "audit-asked" ? answers.get(each.sequence) ?? null : undefined
  })).sort((one, two) => two.sequence - one.sequence);
}

const textOf = (row) => [row.type, row.stream, ...Object.values(row.data).filter((each) => typeof each !== "object")].join(" ").toLowerCase();

function outcome(row) {
  if (row.status === undefined) return kNone;
  if (row.status === null) return badge("no answer recorded", "warn");
  return badge(String(row.status), row.status < 400 ? "good" : row.status < 500 ? "warn" : "bad");
}

export function auditPage({session, redraw}) {
  let filter = "";
  let verdict = null;
  let older = [];
  let from = null;  // the journal was looked through from here on
  let refusal = null;
  const guarded = (work) => async () => {
    try {
      refusal = null;
      await work();
    } catch (problem) {
      refusal = problemNote(problem);
    }
    redraw();
  };
  const verify = guarded(async () => {
    verdict = note("busy", "Walking the hash chain…");
    redraw();
    try {
      const done = await api.get("/audit/verify");
      verdict = h("div", {"data-key": "verdict", role: "status"}, note("good", `The hash chain holds up to event ${number(done.verified)}; ${plural(done.removed, "event")} with a recorded removal.`),
        facts(["Hash of the last event (keep it elsewhere)", h("code", {class: "text"}, done.last_hash)]));
    } catch (problem) {
      verdict = problemNote(problem);
    }
  });
  const more = guarded(async () => {
    const start = Math.max(0, from - kSpan);
    older = [...await entriesBetween(start, from), ...older];
    from = start;
  });
  return {
    title: "Audit",
    concerns: (event) => event.stream === "audit",
    async load(signal) {
      if (session.role !== "admin") return [];
      const {next} = await api.get("/events?after=end", signal);
      if (from === null) from = Math.max(0, next - kSpan);
      return entriesBetween(from, next, signal);
    },
    render(newest) {
      if (session.role !== "admin") return [h("h1", null, "Audit"), note("idle", "The audit trail is for admins.")];
      const known = new Set(newest.map((each) => each.sequence));
      const rows = joined([...older.filter((each) => !known.has(each.sequence)), ...newest]).filter((row) => textOf(row).includes(filter));
      return [
        h("h1", null, "Audit"),
        h("div", {class: "actions"}, button("Verify the hash chain", verify)),
        verdict,
        h("div", {class: "filters"}, h("label", {for: "filter"}, "Requester, object, reason"),
          h("input", {id: "filter", type: "search", oninput: (event) => {
            filter = event.target.value.trim().toLowerCase();
            redraw();
          }}), h("span", {class: "quiet", role: "status"}, rows.length > kShown ? `the newest ${kShown} of ${plural(rows.length, "entry", "entries")} shown` : `${plural(rows.length, "entry", "entries")} shown`)),
        refusal,
        panel("Entries, newest first", table("Entries", [
          ["Event", (row) => number(row.sequence)],
          ["Time", (row) => moment(row.time)],
          ["Requester", (row) => [row.data.by ?? kNone, row.data.role ? h("div", {class: "quiet small"}, row.data.role, row.data.from ? `, ${row.data.from}` : "") : null]],
          ["What", (row) => row.data.route ? [row.data.route, h("div", {class: "quiet small text"}, `${row.data.method} ${row.data.target}`)] : [row.type.replaceAll("-", " "), h("div", {class: "quiet small text"}, row.stream)]],
          ["Reason", (row) => row.data.reason ? h("span", {class: "text"}, row.data.reason) : kNone],
          ["Answer", outcome]
        ], rows.slice(0, kShown), {key: (row) => row.sequence, empty: "No entry fits the filter."})),
        from > 0 ? h("div", {class: "actions"}, button("Load older entries", more)) : null
      ];
    }
  };
}

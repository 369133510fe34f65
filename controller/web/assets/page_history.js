import {h, svg} from "./dom.js";
import * as api from "./api.js";
import {absolute, between, bytes, kNone, number, plural, seconds, short, when} from "./format.js";
import {badge, button, facts, link, panel, problemNote, table} from "./ui.js";

const kPage = 100;

/** What the nodes say they freed in a run; null where the run's report does not say. */
function freed(run) {
  const known = (run.report?.nodes ?? []).map((node) => node.space_saved).filter((value) => typeof value === "number");
  return known.length > 0 ? known.reduce((sum, value) => sum + value, 0) : null;
}

/** One column for each run, oldest first; the table below has the numbers. */
function columns(title, runs, valueOf, textOf) {
  const values = runs.map(valueOf);
  const most = Math.max(...values.map((value) => value ?? 0));
  if (!(most > 0)) return null;
  const width = 12;
  const height = 90;
  return h("figure", {"data-key": title}, h("figcaption", null, `${title} (highest: ${textOf(most)})`),
    svg("svg", {viewBox: `0 0 ${Math.max(20, values.length) * width} ${height}`, class: "columns", role: "img",
      "aria-label": `${title}, ${plural(values.length, "run")}, from ${textOf(values[0] ?? 0)} to ${textOf(values.at(-1) ?? 0)}`},
    values.map((value, index) => {
      const size = Math.max(value > 0 ? 2 : 0, height * (value ?? 0) / most);
      return svg("rect", {x: index * width + 1, y: height - size, width: width - 2, height: size, class: runs[index].state === "failed" ? "bad" : ""},
        svg("title", null, `${absolute(runs[index].started_at)}: ${textOf(value ?? 0)}`));
    })));
}

export function historyPage({redraw}) {
  let cluster = "";
  let operation = "";
  let older = [];
  let cursor;
  let refusal = null;
  return {
    title: "History",
    concerns: (event) => event.stream.startsWith("run/") && !event.type.includes("progress"),
    async load(signal) {
      const page = await api.get(`/runs?limit=${kPage}`, signal);
      if (cursor === undefined) cursor = page.next_cursor;
      return page.runs;
    },
    render(newest) {
      const known = new Set(newest.map((run) => run.id));
      const runs = [...newest, ...older.filter((run) => !known.has(run.id))];
      const shown = runs.filter((run) => (!cluster || run.cluster === cluster) && (!operation || run.operation === operation));
      const ended = shown.filter((run) => run.finished_at);
      const good = ended.filter((run) => run.state === "done");
      const trend = good.slice(0, 60).reverse();
      const choice = (name, label, value, values, take) => h("span", {class: "pair"}, h("label", {for: name}, label),
        h("select", {id: name, onchange: (event) => {
          take(event.target.value);
          redraw();
        }}, [["", "all"], ...[...new Set(values)].sort().map((each) => [each, each])].map(([each, text]) =>
          h("option", {value: each, selected: each === value}, text))));
      const more = async () => {
        try {
          const page = await api.get(`/runs?limit=${kPage}&cursor=${encodeURIComponent(cursor)}`);
          older = [...older, ...page.runs];
          cursor = page.next_cursor;
          refusal = null;
        } catch (problem) {
          refusal = problemNote(problem);
        }
        redraw();
      };
      return [
        h("h1", null, "History"),
        h("div", {class: "filters"},
          choice("of-cluster", "Cluster", cluster, runs.map((run) => run.cluster), (value) => { cluster = value; }),
          choice("of-operation", "Operation", operation, runs.map((run) => run.operation), (value) => { operation = value; }),
          h("span", {class: "quiet", role: "status"}, `${plural(shown.length, "run")} shown, of ${number(runs.length)} loaded`)),
        facts(["Ended", number(ended.length)], ["Done", number(good.length)],
          ["Done with differences", number(ended.filter((run) => run.state === "done-with-differences").length)],
          ["Failed", number(ended.filter((run) => run.state === "failed").length)],
          ["Freed, as the nodes report", bytes(shown.reduce((sum, run) => sum + (freed(run) ?? 0), 0))]),
        trend.length > 1 ? panel("Trend of the runs that were done", h("div", {class: "figures"},
          columns("Duration", trend, (run) => between(run.started_at, run.finished_at), seconds),
          columns("Freed", trend, freed, bytes))) : null,
        table("Runs", [
          ["Run", (run) => link("runs/" + run.id, short(run.id))],
          ["Cluster", (run) => link("clusters/" + api.segment(run.cluster), run.cluster)],
          ["Operation", (run) => run.operation],
          ["State", (run) => badge(run.state)],
          ["Started", (run) => [when(run.started_at), ` by ${run.started_by}`]],
          ["Duration", (run) => seconds(between(run.started_at, run.finished_at)), "number"],
          ["Freed", (run) => bytes(freed(run)), "number"],
          ["Reason", (run) => run.reason ? h("span", {class: "text"}, run.reason) : kNone]
        ], shown, {key: (run) => run.id, empty: "No run."}),
        refusal,
        cursor ? h("div", {class: "actions"}, button("Load older runs", more)) : null
      ];
    }
  };
}

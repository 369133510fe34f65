import {h} from "./dom.js";
import * as api from "./api.js";
import {absolute, bytes, kNone, moment, number, plural, seconds, when} from "./format.js";
import {badge, facts, link, note, panel, problemText, table} from "./ui.js";

const ended = (backup) => backup.finished_at ?? backup.started_at ?? "";
const newestOf = (backups, wanted) => backups.filter(wanted).sort((one, two) => ended(two).localeCompare(ended(one)))[0];
const lastCheck = (backups, name) => backups.map((each) => each[name]).filter(Boolean).sort((one, two) => two.at.localeCompare(one.at))[0];

function check(one, never) {
  return one ? [badge(one.passed ? "passed" : "failed"), " ", when(one.at), one.passed ? null : h("div", {class: "text small"}, one.summary)] : badge(never, "warn");
}

export function backupsPage({session}) {
  const plan = (cluster, operation, text) => link(`clusters/${api.segment(cluster)}/new-plan/${operation}`, text);
  return {
    title: "Backups",
    slowest: 300_000,  // a repository is listed by an agent
    concerns: (event) => event.stream.startsWith("run/") && event.type === "run-ended",
    async load(signal) {
      const clusters = await api.all("/clusters", "clusters", signal);
      return api.each(clusters, async ({name}) => {
        try {
          return {cluster: name, list: await api.get(`/clusters/${api.segment(name)}/backups?limit=200`, signal)};
        } catch (problem) {
          if (problem.name === "AbortError") throw problem;
          return {cluster: name, problem};
        }
      });
    },
    render(answers) {
      const rows = answers.map(({cluster, list, problem}) => {
        const backups = list?.backups ?? [];
        return {cluster, problem, list, newest: newestOf(backups, (each) => !each.damage), count: backups.length,
          more: Boolean(list?.next_cursor), verify: lastCheck(backups, "last_verify"), drill: lastCheck(backups, "last_drill")};
      }).sort((one, two) => (one.newest ? ended(one.newest) : "").localeCompare(two.newest ? ended(two.newest) : "") || one.cluster.localeCompare(two.cluster));
      const all = answers.flatMap(({list}) => list?.backups ?? []);
      return [
        h("h1", null, "Backups"),
        facts(["Clusters", number(rows.length)], ["Without a backup", number(rows.filter((row) => !row.newest).length)],
          ["Never drilled", number(rows.filter((row) => row.newest && !row.drill).length)],
          ["Damaged", number(all.filter((each) => each.damage || each.last_verify?.passed === false).length)]),
        panel("Clusters, those without a recent backup first", table("Clusters", [
          ["Cluster", (row) => link("clusters/" + api.segment(row.cluster), row.cluster)],
          ["Newest backup", (row) => row.newest ? when(ended(row.newest)) : badge("none", "bad")],
          ["Of", (row) => row.newest ? `${row.newest.node}, ${row.newest.state}` : kNone],
          ["Last verification", (row) => row.newest ? check(row.verify, "never") : kNone],
          ["Last drill", (row) => row.newest ? check(row.drill, "never") : kNone],
          ["Backups", (row) => row.more ? `more than ${row.count}` : number(row.count), "number"],
          ...session.role === "viewer" ? [] : [["Plan", (row) => [plan(row.cluster, "backup", "Back up…"), row.newest ? [" · ", plan(row.cluster, "restore", "Restore…")] : null]]]
        ], rows, {key: (row) => row.cluster, sub: (row) => {
          const texts = [row.problem ? problemText(row.problem) : null, ...(row.list?.conflicts ?? []),
            ...(row.list?.problems ?? []).map((each) => `${each.node}${each.repository ? `, ${each.repository}` : ""}: ${each.reason}`)].filter(Boolean);
          return texts.length > 0 ? texts.map((text) => note("warn", text)) : null;
        }, empty: "No cluster is registered."})),
        rows.filter((row) => row.count > 0).map((row) => panel(`Backups of ${row.cluster}`, table(`Backups of ${row.cluster}`, [
          ["Backup", (each) => [h("code", {class: "text"}, each.id), each.damage ? badge("damaged", "bad") : null]],
          ["Repository", (each) => each.repository],
          ["Node", (each) => each.node || kNone],
          ["Kind", (each) => each.full ? "full" : ["differential on ", h("code", {class: "text"}, each.parent)]],
          ["Point in time", (each) => moment(each.checkpoints_at)],
          ["Age", (each) => seconds(each.age_seconds), "number"],
          ["Stored", (each) => bytes(each.stored_bytes), "number"],
          ["Restored size", (each) => bytes(each.restored_bytes), "number"],
          ["Verification", (each) => check(each.last_verify, "never")],
          ["Drill", (each) => [check(each.last_drill, "never"), each.last_drill?.duration_ms ? h("div", {class: "quiet small"}, `took ${seconds(each.last_drill.duration_ms / 1000)}`) : null]]
        ], row.list.backups, {key: (each) => each.repository_id + each.id, sub: (each) => {
          const texts = [each.damage, ...each.warnings].filter(Boolean);
          return texts.length > 0 ? texts.map((text) => note("warn", text)) : null;
        }}), row.more ? h("p", {class: "quiet"}, `Older backups are listed by: verger backup list ${row.cluster} (shown: ${plural(row.count, "backup")}, ${absolute(row.list.taken_at)})`) : null))
      ];
    }
  };
}

import {h} from "./dom.js";
import * as api from "./api.js";
import {day, plural, relative} from "./format.js";
import {badge, facts, link, meter, note, problemText, table} from "./ui.js";

const kYear = 365;

function rungs(answers) {
  const out = new Map();
  const add = (cluster, node, where, one) => {
    const key = `${cluster} ${one.fingerprint ?? one.serial} ${where}`;
    const known = out.get(key);
    if (known) known.nodes.add(node);
    else out.set(key, {key, cluster, nodes: new Set([node]), where, kind: one.kind, subject: one.subject, ends: one.not_after});
  };
  for (const {cluster, certificates} of answers) {
    for (const node of certificates?.nodes ?? []) {
      for (const one of node.served) add(cluster, node.node, "shown", one);
      if (node.file_differs) for (const one of node.files) add(cluster, node.node, "in its file, not loaded", one);
      for (const one of node.agent) add(cluster, node.node, "agent", one);
      for (const one of node.users) add(cluster, node.node, "user", {...one, kind: "user"});
    }
  }
  return [...out.values()].sort((one, two) => one.ends.localeCompare(two.ends));
}

const daysLeft = (rung) => (Date.parse(rung.ends) - Date.now()) / 86_400_000;
const tone = (days) => days < 7 ? "bad" : days < 30 ? "warn" : "good";

export function certificatesPage({redraw}) {
  let within = 0;
  return {
    title: "Certificates",
    slowest: 600_000,  // each look is a handshake with every node and agent
    concerns: () => false,
    async load(signal) {
      const clusters = await api.all("/clusters", "clusters", signal);
      return api.each(clusters, async ({name}) => {
        try {
          return {cluster: name, certificates: await api.get(`/clusters/${api.segment(name)}/certificates`, signal)};
        } catch (problem) {
          if (problem.name === "AbortError") throw problem;
          return {cluster: name, problem};
        }
      });
    },
    render(answers) {
      const ladder = rungs(answers);
      const shown = within ? ladder.filter((rung) => daysLeft(rung) < within) : ladder;
      const count = (days) => ladder.filter((rung) => daysLeft(rung) < days).length;
      return [
        h("h1", null, "Certificates"),
        facts(["Expired", count(0)], ["Within 7 days", count(7)], ["Within 30 days", count(30)], ["All", ladder.length]),
        answers.filter((each) => each.problem).map((each) => note("warn", `${each.cluster}: ${problemText(each.problem)}`)),
        answers.flatMap((each) => (each.certificates?.nodes ?? []).flatMap((node) =>
          node.not_known.map((text) => note("idle", `${each.cluster}, ${node.node}: ${text}`)))),
        h("div", {class: "filters"}, h("label", {for: "within"}, "Expire within"),
          h("select", {id: "within", onchange: (event) => {
            within = Number(event.target.value);
            redraw();
          }}, [[0, "any time"], [7, "7 days"], [30, "30 days"], [90, "90 days"]].map(([value, name]) =>
            h("option", {value, selected: value === within}, name)))),
        table("Certificates, the first to expire first", [
          ["Expires", (rung) => [day(rung.ends), " ", h("span", {class: "quiet small"}, relative(rung.ends))]],
          ["Left", (rung) => {
            const days = daysLeft(rung);
            return h("div", {class: "progress"}, meter(Math.min(days, kYear), kYear, `${Math.floor(days)} days of a year`, tone(days)),
              days < 0 ? badge("expired", "bad") : h("span", null, plural(Math.floor(days), "day")));
          }],
          ["Cluster", (rung) => link("clusters/" + api.segment(rung.cluster), rung.cluster)],
          ["Nodes", (rung) => [...rung.nodes].join(", ")],
          ["Kind", (rung) => `${rung.kind}, ${rung.where}`],
          ["Subject", (rung) => h("span", {class: "text"}, rung.subject)]
        ], shown, {key: (rung) => rung.key, empty: "No certificate: the clusters' nodes use plain HTTP, or none answered."})
      ];
    }
  };
}

import {h} from "./dom.js";
import * as api from "./api.js";
import {absolute, plural, short, when} from "./format.js";
import {badge, facts, link, table} from "./ui.js";

/** What an operator has to look at first comes first. */
function concern(cluster) {
  const look = cluster.look;
  if (look && (look.leader === null || look.nodes_down > 0)) return 0;
  if (cluster.active_run) return cluster.active_run.state === "waiting" || cluster.active_run.state === "paused" ? 1 : 2;
  return cluster.paused ? 3 : 4;
}

function health(cluster) {
  const look = cluster.look;
  if (!look) return badge("not observed", "idle");
  if (look.nodes_up === 0) return badge("unreachable", "bad");
  if (look.leader === null) return badge("no leader", "bad");
  return look.nodes_down > 0 ? badge(`${look.nodes_down} down`, "bad") : badge("healthy", "good");
}

function runOf(cluster) {
  const run = cluster.active_run;
  return run ? [badge(run.state), " ", link("runs/" + run.id, short(run.id)), " ", h("span", {class: "quiet"}, when(run.started_at))] : "–";
}

function labels(cluster) {
  return Object.entries(cluster.labels ?? {}).map(([name, value]) => h("span", {class: "label"}, `${name}=${value}`));
}

export function fleetPage({redraw}) {
  let filter = "";
  let onlyConcern = false;
  return {
    title: "Fleet",
    concerns: (event) => /^(run|cluster|agent)\//.test(event.stream) && !event.type.includes("progress"),
    load: (signal) => api.all("/clusters?look=true&limit=100", "clusters", signal),
    render(clusters) {
      const shown = clusters
        .filter((each) => (each.name + " " + Object.entries(each.labels ?? {}).flat().join(" ")).toLowerCase().includes(filter))
        .filter((each) => !onlyConcern || concern(each) < 4)
        .sort((one, two) => concern(one) - concern(two) || one.name.localeCompare(two.name));
      const count = (wanted) => clusters.filter(wanted).length;
      return [
        h("h1", null, "Fleet"),
        facts(["Clusters", clusters.length],
          ["Healthy", count((each) => each.look && concern(each) > 0)],
          ["With a fault", count((each) => concern(each) === 0)],
          ["Runs now", count((each) => each.active_run)],
          ["Paused", count((each) => each.paused)]),
        h("div", {class: "filters"},
          h("label", {for: "filter"}, "Name or label"),
          h("input", {id: "filter", type: "search", oninput: (event) => {
            filter = event.target.value.trim().toLowerCase();
            redraw();
          }}),
          h("label", null, h("input", {type: "checkbox", onchange: (event) => {
            onlyConcern = event.target.checked;
            redraw();
          }}), " Only what is not idle and healthy"),
          h("span", {class: "quiet", role: "status"}, `${plural(shown.length, "cluster")} shown`)),
        table("Clusters", [
          ["Cluster", (each) => [link("clusters/" + api.segment(each.name), each.name), " ", labels(each)]],
          ["State", health],
          ["Leader", (each) => each.look?.leader ?? "–"],
          ["Nodes", (each) => each.look ? `${each.look.nodes_up} of ${each.look.nodes_up + each.look.nodes_down} up` : `${each.nodes.length}`],
          ["Run", runOf],
          ["Pause", (each) => each.paused ? [badge("paused", "wait"), " ", each.pause_reason,
            each.pause_until ? ` until ${absolute(each.pause_until)}` : ""] : "–"],
          ["Last success", (each) => each.last_success ? link("runs/" + each.last_success.run, when(each.last_success.finished_at)) : "never"]
        ], shown, {key: (each) => each.name, empty: clusters.length === 0
          ? "No cluster is registered. Register one with: verger cluster discover URL" : "No cluster fits the filter."})
      ];
    }
  };
}

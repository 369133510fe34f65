import {h, svg} from "./dom.js";
import {bytes, kNone, number, plural, seconds} from "./format.js";
import {facts, note, panel, table} from "./ui.js";

const kMostBytes = 64 * 1024 * 1024;
const kBars = 400;  // more would be thinner than a pixel

/** Neighbouring chunks together where there are very many, so that each bar can be seen. */
function grouped(chunks) {
  const size = Math.ceil(chunks.length / kBars);
  const out = [];
  for (let at = 0; at < chunks.length; at += size) {
    const some = chunks.slice(at, at + size);
    const sum = (of) => some.reduce((total, each) => total + of(each), 0);
    out.push({start: some[0].start, end: some.at(-1).end, before: sum((each) => each.fileBytesBefore),
      after: sum((each) => each.executed ? each.fileBytesAfter : each.fileBytesBefore)});
  }
  return out;
}

/** One bar for each chunk file: what stays from below, what goes above it. The table says the same. */
function picture(chunks) {
  const bars = grouped(chunks);
  const most = Math.max(1, ...bars.map((each) => Math.max(each.before, each.after)));
  const width = 6;
  const height = 160;
  const size = (value) => height * value / most;
  const goes = (each) => Math.max(0, each.before - each.after);
  return h("figure", {class: "wide"}, h("figcaption", null, `Bytes of each chunk file: what stays, and above it what goes (highest: ${bytes(most)})`),
    svg("svg", {viewBox: `0 0 ${Math.max(16, bars.length) * width} ${height}`, class: "columns estimate", role: "img", preserveAspectRatio: "none",
      "aria-label": `${plural(chunks.length, "chunk file")}, ${bytes(bars.reduce((sum, each) => sum + each.before, 0))}, of which ${bytes(bars.reduce((sum, each) => sum + goes(each), 0))} go`},
    bars.map((each, index) => [
      svg("rect", {x: index * width, y: height - size(each.after), width: width - 1, height: size(each.after), class: "stays"},
        svg("title", null, `chunks ${each.start} to ${each.end}: ${bytes(each.after)} stay`)),
      svg("rect", {x: index * width, y: height - size(each.after) - size(goes(each)), width: width - 1, height: size(goes(each)), class: "goes"},
        svg("title", null, `chunks ${each.start} to ${each.end}: ${bytes(goes(each))} go`))])));
}

function rules(list) {
  const shown = list.filter((each) => each.bytes > 0).sort((one, other) => other.bytes - one.bytes);
  const most = Math.max(1, ...shown.map((each) => each.bytes));
  return table("Bytes by rule", [
    ["Rule", (each) => each.rule],
    ["Records", (each) => number(each.records), "number"],
    ["Bytes", (each) => bytes(each.bytes), "number"],
    ["Share", (each) => h("span", {class: "meter rule", role: "img", "aria-label": `${Math.round(100 * each.bytes / most)} % of the largest`}, h("span", {style: {width: `${100 * each.bytes / most}%`}}))]
  ], shown, {key: (each) => each.rule, empty: "No rule removes anything."});
}

/** Why a text is no estimate; empty: it is one. */
function wrongWith(value) {
  return value && Array.isArray(value.chunks) && Array.isArray(value.rules) && typeof value.spaceSaved === "number"
    ? "" : "This is not the output of verger-db estimate with -o json.";
}

export function estimatePage({redraw}) {
  let estimate = null;
  let problem = "";
  let name = "";
  const take = async (file) => {
    estimate = null;
    problem = "";
    name = file.name;
    try {
      if (file.size > kMostBytes) throw new Error(`The file is larger than ${bytes(kMostBytes)}.`);
      const value = JSON.parse(await file.text());
      problem = wrongWith(value);
      if (!problem) estimate = value;
    } catch (failure) {
      problem = failure instanceof SyntaxError ? "The file is not JSON." : failure.message;
    }
    redraw();
  };
  return {
    title: "Estimate",
    concerns: () => false,
    async load() {
      return {};
    },
    render() {
      const executed = estimate?.chunks.filter((each) => each.executed) ?? [];
      return [
        h("h1", null, "Estimate of a scavenge"),
        h("p", {class: "quiet"}, "Beside a node, also while it runs: ", h("code", {class: "text"}, "verger-db estimate /var/lib/eventstore -o json > estimate.json"),
          ". The file is shown by this browser and sent nowhere."),
        h("div", {class: "field"}, h("label", {for: "estimate-file"}, "File of an estimate"),
          h("input", {id: "estimate-file", type: "file", accept: ".json,application/json", onchange: (event) => event.target.files[0] && take(event.target.files[0])})),
        problem ? note("bad", `${name}: ${problem}`) : null,
        estimate ? [
          facts(["Freed", bytes(estimate.spaceSaved)], ["Records to go", number(estimate.removed.records)],
            ["Chunk files rewritten", `${number(estimate.chunksExecuted)} of ${number(estimate.chunksExecuted + estimate.chunksSkipped)}`],
            ["Needed meanwhile", bytes(estimate.diskNeed?.bytes)], ["Time", `about ${seconds(estimate.time?.seconds)}`],
            ["Streams that lose records", number(estimate.streamsLosing)]),
          panel("By chunk", estimate.chunks.length > 0 ? picture(estimate.chunks) : h("p", {class: "quiet"}, "No chunk file would be looked at.")),
          panel("By rule", rules(estimate.rules)),
          panel("Chunk files that lose most", table("Chunk files that lose most", [
            ["File", (each) => each.file],
            ["Records to go", (each) => number(each.removed.records), "number"],
            ["Before", (each) => bytes(each.fileBytesBefore), "number"],
            ["After", (each) => bytes(each.fileBytesAfter), "number"]
          ], executed.sort((one, other) => (other.fileBytesBefore - other.fileBytesAfter) - (one.fileBytesBefore - one.fileBytesAfter)).slice(0, 20),
          {key: (each) => each.file, empty: "None is rewritten."})),
          panel("Streams that lose most", table("Streams that lose most", [
            ["Stream", (each) => h("span", {class: "text"}, each.stream || kNone)],
            ["Records", (each) => number(each.records), "number"],
            ["Bytes", (each) => bytes(each.bytes), "number"]
          ], estimate.streams ?? [], {key: (each) => each.stream}))
        ] : null
      ];
    }
  };
}

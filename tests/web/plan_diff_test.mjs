// What a plan says otherwise than the last one; run by check.mjs, and by node alone.
import assert from "node:assert/strict";
import {differences, lastBefore} from "./assets/plan_diff.js";

const step = (kind, node, more = {}) => ({kind, node, parameters: {}, gates: ["quorum"], cost: "", ...more});
const plan = (hash, at, steps, more = {}) => ({
  hash, operation: "scavenge", created_at: at, policy: "", notes: [], parameters: {threads: 1, gates: {lag: 5}},
  basis: [{name: "n1", role: "Follower", version: "24.6.0"}, {name: "n2", role: "Leader", version: "24.6.0"}],
  stages: [{name: "followers", steps}], ...more});

export function testPlanDiff() {
  const one = plan("a", "2026-01-01T00:00:00Z", [step("scavenge", "n1"), step("scavenge", "n2"), step("resign", "n2")]);
  assert.deepEqual(differences(one, {...one, hash: "b"}), []);
  const other = plan("b", "2026-01-02T00:00:00Z", [step("scavenge", "n2"), step("scavenge", "n1", {gates: ["lag", "quorum"]}), step("compare_digests", "")],
    {parameters: {threads: 2, gates: {lag: 5}}, policy: "nightly", notes: ["a note"],
      basis: [{name: "n1", role: "Leader", version: "24.6.0"}, {name: "n2", role: "Follower", version: "24.6.0"}]});
  const found = differences(one, other).map((each) => `${each.what}|${each.name}|${each.before}|${each.now}`);
  assert.deepEqual(found, [
    "parameter|threads|1|2", "policy||none|nightly", "node|n1.role|\"Follower\"|\"Leader\"", "node|n2.role|\"Leader\"|\"Follower\"",
    "step|resign on n2|in followers|", "step scavenge on n1|gates|quorum|lag, quorum", "step|compare digests on the cluster||in followers",
    "order|scavenge on n1|1 of 3|2 of 3", "note|||a note"]);
  assert.equal(lastBefore(other, [one, other, plan("c", "2026-01-03T00:00:00Z", [])]), one);
  assert.equal(lastBefore(one, [one, other]), undefined);
  assert.equal(lastBefore(other, [{...one, operation: "backup"}]), undefined);
}

if (process.argv[1]?.endsWith("plan_diff_test.mjs")) testPlanDiff();

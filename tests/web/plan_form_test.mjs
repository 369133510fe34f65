// What the form of a new plan makes of the API's document, and of what was typed.
import assert from "node:assert/strict";
import {lengthOf, lengthText, sizeOf, sizeText} from "./assets/format.js";
import {operationsOf, requestOf} from "./assets/plan_form.js";

const integer = (more) => ({type: "integer", minimum: 0, description: "how many", ...more});
const document = {components: {schemas: {
  NewPlan: {properties: {parameters: {oneOf: [{$ref: "#/components/schemas/BackupParameters"}, {$ref: "#/components/schemas/HealParameters"}]}}},
  BackupParameters: {"x-operation": "backup", "x-order": ["repository", "mode", "window_ms", "verify", "keep_last", "bytes_per_second"], description: "Plan a backup", properties: {
    repository: {type: "string", default: "", description: "where"},
    mode: {type: "string", enum: ["live", "stopped"], default: "live", description: "how"},
    verify: {type: "boolean", default: true, description: "whether"},
    keep_last: integer({maximum: 9, default: 0}),
    bytes_per_second: integer({"x-unit": "bytes", default: 0}),
    window_ms: integer({"x-unit": "milliseconds", default: 600_000})
  }},
  HealParameters: {"x-operation": "heal", "x-order": ["nodes"], description: "Plan a cure", properties: {nodes: {type: "string", default: "", description: "which"}}}
}}};

export function testPlanForm() {
  const [backup, heal] = operationsOf(document);
  assert.equal(heal.name, "heal");
  assert.deepEqual(backup.fields.map((each) => each.name), document.components.schemas.BackupParameters["x-order"]);
  assert.deepEqual(requestOf(backup, {}), {operation: "backup", parameters: {}});
  assert.deepEqual(requestOf(backup, {repository: " main ", mode: "live", verify: "false", keep_last: "3", bytes_per_second: "16 MiB", window_ms: "90m"}).parameters,
    {repository: "main", verify: false, keep_last: 3, bytes_per_second: 16 * 2 ** 20, window_ms: 5_400_000});
  assert.deepEqual(requestOf(backup, {repository: "", keep_last: "0", window_ms: "10m"}).parameters, {}, "as it is without saying");
  for (const [name, text] of [["bytes_per_second", "much"], ["window_ms", "90x"], ["keep_last", "1.5"]]) {
    assert.throws(() => requestOf(backup, {[name]: text}), new RegExp(`${name}: "${text}"`));
  }
  // What a policy says is what is meant without saying, and only what differs from that is sent.
  const [ofPolicy, untouched] = operationsOf(document, {operation: "backup", backup: {keepLast: 5, repository: "main"}});
  assert.equal(ofPolicy.fields.find((each) => each.name === "keep_last").preset, 5);
  assert.deepEqual(requestOf(ofPolicy, {keep_last: "0", repository: "main"}).parameters, {keep_last: 0});
  assert.equal(untouched.fields[0].preset, "");

  for (const [value, text] of [[0, "0"], [1000, "1000"], [16 * 2 ** 20, "16MiB"], [1536 * 1024, "1536KiB"]]) {
    assert.equal(sizeText(value), text);
    assert.equal(sizeOf(text), value);
  }
  for (const [value, text] of [[0, "0"], [1, "1ms"], [90_000, "90s"], [600_000, "10m"], [172_800_000, "2d"]]) {
    assert.equal(lengthText(value), text);
    assert.equal(lengthOf(text), value);
  }
}

// What a plan can be asked for, from the API's own document (OpenAPI), and the request of what was
// typed. Works on values alone, so that it can be tested without a browser.

import {lengthOf, sizeOf} from "./format.js";

const last = (reference) => reference.slice(reference.lastIndexOf("/") + 1);
/** "throttle_percent", as a policy's plan has it: "throttlePercent" */
const planName = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

/**
 * Each operation with its fields: name, help, type, choices, least, most, unit ("bytes",
 * "milliseconds") and preset, what it is where the request does not say: by `plan`, that of a policy,
 * else by default.
 */
export function operationsOf(document, plan = null) {
  const {schemas} = document.components;
  const {parameters} = schemas.NewPlan.properties;
  return (parameters.oneOf ?? [parameters]).map((each) => schemas[last(each.$ref)]).map((schema) => {
    const name = schema["x-operation"];
    const given = plan?.operation === name ? plan[name] ?? {} : {};
    return {name, summary: schema.description, fields: schema["x-order"].map((field) => {
      const of = schema.properties[field];
      return {name: field, help: of.description, type: of.type, choices: of.enum, least: of.minimum, most: of.maximum, unit: of["x-unit"],
        preset: given[planName(field)] ?? of.default};
    })};
  });
}

function valueOf(field, text) {
  if (field.unit === "bytes") return sizeOf(text);
  if (field.unit === "milliseconds") return lengthOf(text);
  if (field.type === "integer") return /^-?\d+$/.test(text) ? Number(text) : null;
  return field.type === "boolean" ? text === "true" : text;
}

/** The body of the request: only what is otherwise than without saying. Throws on what cannot be read. */
export function requestOf(operation, values) {
  const parameters = {};
  for (const field of operation.fields) {
    const text = values[field.name]?.trim();
    if (!text) continue;
    const value = valueOf(field, text);
    if (value === null) throw new Error(`${field.name}: "${text}" cannot be read as ${field.unit === "bytes" ? "a size, such as 16MiB" : field.unit ? "a length of time, such as 90m" : "a whole number"}`);
    if (value !== field.preset) parameters[field.name] = value;
  }
  return {operation: operation.name, parameters};
}

// What a plan says otherwise than another one of the same operation and cluster. Works on values
// alone, so that it can be tested without a browser.

function flat(value, path, into) {
  if (value !== null && typeof value === "object" && !Array.isArray(value)) {
    for (const [name, member] of Object.entries(value)) flat(member, path ? `${path}.${name}` : name, into);
  } else {
    into.set(path, JSON.stringify(value) ?? "null");
  }
  return into;
}

function changedMembers(what, before, now) {
  const old = flat(before ?? {}, "", new Map());
  const next = flat(now ?? {}, "", new Map());
  const names = [...new Set([...old.keys(), ...next.keys()])].sort();
  return names.filter((name) => old.get(name) !== next.get(name))
    .map((name) => ({what, name, before: old.get(name) ?? "", now: next.get(name) ?? ""}));
}

/** Each step of a plan once, in its order, by what it does and where. */
function steps(plan) {
  const counts = new Map();
  return plan.stages.flatMap((stage) => stage.steps.map((step) => {
    const name = `${step.kind.replaceAll("_", " ")} on ${step.node || "the cluster"}`;
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return {name: count > 1 ? `${name} (${count})` : name, stage: stage.name, step};
  }));
}

/** The steps of both that are not in the same order, by the longest part that is. */
function moved(old, next) {
  const common = old.filter((name) => next.includes(name));
  const order = next.filter((name) => common.includes(name));
  const lengths = Array.from({length: common.length + 1}, () => new Array(order.length + 1).fill(0));
  for (let i = common.length - 1; i >= 0; --i) {
    for (let j = order.length - 1; j >= 0; --j) {
      lengths[i][j] = common[i] === order[j] ? 1 + lengths[i + 1][j + 1] : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  const kept = new Set();
  for (let i = 0, j = 0; i < common.length && j < order.length;) {
    if (common[i] === order[j]) {
      kept.add(common[i]);
      ++i;
      ++j;
    } else if (lengths[i + 1][j] >= lengths[i][j + 1]) ++i;
    else ++j;
  }
  return order.filter((name) => !kept.has(name));
}

/** [{what, name, before, now}]: parameters, nodes, steps that came, went, moved or changed, notes. */
export function differences(before, now) {
  const out = changedMembers("parameter", before.parameters, now.parameters);
  if ((before.policy || "") !== (now.policy || "")) out.push({what: "policy", name: "", before: before.policy || "none", now: now.policy || "none"});
  const nodes = (plan) => Object.fromEntries(plan.basis.map((node) => [node.name, {role: node.role, version: node.version}]));
  out.push(...changedMembers("node", nodes(before), nodes(now)));
  const old = new Map(steps(before).map((each) => [each.name, each]));
  const next = new Map(steps(now).map((each) => [each.name, each]));
  for (const [name, each] of old) if (!next.has(name)) out.push({what: "step", name, before: `in ${each.stage}`, now: ""});
  for (const [name, each] of next) {
    const former = old.get(name);
    if (!former) {
      out.push({what: "step", name, before: "", now: `in ${each.stage}`});
      continue;
    }
    out.push(...changedMembers(`step ${name}`, former.step.parameters, each.step.parameters));
    const gates = (step) => [...step.gates].sort().join(", ");
    if (gates(former.step) !== gates(each.step)) out.push({what: `step ${name}`, name: "gates", before: gates(former.step), now: gates(each.step)});
    if ((former.step.cost || "") !== (each.step.cost || "")) out.push({what: `step ${name}`, name: "cost", before: former.step.cost || "none", now: each.step.cost || "none"});
  }
  const place = (map, name) => `${[...map.keys()].indexOf(name) + 1} of ${map.size}`;
  for (const name of moved([...old.keys()], [...next.keys()])) {
    out.push({what: "order", name, before: place(old, name), now: place(next, name)});
  }
  for (const each of before.notes.filter((one) => !now.notes.includes(one))) out.push({what: "note", name: "", before: each, now: ""});
  for (const each of now.notes.filter((one) => !before.notes.includes(one))) out.push({what: "note", name: "", before: "", now: each});
  return out;
}

/** The newest plan of the same operation that was made before `plan`; undefined: there is none. */
export function lastBefore(plan, plans) {
  return plans.filter((each) => each.hash !== plan.hash && each.operation === plan.operation &&
    Date.parse(each.created_at) <= Date.parse(plan.created_at))
    .sort((one, other) => Date.parse(other.created_at) - Date.parse(one.created_at))[0];
}

// The API and the session. Nothing else is called.

let csrf = "";
let whenLoggedOut = () => {};

/** A refusal: `code`, `detail` and what else the problem has; code "offline": no answer came. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? `vergerd answered with ${status}`);
    this.status = status;
    this.code = body.code ?? "";
    this.body = body;
  }
}

async function send(method, path, {body, headers = {}, signal} = {}) {
  let response;
  try {
    response = await fetch(path, {
      method,
      signal,
      credentials: "same-origin",
      headers: {
        Accept: "application/json",
        ...(body === undefined ? {} : {"Content-Type": "application/json"}),
        ...(method === "GET" ? {} : {"Verger-Csrf": csrf}),
        ...headers
      },
      body: body === undefined ? undefined : JSON.stringify(body)
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, {code: "offline", detail: "vergerd does not answer. The page shows what was last received."});
  }
  const text = await response.text();
  let parsed = {};
  try {
    parsed = text ? JSON.parse(text) : {};
  } catch {
    parsed = {detail: text.slice(0, 200)};
  }
  if (!response.ok) {
    const problem = new Problem(response.status, parsed);
    if (response.status === 401 && path.startsWith("/api/")) whenLoggedOut(problem);
    throw problem;
  }
  return parsed;
}

export const get = (path, signal) => send("GET", "/api/v1" + path, {signal});

/** A key for one intent of the reader: the same request again, after no answer came, acts once. */
export function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((each) => each.toString(16).padStart(2, "0")).join("");
}

export const post = (path, body, key) =>
  send("POST", "/api/v1" + path, {body, headers: key ? {"Idempotency-Key": key} : {}});

/** All pages of a list. */
export async function all(path, member, signal, most = 5000) {
  const out = [];
  let cursor = null;
  do {
    const query = cursor ? `${path.includes("?") ? "&" : "?"}cursor=${encodeURIComponent(cursor)}` : "";
    const page = await get(path + query, signal);
    out.push(...page[member]);
    cursor = page.next_cursor;
  } while (cursor && out.length < most);
  return out;
}

/** `work` for each item, `width` of them in parallel; in the order of `items`. */
export async function each(items, work, width = 4) {
  const out = new Array(items.length);
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const index = next++;
      out[index] = await work(items[index]);
    }
  };
  await Promise.all(Array.from({length: Math.min(width, items.length)}, worker));
  return out;
}

export const segment = encodeURIComponent;

export function onLoggedOut(call) {
  whenLoggedOut = call;
}

async function taken(answer) {
  const session = await answer;
  csrf = session.csrf;
  return session;
}
export const session = () => taken(send("GET", "/ui/session"));
export const logIn = (token) => taken(send("POST", "/ui/session", {body: {token}}));
export async function logOut() {
  await send("DELETE", "/ui/session");
  csrf = "";
}

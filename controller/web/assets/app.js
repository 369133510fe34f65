// Finds the page of the address, keeps it up to date with the event stream, and shows who is logged
// in and whether the stream is connected.

import {h, morph} from "./dom.js";
import * as api from "./api.js";
import {Live} from "./live.js";
import {button, note, problemNote} from "./ui.js";
import {logInPage} from "./page_login.js";
import {fleetPage} from "./page_fleet.js";
import {clusterPage} from "./page_cluster.js";
import {runPage} from "./page_run.js";
import {newPlanPage} from "./page_new_plan.js";
import {planPage} from "./page_plan.js";
import {historyPage} from "./page_history.js";
import {policiesPage} from "./page_policies.js";
import {estimatePage} from "./page_estimate.js";
import {backupsPage} from "./page_backups.js";
import {certificatesPage} from "./page_certificates.js";
import {auditPage} from "./page_audit.js";

const kRoutes = [
  [/^$/, fleetPage], [/^clusters\/([^/]+)$/, clusterPage], [/^clusters\/([^/]+)\/new-plan(?:\/([^/]+))?$/, newPlanPage],
  [/^runs\/([^/]+)$/, runPage], [/^plans\/([^/]+)$/, planPage],
  [/^history$/, historyPage], [/^policies$/, policiesPage], [/^backups$/, backupsPage], [/^certificates$/, certificatesPage], [/^estimate$/, estimatePage], [/^audit$/, auditPage]
];
const kNavigation = [["", "Fleet"], ["history", "History"], ["policies", "Policies"], ["backups", "Backups"],
  ["certificates", "Certificates"], ["estimate", "Estimate"], ["audit", "Audit", "admin"]];
const kSlowest = 30_000;  // what is observed on nodes makes no event
const kFastest = 1_500;

const app = {session: null, page: null, state: "connecting", loadedAt: 0, problem: null};
const main = document.getElementById("main");

document.getElementById("skip").onclick = (event) => {
  event.preventDefault();
  main.focus();
};

function theme(wanted) {
  if (wanted === "auto") {
    localStorage.removeItem("theme");
    document.documentElement.removeAttribute("data-theme");
  } else {
    localStorage.setItem("theme", wanted);
    document.documentElement.setAttribute("data-theme", wanted);
  }
}

function showHead() {
  const stream = app.state === "live" ? h("span", {class: "live good"}, "Live")
    : app.state === "connecting" ? h("span", {class: "live wait"}, "Connecting…")
      : h("span", {class: "live bad"}, `Not connected, next attempt in ${Math.max(1, Math.ceil((app.state.retryAt - Date.now()) / 1000))} s `,
        button("Try now", live.retryNow, "small"));
  const current = location.hash.replace(/^#\/?/, "").split("/")[0];
  const chosen = localStorage.getItem("theme") ?? "auto";
  const next = h("header", null,
    h("a", {href: "#/", class: "brand"}, "Verger"),
    app.session ? h("nav", {"aria-label": "Pages"}, kNavigation.filter(([, , role]) => !role || role === app.session.role).map(([to, name]) =>
      h("a", {href: "#/" + to, "aria-current": current === to ? "page" : null}, name))) : null,
    h("div", {class: "session"},
      app.session ? stream : null,
      h("label", {class: "unseen", for: "theme"}, "Theme"),
      h("select", {id: "theme", onchange: (event) => theme(event.target.value)},
        [["auto", "Theme: system"], ["light", "Light"], ["dark", "Dark"]].map(([value, name]) =>
          h("option", {value, selected: value === chosen}, name))),
      app.session ? h("span", {class: "caller"}, app.session.name, " · ", app.session.role) : null,
      app.session ? button("Log out", logOut, "small") : null));
  morph(document.getElementById("head"), next);
}

function show(...content) {
  const next = h("main", null, ...content);
  morph(main, next);
}

async function refresh() {
  const page = app.page;
  if (!page || !app.session) return;
  if (page.loading) {
    page.again = true;
    return;
  }
  page.loading = true;
  page.again = false;
  try {
    const data = await page.load(page.abort.signal);
    if (page !== app.page) return;
    page.data = data;
    app.problem = null;
  } catch (problem) {
    if (page !== app.page || problem.name === "AbortError" || !app.session) return;
    app.problem = problem;
  } finally {
    page.loading = false;
    page.loadedAt = Date.now();
  }
  draw();
  if (page.again) soon();
}

function draw() {
  const page = app.page;
  const failed = app.problem ? h("div", {"data-key": "problem"}, problemNote(app.problem)) : null;
  if (page.data === undefined) {
    show(failed ?? h("p", {class: "quiet"}, "Loading…"));
    return;
  }
  // Without a connection the times keep being right, and the page says that the rest is old.
  const isOld = app.state !== "live" && live.failures > 0;
  show(failed, isOld ? h("div", {"data-key": "old"}, note("warn", "No connection to vergerd: this is what was last received.")) : null,
    page.render(page.data));
}

function soon() {
  if (app.timer || !app.page) return;
  app.timer = setTimeout(() => {
    app.timer = null;
    refresh();
  }, Math.max(200, kFastest - (Date.now() - (app.page.loadedAt ?? 0))));
}

async function open() {
  const path = decodeURI(location.hash.replace(/^#\/?/, "")).split("?")[0];
  app.page?.abort.abort();
  const route = kRoutes.find(([pattern]) => pattern.test(path)) ?? kRoutes[0];
  const parts = location.hash.replace(/^#\/?/, "").match(route[0])?.slice(1).map((each) => each && decodeURIComponent(each)) ?? [];
  const page = route[1]({session: app.session, redraw: () => page === app.page && page.data !== undefined && draw(), refresh}, ...parts);
  page.abort = new AbortController();
  app.page = page;
  app.problem = null;
  document.title = `${page.title} · Verger`;
  showHead();
  main.replaceChildren();
  draw();
  await refresh();
}

const live = new Live({
  onState: (state) => {
    app.state = state;
    showHead();
    if (app.page?.data !== undefined) draw();
  },
  onConnected: refresh,
  onEvent: (event) => (app.page?.concerns?.(event) ?? true) && soon(),
  onEnded: () => loggedOut()
});

function loggedOut(text) {
  live.stop();
  app.session = null;
  app.page?.abort.abort();
  app.page = null;
  document.getElementById("dialog").close();
  showHead();
  document.title = "Log in · Verger";
  main.replaceChildren(logInPage(text, logIn));
  main.querySelector("input").focus();
}

async function logOut() {
  try {
    await api.logOut();
    loggedOut("You are logged out.");
  } catch (problem) {
    app.problem = problem;
    if (app.page) draw();
  }
}

async function logIn(token) {
  app.session = await api.logIn(token);
  live.start();
  await open();
}

async function start() {
  theme(localStorage.getItem("theme") ?? "auto");
  api.onLoggedOut((problem) => app.session && loggedOut(problem.message));
  window.addEventListener("hashchange", () => {
    if (!app.session) return;
    open();
    window.scrollTo(0, 0);
    main.focus({preventScroll: true});
  });
  setInterval(() => {
    if (!app.page || document.hidden) return;
    if (typeof app.state === "object") showHead();
    else if (Date.now() - (app.page.loadedAt ?? 0) > (app.page.slowest ?? kSlowest)) refresh();
  }, 1000);
  try {
    app.session = await api.session();
  } catch (problem) {
    loggedOut(problem.status === 401 ? "" : problem.message);
    return;
  }
  live.start();
  open();
}

start();

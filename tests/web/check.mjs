// The dashboard in a browser: login and roles, a run from plan to report, the event stream's end and
// return, every page at three widths in both themes.
import assert from "node:assert/strict";
import fs from "node:fs";
import {chromium} from "playwright-core";
import {wrongOnPage} from "./page_checks.mjs";
import {testPlanDiff} from "./plan_diff_test.mjs";
import {testPlanForm} from "./plan_form_test.mjs";
import {Wire} from "./wire.mjs";

const kDeadline = 120_000;
const kMostBytes = 300_000;
const kMostMilliseconds = 5_000;
const kWidths = [360, 1440, 3840];
const screenshots = process.env.VERGER_SCREENSHOTS;
const tokenOf = (role) => fs.readFileSync(`${process.env.VERGER_TOKENS}/${role}`, "utf8").trim();

const wire = new Wire(Number(process.env.VERGER_DASHBOARD_PORT));
const base = `https://127.0.0.1:${await wire.open()}`;
fs.mkdirSync(screenshots, {recursive: true});
const browser = await chromium.launch({executablePath: process.env.VERGER_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"]});
const problems = [];

/** A page of its own browser profile; whatever it loads from elsewhere or reports is a problem. */
async function pageOf(options = {}) {
  const context = await browser.newContext({ignoreHTTPSErrors: true, viewport: {width: 1440, height: 900}, ...options});
  context.setDefaultTimeout(kDeadline);
  const page = await context.newPage();
  page.on("request", (request) => request.url().startsWith(base) || problems.push(`external request: ${request.url()}`));
  page.on("pageerror", (error) => problems.push(`${page.url()}: ${error.stack}`));
  page.on("console", (message) => message.type() === "error" && !message.text().startsWith("Failed to load resource") &&
    problems.push(`${page.url()}: ${message.text()}`));
  return page;
}

async function logIn(page, role) {
  await page.goto(base + "/");
  await page.getByLabel("Token of the API").fill(tokenOf(role));
  await page.getByRole("button", {name: "Log in"}).click();
  await page.getByRole("heading", {name: "Fleet"}).waitFor();
}

const show = (page, address) => page.evaluate((to) => { location.hash = to; }, address);
const status = (page, path, options) => page.evaluate(async ([to, how]) => (await fetch(to, how)).status, [path, options]);

async function test(name, work) {
  const began = Date.now();
  await work();
  console.log(`ok  ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
}

let run = "";
let plan = "";
let verification = "";
let restore = "";
try {
  await test("what a plan says otherwise than the last one", async () => testPlanDiff());
  await test("what a plan is asked for", async () => testPlanForm());

  await test("a wrong token is refused, and the reason is shown", async () => {
    const page = await pageOf();
    await page.goto(base + "/");
    await page.getByLabel("Token of the API").fill("verger_wrong");
    await page.getByRole("button", {name: "Log in"}).click();
    await page.getByText("the token is not known, or was revoked").waitFor();
    await page.context().close();
  });

  await test("a viewer sees the cluster and has no button that changes anything", async () => {
    const page = await pageOf();
    await logIn(page, "viewer");
    await page.getByRole("link", {name: "demo"}).click();
    await page.getByText("Your role, viewer").waitFor();
    assert.equal(await page.getByRole("link", {name: "New plan…"}).count(), 0);
    await show(page, "/clusters/demo/new-plan");
    await page.getByText("Your role, viewer, may not make plans").waitFor();
    assert.equal(await page.getByRole("button", {name: "Make the plan"}).count(), 0);
    assert.equal(await page.getByRole("link", {name: "Audit"}).count(), 0);
    assert.equal(await status(page, "/api/v1/audit"), 403);
    // Another page of this browser has the cookie at most, and not the csrf value.
    assert.equal(await status(page, "/api/v1/clusters/demo/pause", {method: "POST", body: "{}"}), 403);
    const cookies = await page.context().cookies();
    assert.equal(cookies.length, 1);
    assert.ok(cookies[0].httpOnly && cookies[0].secure && cookies[0].sameSite === "Strict");
    assert.equal(await page.evaluate(() => document.cookie), "");
    await page.context().close();
  });

  await test("an operator plans, applies, pauses and resumes; the run page follows to the report", async () => {
    const page = await pageOf();
    await logIn(page, "operator");
    await page.getByRole("link", {name: "demo"}).click();
    await page.getByRole("link", {name: "New plan…"}).click();
    await page.getByRole("button", {name: "Make the plan"}).click();
    await page.getByRole("heading", {name: "Plan: scavenge of demo"}).waitFor();
    plan = page.url().split("#")[1];
    await page.getByRole("button", {name: "Apply this plan…"}).click();
    await page.getByRole("button", {name: "Apply", exact: true}).click();
    await page.waitForURL("**/#/runs/*");
    await page.getByRole("heading", {name: "scavenge of demo"}).waitFor();
    run = page.url().split("#")[1];
    await page.getByRole("button", {name: "Pause…"}).click();
    await page.keyboard.press("Escape");
    assert.equal(await page.getByRole("dialog").count(), 0, "Escape leaves a question");
    await page.getByRole("button", {name: "Pause…"}).click();
    await page.getByLabel("Reason").fill("the check of the dashboard");
    await page.getByRole("button", {name: "Pause", exact: true}).click();
    await page.locator("h1 .badge", {hasText: "paused"}).waitFor();
    await page.getByRole("button", {name: "Resume…"}).click();
    await page.getByRole("button", {name: "Resume", exact: true}).click();
    await page.locator("h1 .badge", {hasText: "done"}).waitFor();
    await page.getByRole("heading", {name: "Report: what was observed on the nodes"}).waitFor();
    await page.context().close();
  });

  await test("a plan is compared with the last one, and an estimate is a picture", async () => {
    const page = await pageOf();
    await logIn(page, "operator");
    await page.getByRole("link", {name: "demo"}).click();
    await page.getByRole("link", {name: "New plan…"}).click();
    await page.getByRole("button", {name: "Make the plan"}).click();
    await page.getByRole("heading", {name: "Compared with the last plan"}).waitFor();
    const link = page.getByText("The last plan:").getByRole("link");
    assert.ok(plan.startsWith("/plans/" + await link.textContent()), "it is the one that was applied");
    plan = page.url().split("#")[1];

    await show(page, "/estimate");
    await page.getByLabel("File of an estimate").setInputFiles({name: "wrong.json", mimeType: "application/json", buffer: Buffer.from("{}")});
    await page.getByText("This is not the output of verger-db estimate").waitFor();
    const estimate = JSON.parse(fs.readFileSync(process.env.VERGER_ESTIMATE, "utf8"));
    await page.getByLabel("File of an estimate").setInputFiles(process.env.VERGER_ESTIMATE);
    await page.getByRole("heading", {name: "By rule"}).waitFor();
    assert.equal(await page.locator("svg.estimate rect.stays").count(), estimate.chunks.length);
    await page.context().close();
  });

  await test("a verification is planned, and runs to its report", async () => {
    const page = await pageOf();
    await logIn(page, "operator");
    await page.getByRole("link", {name: "demo"}).click();
    await page.getByRole("link", {name: "New plan…"}).click();
    await page.getByLabel("What", {exact: true}).selectOption("verify");
    await page.getByLabel("Throttle percent").fill("80");
    await page.getByRole("button", {name: "Make the plan"}).click();
    await page.getByRole("heading", {name: "Plan: verify of demo"}).waitFor();
    await page.getByRole("button", {name: "Apply this plan…"}).click();
    await page.getByRole("button", {name: "Apply", exact: true}).click();
    await page.waitForURL("**/#/runs/*");
    await page.locator("h1 .badge", {hasText: "done"}).waitFor();
    verification = page.url().split("#")[1];
    await page.getByRole("heading", {name: "Report: what was observed on the nodes"}).waitFor();
    await page.context().close();
  });

  await test("plans of every operation are made with one form, of what the API says of each", async () => {
    const page = await pageOf();
    await logIn(page, "operator");
    // What is filled in, and what is then shown: a plan, or refusals with what to do about them.
    const asked = [
      ["scavenge", {Threads: "2", Strategy: "concurrent"}, "plan"], ["backup", {Repository: "demo", Digests: "none", "Bytes per second": "64MiB"}, "plan"],
      ["backup", {Repository: "nowhere"}, "refusals"], ["restore", {Repository: "demo"}, "refusals"], ["heal", {Nodes: "n3"}, "plan"],
      ["certificates", {Source: "csr", Authority: "demo", Window: "15m"}, "plan"], ["growth", {}, "refusals"], ["resize", {To: "4"}, "refusals"],
      ["redaction", {Events: "0@demo-orders", Reason: "the check of the dashboard"}, "plan"], ["verify", {}, "plan"]
    ];
    await show(page, "/clusters/demo/new-plan");
    await page.getByRole("heading", {name: "New plan for demo"}).waitFor();
    const offered = await page.getByLabel("What", {exact: true}).locator("option").allTextContents();
    assert.deepEqual([...offered].sort(), [...new Set(asked.map(([operation]) => operation))].sort(), "every operation is tried here");
    for (const [operation, values, outcome] of asked) {
      await show(page, "/");
      await show(page, "/clusters/demo/new-plan");
      await page.getByLabel("What", {exact: true}).selectOption(operation);
      for (const [name, value] of Object.entries(values)) {
        const field = page.getByLabel(name, {exact: true});
        await (await field.evaluate((each) => each.tagName) === "SELECT" ? field.selectOption(value) : field.fill(value));
      }
      await page.getByRole("button", {name: "Make the plan"}).click();
      if (outcome === "refusals") {
        await page.getByRole("heading", {name: "No plan can be made now"}).waitFor();
        for (const remedy of await page.locator("#refusal tbody td[data-title='What to do']").allTextContents()) assert.notEqual(remedy.trim(), "");
        continue;
      }
      await page.getByRole("heading", {name: `Plan: ${operation} of demo`}).waitFor();
      const parameters = await page.evaluate(async (path) => (await (await fetch("/api/v1" + path)).json()).parameters, page.url().split("#")[1]);
      if (operation === "certificates") assert.equal(parameters.window_ms, 900_000);
      if (values["Bytes per second"]) assert.equal(parameters.bytes_per_second, 64 * 2 ** 20);
    }
    // As a policy says, and what cannot be read is not sent.
    await show(page, "/clusters/demo/new-plan/scavenge");
    await page.getByLabel("As", {exact: true}).selectOption("nights");
    await page.getByRole("button", {name: "Make the plan"}).click();
    await page.getByRole("heading", {name: "Plan: scavenge of demo"}).waitFor();
    await page.getByText("nights", {exact: true}).first().waitFor();
    await show(page, "/clusters/demo/new-plan/backup");
    await page.getByLabel("Bytes per second").fill("much");
    await page.getByRole("button", {name: "Make the plan"}).click();
    await page.getByText('bytes_per_second: "much" cannot be read as a size').waitFor();
    await page.context().close();
  });

  await test("a backup is planned and made, and a restore of it is planned from the page of backups", async () => {
    const page = await pageOf();
    await logIn(page, "operator");
    await show(page, "/backups");
    await page.getByRole("link", {name: "Back up…"}).click();
    await page.getByLabel("Repository", {exact: true}).fill("demo");
    await page.getByRole("button", {name: "Make the plan"}).click();
    await page.getByRole("heading", {name: "Plan: backup of demo"}).waitFor();
    await page.getByRole("button", {name: "Apply this plan…"}).click();
    await page.getByRole("button", {name: "Apply", exact: true}).click();
    await page.waitForURL("**/#/runs/*");
    await page.locator("h1 .badge", {hasText: "done"}).waitFor();
    await show(page, "/backups");
    await page.getByRole("link", {name: "Restore…"}).click();
    await page.getByLabel("Repository", {exact: true}).fill("demo");
    await page.getByLabel("Nodes", {exact: true}).fill("n3");
    await page.getByRole("button", {name: "Make the plan"}).click();
    await page.getByRole("heading", {name: "Plan: restore of demo"}).waitFor();
    restore = page.url().split("#")[1];
    await page.context().close();
  });

  await test("notifications are tested, and show no path of a webhook", async () => {
    const page = await pageOf();
    await logIn(page, "operator");
    await show(page, "/policies");
    await page.getByRole("heading", {name: "Notifications"}).waitFor();
    await page.getByText("text for slack").waitFor();
    await page.getByRole("button", {name: "Send a test…"}).click();
    await page.getByRole("button", {name: "Send", exact: true}).click();
    await page.getByText("http://127.0.0.1:9: POST /...").waitFor();
    assert.equal(await page.getByText("a-secret").count(), 0);
    await page.context().close();
  });

  await test("a cut connection is shown, and what changed meanwhile appears when it is back", async () => {
    const page = await pageOf();
    await logIn(page, "operator");
    await show(page, "/clusters/demo");
    await page.getByRole("heading", {name: "Nodes"}).waitFor();
    await page.getByText("Live", {exact: true}).waitFor();
    wire.cut();
    await page.getByText("Not connected").waitFor();
    await page.getByText("this is what was last received").waitFor();
    wire.restore();
    await page.getByText("Live", {exact: true}).waitFor();
    await page.getByText("this is what was last received").waitFor({state: "detached"});
    await page.getByRole("button", {name: "Log out"}).click();
    await page.getByText("You are logged out.").waitFor();
    assert.equal(await status(page, "/api/v1/runs"), 401);
    await page.context().close();
  });

  await test("the keyboard reaches the content, and the pages are light", async () => {
    const page = await pageOf();
    await logIn(page, "viewer");
    await page.reload();
    await page.getByRole("heading", {name: "Fleet"}).waitFor();
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.id), "skip");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.id), "main");
    const bytes = await page.evaluate(async () => {
      let sum = 0;
      for (const each of performance.getEntriesByType("resource").filter((one) => one.name.includes("/ui/"))) {
        sum += Number((await fetch(each.name, {cache: "reload"})).headers.get("Content-Length") ?? 0);
      }
      return sum;
    });
    assert.ok(bytes > 10_000 && bytes <= kMostBytes, `${bytes} bytes`);
    const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Infinity);
    assert.ok(paint < kMostMilliseconds, `first content after ${paint} ms`);
    console.log(`    ${bytes} bytes compressed for all pages, first content after ${Math.round(paint)} ms`);
    await page.context().close();
  });

  await test("an admin sees who did what, and verifies it", async () => {
    const page = await pageOf();
    await logIn(page, "admin");
    await show(page, "/audit");
    await page.getByText("the check of the dashboard").first().waitFor();
    await page.getByRole("button", {name: "Verify the hash chain"}).click();
    await page.getByText("The hash chain holds").waitFor();
    await page.context().close();
  });

  await test("100 clusters are one page", async () => {
    const page = await pageOf();
    // The rows are the answer for the demo's cluster a hundred times: so many do not run here.
    await page.route("**/api/v1/clusters?look=true*", async (route) => {
      const answer = await route.fetch();
      const body = await answer.json();
      const [one] = body.clusters;
      const clusters = Array.from({length: 100}, (_, index) => ({...one, name: `cluster-${String(index).padStart(3, "0")}`}));
      await route.fulfill({response: answer, json: {...body, clusters}});
    });
    await logIn(page, "viewer");
    await page.getByText("100 clusters shown").waitFor();
    await page.getByLabel("Name or label").fill("cluster-04");
    await page.getByText("10 clusters shown").waitFor();
    await page.context().close();
  });

  const places = {Fleet: "/", demo: "/clusters/demo", "New plan for demo": "/clusters/demo/new-plan/backup", Run: run, Verification: verification, Plan: plan,
    Restore: restore, History: "/history", Policies: "/policies", Backups: "/backups",
    Certificates: "/certificates", Estimate: "/estimate", Audit: "/audit"};
  for (const colorScheme of ["light", "dark"]) {
    await test(`every page is readable, ${colorScheme}`, async () => {
      const page = await pageOf({colorScheme});
      await logIn(page, "admin");
      for (const [title, address] of Object.entries(places)) {
        const name = title.toLowerCase().replaceAll(" ", "-");
        const [, kind, id] = address.split("/");
        await show(page, address);
        await page.waitForFunction((begin) => document.title.startsWith(begin) && document.querySelector("main h1"),
          kind === "runs" || kind === "plans" ? `${kind === "runs" ? "Run" : "Plan"} ${id.slice(0, 12)}` : title);
        if (title.startsWith("New plan")) {
          await page.getByRole("button", {name: "Make the plan"}).click();
          await page.getByRole("heading", {name: "No plan can be made now"}).waitFor();
        }
        if (title === "Estimate") {
          await page.getByLabel("File of an estimate").setInputFiles(process.env.VERGER_ESTIMATE);
          await page.getByRole("heading", {name: "By rule"}).waitFor();
        }
        for (const width of kWidths) {
          await page.setViewportSize({width, height: 900});
          for (const wrong of await page.evaluate(wrongOnPage)) problems.push(`${name}, ${width} px, ${colorScheme}: ${wrong}`);
          await page.screenshot({path: `${screenshots}/${name}-${width}-${colorScheme}.png`, fullPage: true});
        }
      }
      await page.context().close();
    });
  }
  assert.deepEqual(problems, []);
  console.log(`all good; screenshots are in ${screenshots}`);
} finally {
  await browser.close();
  wire.close();
}

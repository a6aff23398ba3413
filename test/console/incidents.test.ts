/** Incidents and agents in the console: lists, pages, forms and charts, as each role sees them. */
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";
import { Browsing, scrollsSideways } from "./support/browsing.ts";
import { loggedIn } from "./support/client.ts";
import { type ConsoleServer, consoleServer, shiftedEnv } from "./support/server.ts";

/** The space between each card and the next. */
const GAPS = `(() => {
  const boxes = [...document.querySelectorAll("main .card")].map((one) => one.getBoundingClientRect());
  return boxes.slice(1).map((box, i) => box.top - boxes[i].bottom);
})()`;
/** Facts that are cut at the edge of their card. */
const PAST_THEIR_CARD = `[...document.querySelectorAll(".facts dd *")]
  .filter((one) => one.getBoundingClientRect().right > one.closest("dd").getBoundingClientRect().right + 1)
  .map((one) => one.outerHTML)`;
const EVIL = '<script>alert("x")</script>';

let s: ConsoleServer;
const env = shiftedEnv();
let id = "";
let halt_id = "";
beforeAll(async () => {
  s = await consoleServer({
    env,
    config: "console: login\n",
    keys: ["a/b bot", "agent2", "agent3", "agent4"].map((name) => ({ name, role: "agent" })),
  });
  const api = (method: string, path: string, body?: unknown) => s.api("agent", method, path, body);
  for (let i = 0; i < 3; i++) {
    await api("POST", "/v1/runs", { run_id: `u${i}`, permissions: ["crm.write", "crm.read"] });
    await api("POST", `/v1/runs/u${i}/intents`, { tool: "crm.create", args: { i }, reason: EVIL });
  }
  await api("POST", "/v1/runs/u0/intents", { tool: "none.such", args: {}, reason: "r" });
  await api("POST", "/v1/runs", { run_id: "asks", permissions: ["pay.refund"] });
  await api("POST", "/v1/runs/asks/intents", { tool: "pay.refund", args: { amount: 900 }, reason: "r" });
  const halted = await s.api("admin", "POST", "/v1/halt", { reason: EVIL, actor: "agent" });
  halt_id = halted.body.id;
  id = (await s.api("auditor", "GET", "/v1/incidents")).body.incidents[0].id;
});
afterAll(() => s.close());

it("lists incidents and shows one with its tasks, each with its command and button", async () => {
  verifies("beyond.incidents.console", "beyond.incidents.tasks");
  const auditor = await loggedIn(s.url, "auditor");
  const list = (await auditor.get("/console/incidents")).text;
  expect(list).toContain(`href="/console/incidents/${id}"`);
  const path = `/console/incidents/${id}`;
  const { text } = await auditor.get(path);
  const seenBy = async (name: string) => (await (await loggedIn(s.url, name)).get(path)).text;
  verifies("beyond.incidents.task-roles");
  expect(text).toContain("<b>Lift a halt (admin)</b>");
  for (const [name, lifts, resolves] of [
    ["auditor", false, false],
    ["operator", false, true],
    ["admin", true, true],
  ] as const) {
    const page = await seenBy(name);
    expect(page.includes(`svc halt lift ${halt_id}`), name).toBe(lifts);
    expect(page.includes('action="/console/evidence/resume"'), name).toBe(lifts);
    expect(page.includes("svc resolve u0 0<"), name).toBe(resolves);
    expect(page.includes("For the admin role."), name).toBe(!lifts);
  }
  expect(text).toContain('href="/console/runs/u0#step-0"');
  expect(text).toContain(`href="/console/actors/agent"`);
  expect(text).not.toContain(EVIL);
  const md = await auditor.get(`/console/incidents/${id}/export?format=md`);
  expect(md.headers["content-disposition"]).toContain(`${id}.md`);
  const pdf = await auditor.get(`/console/incidents/${id}/export?format=pdf`);
  expect(pdf.headers["content-type"]).toBe("application/pdf");
  expect((await auditor.get(`/console/search?q=${id}`)).to).toBe(`/console/incidents/${id}`);
});

it("shows the agent's alerts in one line per group", async () => {
  verifies("beyond.incidents.alert-groups");
  env.forward(2 * 3_600_000);
  const { text } = await (await loggedIn(s.url, "auditor")).get(`/console/incidents/${id}`);
  expect(text).toMatch(/id="alerts"[\s\S]*and 2 more like it/);
});

it("shows an agent with its buttons and charts, and search finds it", async () => {
  verifies("beyond.actor.console", "beyond.actor.charts");
  const admin = await loggedIn(s.url, "admin");
  const { text } = await admin.get("/console/actors/agent");
  expect(text).toContain('href="/console/contain?actor=agent"');
  expect(text).toContain('href="/console/policy"');
  expect(text).toMatch(
    /<form method="post" action="\/console\/evidence\/halt"[^>]*>[\s\S]*name="actor" value="agent"/,
  );
  expect(text).toMatch(/<svg class="chart"[^>]*role="img" aria-label="Calls by hour and decision/);
  const fills = [...text.matchAll(/fill="url\(#(calls-\w+)\)"/g)].map(([, name]) => name);
  expect(new Set(fills).size).toBe(4);
  for (const name of fills) expect(text).toContain(`<pattern id="${name}"`);
  expect(text).toContain("As a table");
  expect(text).not.toContain(EVIL);
  expect((await admin.get("/console/search?q=agent")).text).toContain('href="/console/actors/agent"');
  // It has a key and no run.
  expect((await admin.get("/console/search?q=a%2Fb+bot")).text).toContain("/console/actors/a%2Fb%20bot");
  expect((await admin.get("/console/search?q=nobody")).text).not.toContain("/console/actors/");
  expect((await admin.get("/console/actors/nobody")).status).toBe(404);
  expect((await admin.get("/console/actors/a%2Fb%20bot")).status).toBe(200);
  const auditor = await loggedIn(s.url, "auditor");
  const seen = (await auditor.get("/console/actors/agent")).text;
  expect(seen).not.toContain("Halt this agent");
  expect(seen).not.toContain("Contain this agent");
});

it("leads to the open incident from the overview", async () => {
  verifies("beyond.incidents.overview");
  const { text } = await (await loggedIn(s.url, "operator")).get("/console");
  expect(text).toMatch(
    new RegExp(`href="/console/incidents/${id}">[\\s\\S]*incident[\\s\\S]*tasks? left, assigned to nobody`),
  );
});

it("asks only those who can decide for a decision", async () => {
  verifies("beyond.polish.decide-role");
  const overview = async (key: string) => (await (await loggedIn(s.url, key)).get("/console")).text;
  expect(await overview("approver")).toContain('<a href="/console/approvals">Decide</a>');
  expect(await overview("auditor")).toContain('<a href="/console/approvals">All requests</a>');
});

it("says in words what happened, once", async () => {
  verifies("beyond.incidents.timeline-words");
  const { text } = await (await loggedIn(s.url, "auditor")).get(`/console/incidents/${id}`);
  const rows = text.slice(text.indexOf("Timeline"));
  expect(rows).toContain("call accepted");
  expect(rows).not.toMatch(/<td[^>]*>intended</);
  const [row] = /<tr>(?:(?!<tr>)[\s\S])*call accepted[\s\S]*?<\/tr>/.exec(rows)!;
  expect(row.match(/call accepted/g)).toHaveLength(1);
});

it("tells a held call from a refused one, and folds the older entries", async () => {
  verifies("beyond.incidents.timeline-held", "beyond.incidents.timeline-folded");
  await s.api("agent2", "POST", "/v1/runs", { run_id: "long", permissions: ["crm.read", "pay.refund"] });
  const call = (tool: string, args: object) =>
    s.api("agent2", "POST", "/v1/runs/long/intents", { tool, args, reason: "r" });
  await call("none.such", {});
  await call("pay.refund", { amount: 900 });
  for (let i = 0; i < 30; i++) await call("crm.get", { i });
  const halt = { reason: "r", actor: "agent2" };
  await s.api("admin", "POST", "/v1/halt", halt);
  const { incidents } = (await s.api("auditor", "GET", "/v1/incidents")).body;
  const mine = incidents.find((one: { actor: string }) => one.actor === "agent2").id;
  const { text } = await (await loggedIn(s.url, "auditor")).get(`/console/incidents/${mine}`);
  const rows = text.slice(text.indexOf("Timeline")).split("<tr>");
  const wordsOf = (tool: string) =>
    rows.find((row) => row.includes(`<code>${tool}</code>`))!.match(/waits for approval|call refused/g);
  expect(wordsOf("none.such")).toEqual(["call refused"]);
  expect(wordsOf("pay.refund")).toEqual(["waits for approval"]);
  expect(rows.find((row) => row.includes("<code>pay.refund</code>"))).toContain(">this request</a>");
  const [shown, folded] = text.slice(text.indexOf("Timeline")).split("<details");
  const count = (part: string) => part.match(/<tbody>[\s\S]*<\/tbody>/)![0].match(/<tr>/g)!.length;
  expect(count(shown!)).toBe(20);
  expect(folded).toContain(`${count(folded!)} older entries`);
});

it("names the runs that need attention among the agent's open matters", async () => {
  verifies("beyond.actor.attention");
  await s.api("agent3", "POST", "/v1/runs", { run_id: "lost", permissions: ["crm.write"] });
  await s.api("agent3", "POST", "/v1/runs/lost/intents", { tool: "crm.create", args: {}, reason: "r" });
  const outcome = { status: "uncertain", error: "timeout" };
  await s.api("agent3", "POST", "/v1/runs/lost/steps/0/outcome", outcome);
  const { text } = await (await loggedIn(s.url, "operator")).get("/console/actors/agent3");
  const [, open] = text.split(">Open<");
  const [line] = /<li>(?:(?!<li>)[\s\S])*needs attention[\s\S]*?<\/li>/.exec(open!.split(">Calls<")[0]!)!;
  expect(line).toContain('href="/console/runs/lost"');
  const run = (await (await loggedIn(s.url, "operator")).get("/console/runs/lost")).text;
  expect(run).toMatch(/State<\/dt><dd[^>]*><span class="mark[^"]*">needs attention/);
});

it("folds long lists of runs and steps, so that the tasks stay in view", async () => {
  verifies("beyond.polish.folded-runs");
  for (let i = 0; i < 12; i++) {
    await s.api("agent4", "POST", "/v1/runs", { run_id: `many${i}`, permissions: ["crm.write"] });
    await s.api("agent4", "POST", `/v1/runs/many${i}/intents`, { tool: "crm.create", args: {}, reason: "r" });
  }
  await s.api("admin", "POST", "/v1/halt", { reason: "r", actor: "agent4" });
  const { incidents } = (await s.api("auditor", "GET", "/v1/incidents")).body;
  const mine = incidents.find((one: { actor: string }) => one.actor === "agent4").id;
  const auditor = await loggedIn(s.url, "auditor");
  const { text } = await auditor.get(`/console/incidents/${mine}`);
  const [facts] = text.slice(text.indexOf(">Runs<")).split("Remaining tasks");
  const [shown, folded] = facts!.split("6 older runs");
  expect([shown, folded].map((part) => part!.match(/runs\/many\d+/g)!.length)).toEqual([6, 6]);
  const agent = (await auditor.get("/console/actors/agent4")).text;
  expect(agent.slice(agent.indexOf('aria-label="Runs"')).split("<details")[0]!.match(/<tr>/g)).toHaveLength(
    11,
  );
  expect(agent).toContain("<summary>2 more</summary>");
});

it("leaves space between the cards of an agent and of an incident", async () => {
  verifies("beyond.polish.card-gaps");
  const browsing = await Browsing.at(s.url);
  onTestFinished(() => browsing.close());
  for (const phone of [false, true]) {
    const { page, open } = await browsing.as("auditor", { phone });
    if (phone) await page.setViewportSize({ width: 320, height: 800 });
    for (const path of ["/actors/agent", `/incidents/${id}`]) {
      await open(path);
      const gaps = (await page.evaluate(GAPS)) as number[];
      expect(gaps.length).toBeGreaterThan(1);
      expect(Math.min(...gaps)).toBeGreaterThanOrEqual(10);
      expect(await scrollsSideways(page)).toBe(false);
      expect(await page.evaluate(PAST_THEIR_CARD)).toEqual([]);
    }
  }
});

it("an operator writes, assigns and closes; an auditor has no form and no way around it", async () => {
  verifies("beyond.incidents.console-work");
  const path = `/console/incidents/${id}`;
  const auditor = await loggedIn(s.url, "auditor");
  expect((await auditor.get(path)).text).not.toContain(`action="${path}/notes"`);
  expect((await auditor.submit(`${path}/notes`, { text: "sneaked in" })).status).toBe(403);
  const operator = await loggedIn(s.url, "operator");
  expect((await operator.submit(`${path}/notes`, { text: `seen ${EVIL}` })).to).toBe(`${path}#people`);
  await operator.submit(`${path}/assign`, { to: "ada" });
  const { text } = await operator.get(path);
  expect(text).toContain("ada");
  expect(text).toContain("seen &lt;script&gt;");
  expect(text).not.toContain(EVIL);
  expect((await operator.submit(`${path}/close`, {})).status).toBe(400);
  expect((await operator.submit(`${path}/close`, { reason: "handed over" })).to).toBe(`${path}#people`);
  const closed = (await operator.get(path)).text;
  expect(closed).toContain("handed over");
  // The halt is in effect, so the page must not say that nothing is left.
  expect(closed).toContain("It is closed, so its tasks are not listed.");
  expect(closed).not.toContain("Nothing is left");
  expect((await operator.get("/console/incidents")).text).not.toContain(id);
  expect((await operator.get("/console/incidents?status=all")).text).toContain(id);
});

it("alerts of one group are one line with a count", async () => {
  verifies("beyond.alerts.group-console");
  await s.app.core.store.transact({
    run(tx) {
      for (let i = 0; i < 3; i++) {
        const step = tx.get("steps", `u${i}/0`)!;
        tx.put("steps", `u${i}/0`, { ...step, intended_ms: step.intended_ms - 7_200_000 });
        const run = tx.get("runs", `u${i}`)!;
        tx.put("runs", `u${i}`, { ...run, created_ms: run.created_ms - 7_200_000 });
      }
    },
  });
  const { text } = await (await loggedIn(s.url, "auditor")).get("/console/alerts");
  expect(text.match(/An outcome is unknown/g)).toHaveLength(1);
  expect(text).toContain("3 times");
  expect(text).toContain("(and 2 more like it)");
});

it("a containment leads to the incident that it opened", async () => {
  verifies("beyond.incidents.from-containment");
  const started = await s.api("admin", "POST", "/v1/contain", {
    actor: "a/b bot",
    reason: "r",
    confirm: true,
  });
  expect(started.status).toBe(202);
  const { text } = await (await loggedIn(s.url, "operator")).get(`/console/contain/${started.body.job.id}`);
  expect(text).toMatch(/href="\/console\/incidents\/inc_[0-9a-f-]{36}">Incident: \d+ tasks? left/);
});

it("enables the key of a contained agent on its page, and stays there", async () => {
  verifies("beyond.incidents.key-returns", "beyond.incidents.cannot-undo");
  const { job } = (
    await s.api("admin", "POST", "/v1/contain", { actor: "agent4", reason: "runaway", confirm: true })
  ).body;
  const done = async () => (await s.api("auditor", "GET", `/v1/contain/${job.id}`)).body.job.state === "done";
  await until(done, "the containment");
  const { incidents } = (await s.api("auditor", "GET", "/v1/incidents?status=open")).body;
  const path = `/console/incidents/${incidents.find((one: { actor: string }) => one.actor === "agent4").id}`;
  const operator = await loggedIn(s.url, "operator");
  expect((await operator.get(path)).text).not.toContain("/console/settings/keys/");
  const admin = await loggedIn(s.url, "admin");
  const { text } = await admin.get(path);
  const [form, action] = /<form[^>]* action="(\/console\/settings\/keys\/\d+)"[\s\S]*?<\/form>/.exec(text)!;
  const fields = Object.fromEntries(
    [...form.matchAll(/name="(do|fingerprint|incident)" value="([^"]+)"/g)].map(([, name, value]) => [
      name,
      value,
    ]),
  );
  expect((await admin.submit(action!, { ...fields, confirm: "yes" } as Record<string, string>)).to).toBe(
    path,
  );
  const after = (await admin.get(path)).text;
  expect(after).toContain("The key of agent4 is enabled.");
  expect(after).not.toContain("Enable a key");
});

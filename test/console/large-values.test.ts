/** Large values of a request: the store and the event loop handle them as text, and only a thread parses them. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { drawForPage, drawingPage } from "../../src/console/pages/approvals/draw-cards.ts";
import { cardSubject } from "../../src/govern/cards/load-card-facts.ts";
import { drawingWholeCard } from "../../src/govern/cards/whole-card.ts";
import { preparingCall } from "../../src/govern/decide/precompute-values.ts";
import type { JsonObject } from "../../src/kernel/json/json.ts";
import { runAtOnce } from "../../src/kernel/pausable-work.ts";
import { type DrawnCards, type PlanFacts, requestCard } from "../../src/operations/approvals/draw-cards.ts";
import { doValuesTask } from "../../src/operations/values/tasks.ts";
import { openStore } from "../../src/store/open.ts";
import { LARGEST_ARGS, LARGEST_PAIRS } from "../../stress/attack/largest.ts";
import { principal, testEngine } from "../support/engine.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { Client } from "./support/client.ts";
import { type ConsoleServer, consoleServer } from "./support/server.ts";

const MANIFESTS = `
- {tool: big.ask, effect: irreversible, permission: p, audit: {redaction: [$args.hidden]}}
- {tool: big.read, effect: read, permission: p}
- tool: big.edit
  effect: idempotent
  permission: p
  card: {title: "Edit {$args.path}", fields: [{label: edit, path: $args.edit, as: diff}]}
`;
const POLICY = `version: 1
content: {secrets: require_approval, pii: require_approval, injection: require_approval}
rules: [{id: asked, match: {tool: "big.{ask,edit}"}, action: require_approval}]
`;
const BYTES = 60_000;
const SHAPES = Object.entries(LARGEST_ARGS).map(([shape, make]): [string, JsonObject] => [
  shape,
  make(BYTES),
]);
const MOST_OBJECTS = 2_500;
/** A summary with the parts of its sentence. */
const MOST_OBJECTS_OF_CARD = 20;

/** Objects and lists in a value: what a garbage collector has to copy. */
function objectsIn(value: unknown): number {
  if (value === null || typeof value !== "object") return 0;
  if (value instanceof Uint8Array) return 1;
  return Object.values(value).reduce((sum: number, one) => sum + objectsIn(one), 1);
}

/** The most values that one `JSON.parse` of this process made while the work ran. */
async function mostParsed(work: () => Promise<void>): Promise<number> {
  let most = 0;
  const parse = JSON.parse;
  const spy = vi.spyOn(JSON, "parse").mockImplementation((text, reviver) => {
    const value: unknown = parse(text, reviver);
    most = Math.max(most, countValues(value));
    return value;
  });
  try {
    await work();
  } finally {
    spy.mockRestore();
  }
  return most;
}

const countValues = (value: unknown): number =>
  value === null || typeof value !== "object"
    ? 1
    : Object.values(value).reduce((sum: number, one) => sum + countValues(one), 1);

let server: ConsoleServer;
beforeAll(async () => {
  const data = tempDir("large-values");
  const store = await openStore({ store: "files", data, database_url: null, warn: () => {} });
  server = await consoleServer({ manifests: MANIFESTS, policy: POLICY, store });
  await server.api("agent", "POST", "/v1/runs", { run_id: "r", permissions: ["p"] });
});
afterAll(() => server?.close());

const raw = async (key: string, method: string, path: string, body?: unknown): Promise<string> => {
  const response = await fetch(`${server.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  expect(response.status, `${method} ${path}`).toBeLessThan(300);
  return response.text();
};

const idIn = (text: string): string => /apr_[0-9a-f-]{36}/.exec(text)![0];
const intents = "/v1/runs/r/intents";
const call = (args: JsonObject) => ({ tool: "big.ask", args, reason: "why" });

describe("the event loop parses no large value of a request", { timeout: 300_000 }, () => {
  it.each(["objects in a list", "keys"])("while it is opened, shown and decided: %s", async (shape) => {
    verifies("beyond.heavy.values-thread");
    const args = { ...LARGEST_ARGS[shape]!(BYTES), hidden: "canary" };
    const client = new Client(server.url);
    await client.logIn("approver");
    let card = "";
    const pages: string[] = [];
    const parsed = await mostParsed(async () => {
      const id = idIn(await raw("agent", "POST", intents, call(args)));
      card = await raw("approver", "GET", `/v1/approvals/${id}/card`);
      pages.push((await client.get(`/console/approvals/${id}`)).text);
      pages.push((await client.get("/console/approvals")).text);
      const card_hash = /"card_hash":"([^"]+)"/.exec(card)![1];
      await raw("approver", "POST", `/v1/approvals/${id}/approve`, { card_hash });
      pages.push((await client.get(`/console/approvals/${id}`)).text);
      const other = idIn(await raw("agent", "POST", intents, call({ ...args, n: 1 })));
      await raw("approver", "POST", `/v1/approvals/${other}/deny`, { offer: { args: { ...args, n: 2 } } });
      pages.push(await raw("agent", "GET", `/v1/approvals/${other}`));
      pages.push(await raw("approver", "GET", `/v1/approvals/${other}`));
    });
    expect(parsed).toBeLessThan(1_000);
    const { arguments: shown, text } = JSON.parse(card) as { arguments: JsonObject; text: string };
    expect(shown).toEqual({ ...args, hidden: "[REDACTED]" });
    expect(text).toContain("[REDACTED, 6 characters]");
    for (const page of pages.slice(0, 3)) expect(page).toContain("Show all");
    expect(JSON.parse(pages[3]!)).toMatchObject({ offer: { args: { ...args, n: 2 } } });
    expect(JSON.parse(pages[4]!)).toMatchObject({ offer: { args: { ...args, n: 2, hidden: "[REDACTED]" } } });
    for (const page of [card, ...pages.slice(0, 3), pages[4]!]) expect(page).not.toContain("canary");
  });

  it("while a plan is proposed, shown and decided", async () => {
    verifies("beyond.heavy.values-thread");
    const calls = SHAPES.slice(0, 12).map(([, args], i) => ({
      tool: "big.ask",
      args: { ...args, i },
    }));
    let shown = "";
    const parsed = await mostParsed(async () => {
      const proposed = await raw("agent", "POST", "/v1/runs/r/plans", { reason: "why", calls });
      const id = /pln_[0-9a-f-]{36}/.exec(proposed)![0];
      shown = await raw("approver", "GET", `/v1/plans/${id}`);
      const card_hash = /"card_hash":"([^"]+)"\}$/.exec(shown)![1];
      await raw("approver", "POST", `/v1/plans/${id}/approve`, { card_hash });
    });
    expect(parsed).toBeLessThan(1_000);
    const { cards } = JSON.parse(shown) as { cards: { arguments: JsonObject }[] };
    expect(cards.map((card) => Object.keys(card.arguments).length)).toEqual(
      calls.map(({ args }) => Object.keys(args).length),
    );
  });
});

describe("what a thread hands back", () => {
  const engine = testEngine({ manifests: MANIFESTS, policy: POLICY });

  it.each(SHAPES)("about a call is texts and a bounded number of objects: %s", (_, args) => {
    verifies("beyond.heavy.values-thread");
    const { task } = runAtOnce(preparingCall(engine.core, { tool: "big.ask", args, is_offer: true }));
    expect(objectsIn(task)).toBeLessThan(100);
    expect(objectsIn(doValuesTask({ calls: [task] }))).toBeLessThan(MOST_OBJECTS);
  });

  it.each(SHAPES)(
    "about a card is the same card, in a bounded number of objects: %s",
    async (shape, args) => {
      verifies("beyond.heavy.values-thread");
      const agent = principal("agent");
      const run_id = shape.replaceAll(" ", "-");
      await engine.open(agent, { run_id, permissions: ["p"] });
      await engine.intent(agent, run_id, "big.ask", args);
      const [row] = await engine.core.store.list("approvals", { owner: run_id, limit: 1 });
      const run = (await engine.core.store.get("runs", run_id))!;
      const stored = (await engine.core.store.get("approval_values", row!.key))!;
      expect(objectsIn(stored)).toBeLessThan(10);
      const subject = cardSubject(engine.core.rules(), run, row!.doc);
      const head = { ...row!.doc, approval_id: row!.key };
      const context = { so_far: { calls: 1, last: [] }, like: { approved: 0, denied: 0 }, proof: null };
      const task = { subject, stored, request: { head, context } };
      const facts = { approval: row!.doc, is_live: true };
      const drawn = doValuesTask({ drawing: { cards: [task], answer: { request: facts } } }) as DrawnCards;
      const here = runAtOnce(drawingWholeCard(task));
      expect(new TextDecoder().decode(drawn.answer)).toBe(JSON.stringify(requestCard(facts, task, here)));
      expect(objectsIn(drawn)).toBeLessThan(MOST_OBJECTS_OF_CARD);
      const request = { id: "x", kind: "call", is_open: true, is_live: true, is_signed: false } as const;
      const page = drawForPage({ cards: [task], of: { request } });
      const html = runAtOnce(drawingPage({ cards: [task], of: { request } })).html.toString();
      expect(new TextDecoder().decode(page.html)).toBe(html);
      expect(html).toContain("Arguments");
      expect(page.args).toEqual(stored.texts === undefined ? { value: here.arguments } : "large");
      expect(objectsIn(page)).toBeLessThan(MOST_OBJECTS_OF_CARD);
    },
  );

  it.each(Object.entries(LARGEST_PAIRS))(
    "about a plan of a hundred edits is finished text: %s",
    async (shape, make) => {
      verifies("beyond.heavy.values-thread");
      const agent = principal("agent");
      const run_id = `plan-${shape.replaceAll(" ", "-")}`;
      const [old_text, new_text] = make(9_000);
      await engine.open(agent, { run_id, permissions: ["p"] });
      await engine.intent(agent, run_id, "big.edit", { path: "f", edit: { old_text, new_text } });
      const [row] = await engine.core.store.list("approvals", { owner: run_id, limit: 1 });
      const run = (await engine.core.store.get("runs", run_id))!;
      const stored = await engine.core.store.get("approval_values", row!.key);
      const subject = cardSubject(engine.core.rules(), run, row!.doc);
      const cards = Array.from({ length: 100 }, () => ({ subject, stored, planned: { proof: null } }));
      const { tool, arg_names } = row!.doc;
      const call = { tool, arg_names, reasons: [], depends_on: [], decision: "needs_approval" };
      const view = { id: "pln", calls: cards.map(() => call) } as unknown as PlanFacts["view"];
      const plan = { view, sees: cards.map(() => true), salt: "s" };
      const drawn = doValuesTask({ drawing: { cards, answer: { plan } } }) as DrawnCards;
      expect(JSON.parse(new TextDecoder().decode(drawn.answer)).cards).toHaveLength(100);
      const page = drawForPage({ cards, of: { plan: { ...plan, open: Number.NaN } } });
      expect(page.closed).toBeGreaterThan(0);
      for (const handed of [drawn, page])
        expect(objectsIn(handed)).toBeLessThan(cards.length * MOST_OBJECTS_OF_CARD);
    },
  );
});

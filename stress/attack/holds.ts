/**
 * Every page and every route on the largest calls, plans, groups and lists that the limits allow: how long each holds
 * the event loop. The measure next to it is what reading a body of 1 MB takes on the same machine.
 */
import { CONSOLE_ROUTES } from "../../src/console/routes.ts";
import { HTTP_TABLE } from "../../src/http/api/http-table.ts";
import { type JsonObject, type JsonValue, parseJsonBytes } from "../../src/kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../src/kernel/limits.ts";
import { ConsoleSession } from "./console-session.ts";
import { LARGEST_ARGS, LARGEST_BYTES, LARGEST_PAIRS } from "./largest.ts";
import { asBytes } from "./requests.ts";
import type { Target } from "./target.ts";
import type { Reply } from "./wire.ts";

/** Sends one request, notes how long it held the event loop, and returns the answer. */
export type Observe = (what: string, send: () => Promise<Reply>) => Promise<Reply>;

/** How large the tried things are. */
export interface Sizes {
  bytes: number;
  plan_calls: number;
  /** Requests that wait at once, in runs of a hundred. */
  open_requests: number;
  steps: number;
}

export const WHOLE: Sizes = {
  bytes: LARGEST_BYTES,
  plan_calls: SERVICE_LIMITS.plan_calls,
  open_requests: 500,
  steps: 3_000,
};

/** Enough to try everything once. */
export const SMALL: Sizes = { bytes: 50_000, plan_calls: 5, open_requests: 30, steps: 40 };

const HOLD_PERMISSIONS = ["big.read", "big.write"];

export const HOLD_MANIFESTS = `
- {tool: big.read, effect: read, permission: big.read}
- {tool: big.ask, effect: irreversible, permission: big.write}
- tool: big.edit
  effect: compensable
  permission: big.write
  card: {title: "Edit {$args.path}", fields: [{label: edit, path: $args.edit, as: diff}]}
  compensation: {tool: big.put, args: {path: $args.path, text: $result.was}}
- tool: big.put
  effect: compensable
  permission: big.write
  card: {title: "Write {$args.path}", fields: [{label: text, path: $args.text, as: diff}]}
  before: {tool: big.read, args: {path: $args.path}, max_bytes: 1048576}
  compensation: {tool: big.put, args: {path: $args.path, text: $before.text}, kind: inverse}
`;

/** Every check of values is on, and everything that can be written needs approval. */
export const HOLD_POLICY = `version: 1
approvals: {four_eyes: true, max_open_per_run: 100, flood: {max: 20, window: 1h}}
content: {secrets: require_approval, pii: require_approval, injection: require_approval}
rules:
  - id: asked
    match: {tool: "big.{ask,edit}"}
    action: require_approval
    approval: {ttl: 24h}
`;

/** What reading a body of 1 MB takes here: by the platform, and by the strict reading, the longest of all shapes. */
export function parseTimes(bytes: number): { platform_ms: number; strict_ms: number; shape: string } {
  let found = { platform_ms: 0, strict_ms: 0, shape: "" };
  for (const [shape, make] of Object.entries(LARGEST_ARGS)) {
    const body = Buffer.from(JSON.stringify({ tool: "big.read", args: make(bytes), reason: "r" }));
    const timed = (read: () => unknown): number => {
      const took = [1, 2, 3].map(() => {
        const { user, system } = process.cpuUsage();
        read();
        const after = process.cpuUsage();
        return (after.user + after.system - user - system) / 1_000;
      });
      return Math.min(...took);
    };
    const strict_ms = timed(() => parseJsonBytes(body));
    if (strict_ms > found.strict_ms)
      found = { platform_ms: timed(() => JSON.parse(body.toString())), strict_ms, shape };
  }
  return found;
}

/** The parts to try, one after the other; each leaves the data that the next ones find in lists. */
const PARTS = ["calls", "changes", "plans", "flood", "longRun"] as const;

/** Returns the number of cases. `only` selects them by name, such as `plans: keys` or `longRun`. */
export async function tryLargest(
  target: Target,
  sizes: Sizes,
  observe: Observe,
  only: RegExp = /./,
): Promise<number> {
  const largest = new Largest(target, sizes, observe);
  const cases = PARTS.flatMap((part) => Object.entries(largest[part]())).filter(([name]) => only.test(name));
  for (const [, run] of cases) await run();
  return cases.length;
}

/** Cases by name. */
type Cases = Record<string, () => Promise<void>>;

const casesOf = <T>(
  part: string,
  shapes: Readonly<Record<string, T>>,
  run: (shape: string, of: T) => Promise<void>,
): Cases =>
  Object.fromEntries(
    Object.entries(shapes).map(([shape, of]) => [`${part}: ${shape}`, () => run(shape, of)]),
  );

class Largest {
  private readonly target: Target;
  private readonly sizes: Sizes;
  private readonly observe: Observe;

  constructor(target: Target, sizes: Sizes, observe: Observe) {
    this.target = target;
    this.sizes = sizes;
    this.observe = observe;
  }

  /** Each shape as the arguments of a call, as its result, as a guess at a rule, and on its card. */
  calls(): Cases {
    return casesOf("calls", LARGEST_ARGS, async (shape, make) => {
      const args = make(this.sizes.bytes);
      const run = await this.run(`calls ${shape}`);
      await this.bodies(shape, run, args);
      await this.request(shape, run, { tool: "big.ask", args, reason: "why" });
    });
  }

  private async bodies(shape: string, run: string, args: JsonObject): Promise<void> {
    const path = `/v1/runs/${run}`;
    const call = { tool: "big.read", args, reason: "why" };
    const see = (what: string, key: string, at: string, body: JsonValue) =>
      this.observe(`${what}: ${shape}`, () => this.post(key, at, body));
    const { step = 0 } = bodyOf(await see("intent", "agent", `${path}/intents`, call));
    await see("outcome", "agent", `${path}/steps/${step}/outcome`, { status: "succeeded", result: args });
    const failing = bodyOf(await see("intent", "agent", `${path}/intents`, call));
    await see("failed outcome", "agent", `${path}/steps/${failing["step"] ?? 1}/outcome`, {
      status: "failed",
      error: JSON.stringify(args).slice(0, SERVICE_LIMITS.body_bytes / 2),
    });
    await see("preview", "agent", `${path}/intents/preview`, call);
    await see("speculate", "auditor", "/v1/speculate", {
      plans: [{ name: "a", calls: [{ tool: "big.ask", args }] }],
    });
    await see("approve ahead", "approver", `${path}/approvals`, {
      tool: "big.ask",
      args: { ...args, x: 1 },
      note: "n",
    });
    await see("plan of one call", "agent", `${path}/plans`, {
      reason: "why",
      calls: [{ tool: "big.ask", args }],
    });
  }

  /** A request and all that people do with it. */
  private async request(shape: string, run: string, call: JsonObject): Promise<void> {
    const asked = await this.observe(`intent that asks: ${shape}`, () =>
      this.post("agent", `/v1/runs/${run}/intents`, call),
    );
    const id = /apr_[0-9a-f-]{36}/.exec(asked.body)?.[0];
    if (id === undefined) throw new Error(`nobody is asked: ${asked.body.slice(0, 300)}`);
    const get = (key: string, path: string) => () => this.target.send(asBytes({ key, method: "GET", path }));
    const card = await this.observe(`card: ${shape}`, get("approver", `/v1/approvals/${id}/card`));
    await this.observe(`request: ${shape}`, get("auditor", `/v1/approvals/${id}`));
    await this.observe(`requests: ${shape}`, get("auditor", "/v1/approvals"));
    const session = await ConsoleSession.open(this.target, "approver");
    for (const path of [`/approvals/${id}`, "/approvals"])
      await this.observe(`console ${path.replace(id, ":id")}: ${shape}`, () =>
        session.get(`/console${path}`),
      );
    const card_hash = String(bodyOf(card)["card_hash"]);
    await this.observe(`approve: ${shape}`, () =>
      this.post("approver", `/v1/approvals/${id}/approve`, { card_hash, note: "fine" }),
    );
    await this.observe(`console request that was decided: ${shape}`, () =>
      session.get(`/console/approvals/${id}`),
    );
    const denied = bodyText(
      await this.post("agent", `/v1/runs/${run}/intents`, {
        ...call,
        args: { ...(call["args"] as JsonObject), n: 1 },
      }),
    );
    const other = /apr_[0-9a-f-]{36}/.exec(denied)?.[0] ?? id;
    await this.observe(`deny with an offer: ${shape}`, () =>
      this.post("approver", `/v1/approvals/${other}/deny`, {
        note: "no",
        // The arguments of the first request are approved already.
        offer: { args: { ...(call["args"] as JsonObject), n: 2 } },
      }),
    );
    await this.observe(`request with an offer: ${shape}`, get("agent", `/v1/approvals/${other}`));
  }

  /** Edits that spell out both sides. */
  changes(): Cases {
    return casesOf("changes", LARGEST_PAIRS, async (shape, make) => {
      const [old_text, new_text] = make(this.sizes.bytes * 0.95);
      const run = await this.run(`changes ${shape}`);
      await this.request(`edit, ${shape}`, run, {
        tool: "big.edit",
        args: { path: "f", edit: { old_text, new_text } },
        reason: "why",
      });
    });
  }

  /** Plans that are as long as they may be, of edits and of wide arguments. */
  plans(): Cases {
    const count = this.sizes.plan_calls;
    const each = this.sizes.bytes / count - 100;
    const kinds: Record<string, () => JsonValue[]> = {};
    for (const [shape, make] of Object.entries(LARGEST_PAIRS))
      kinds[`edits, ${shape}`] = () => {
        const [old_text, new_text] = make(each * 0.9);
        return Array.from({ length: count }, (_, i) => ({
          tool: "big.edit",
          args: { path: `f${i}`, edit: { old_text, new_text } },
        }));
      };
    for (const shape of ["one text of prose", "short strings", "keys"])
      kinds[shape] = () =>
        Array.from({ length: count }, (_, i) => ({
          tool: "big.ask",
          args: { ...LARGEST_ARGS[shape]!(each), i },
        }));
    return casesOf("plans", kinds, (shape, make) => this.plan(shape, make()));
  }

  private async plan(shape: string, calls: JsonValue[]): Promise<void> {
    const run = await this.run(`plan ${shape}`);
    const proposed = await this.observe(`propose a plan: ${shape}`, () =>
      this.post("agent", `/v1/runs/${run}/plans`, { reason: "why", calls }),
    );
    const id = String(bodyOf(proposed)["id"]);
    if (!id.startsWith("pln_")) throw new Error(`no plan: ${proposed.body.slice(0, 300)}`);
    const session = await ConsoleSession.open(this.target, "approver");
    const shown = await this.observe(`plan: ${shape}`, () => this.get("approver", `/v1/plans/${id}`));
    await this.observe(`plans: ${shape}`, () => this.get("auditor", "/v1/plans"));
    await this.observe(`console /plans: ${shape}`, () => session.get("/console/plans"));
    await this.observe(`console /plans/:id: ${shape}`, () => session.get(`/console/plans/${id}`));
    const card_hash = String(bodyOf(shown)["card_hash"]);
    const approved = await this.observe(`approve a plan: ${shape}`, () =>
      this.post("approver", `/v1/plans/${id}/approve`, { card_hash }),
    );
    if (approved.status !== 200) throw new Error(`plan not approved: ${approved.body.slice(0, 300)}`);
    await this.observe(`withdraw a plan: ${shape}`, () => this.post("agent", `/v1/plans/${id}/withdraw`, {}));
  }

  /** Hundreds of requests of one agent, a few of them large, shown and decided as a group. */
  flood(): Cases {
    return { flood: () => this.requestFlood() };
  }

  private async requestFlood(): Promise<void> {
    const { open_requests } = this.sizes;
    const large = LARGEST_PAIRS["every other line"]!(this.sizes.bytes / 10);
    for (let i = 0; i < open_requests; i += 100) {
      const run = await this.run(`flood ${i}`);
      const sent = Array.from({ length: Math.min(100, open_requests - i) }, (_, n) => {
        const [old_text, new_text] = n % 10 === 0 ? large : ["a", `b${n}`];
        const call = {
          tool: "big.edit",
          args: { path: `f${n}`, edit: { old_text, new_text } },
          reason: "why",
        };
        return () => this.post("agent", `/v1/runs/${run}/intents`, call);
      });
      for (const send of sent) await send();
    }
    const session = await ConsoleSession.open(this.target, "approver");
    const page = await this.observe("console /approvals: a flood", () => session.get("/console/approvals"));
    for (const sort of ["risk", "expiry"])
      await this.observe(`console /approvals by ${sort}: a flood`, () =>
        session.get(`/console/approvals?sort=${sort}`),
      );
    await this.everyPage("a flood", "agent", {});
    const ids = [...page.body.matchAll(/name="id" value="(apr_[^"]+)"/g)].map(([, value]) => value!);
    const fields = new URLSearchParams([...new Set(ids)].map((value): [string, string] => ["id", value]));
    fields.append("decision", "deny");
    await this.observe("console, a group decided", () => session.post("/console/approvals", fields));
  }

  /** A run of thousands of steps, and every page and route of it. */
  longRun(): Cases {
    return { longRun: () => this.stepsAndPages() };
  }

  private async stepsAndPages(): Promise<void> {
    const run = await this.run("long");
    const path = `/v1/runs/${run}`;
    const lanes = Array.from({ length: 20 }, async (_, lane) => {
      for (let i = lane; i < this.sizes.steps; i += 20) {
        const call = { tool: "big.put", args: { path: `f${i}`, text: "t" }, reason: "why" };
        const { step } = bodyOf(await this.post("agent", `${path}/intents`, call, lane));
        const done = {
          status: "succeeded",
          result: { ok: true },
          before: { text: "was" },
          after: { text: "t" },
        };
        await this.post("agent", `${path}/steps/${step}/outcome`, done, lane);
      }
    });
    await Promise.all(lanes);
    await this.target.stall();
    await this.everyPage("a long run", run, { id: run });
  }

  private async everyPage(of: string, id: string, params: Readonly<Record<string, string>>): Promise<void> {
    const filled = (path: string): string =>
      path.replace(/\{(\w+)\}|:(\w+)/g, (_, a, b) => params[a ?? b] ?? (a === "n" || b === "n" ? "0" : id));
    for (const { method, path, op } of HTTP_TABLE)
      if (method === "GET")
        await this.observe(`${path}: ${of}`, () =>
          this.get(op.role === "approver" ? "admin" : op.role, filled(path)),
        );
    const session = await ConsoleSession.open(this.target, "admin");
    for (const { method, path } of CONSOLE_ROUTES)
      if (method === "GET")
        await this.observe(`console ${path}: ${of}`, () => session.get(`/console${filled(path)}`));
  }

  private async run(name: string): Promise<string> {
    const run_id = name.replace(/\W+/g, "-");
    const reply = await this.post("agent", "/v1/runs", { run_id, permissions: HOLD_PERMISSIONS });
    if (reply.status !== 201) throw new Error(`no run: ${reply.body.slice(0, 300)}`);
    await this.target.stall();
    return run_id;
  }

  private get(key: string, path: string): Promise<Reply> {
    return this.target.send(asBytes({ key, method: "GET", path }));
  }

  private post(key: string, path: string, body: JsonValue, lane?: number): Promise<Reply> {
    const bytes = asBytes({ key, method: "POST", path, body: JSON.stringify(body) });
    return lane === undefined ? this.target.send(bytes) : this.target.lane(lane).send(bytes);
  }
}

function bodyOf(reply: Reply): JsonObject {
  try {
    return JSON.parse(reply.body) as JsonObject;
  } catch {
    return {};
  }
}

const bodyText = ({ body }: Reply): string => body;

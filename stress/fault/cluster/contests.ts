/**
 * The clients' contests, each on a separate object: an approval that is decided once and used once, a grant, a
 * limit, a halt, a plan. Every operation becomes part of the object's history.
 */
import type { Client, Reply } from "./client.ts";
import type { Caller } from "./config.ts";
import { ObjectHistory, type Operation } from "./history.ts";

const HALTED_TOOLS = 8;
const GRANT_USES = 2;
const LIMIT = 4;

/** One contest: it plays with an object and returns its history, or nothing if the object could not be made. */
type Contest = (client: Client, name: string) => Promise<Operation[] | undefined>;

const times = <T>(count: number, make: (i: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, i) => make(i)));

async function openRun(client: Client, run_id: string): Promise<boolean> {
  const reply = await client.surely("bot", "POST", "/v1/runs", { run_id, permissions: ["p"] });
  return reply?.status === 201 || reply?.status === 409;
}

/** Asks for a call until it is answered; records an accepted one among the answers. */
async function ask(client: Client, run_id: string, tool: string, args: unknown): Promise<Reply | undefined> {
  const call = performance.now();
  const input = { tool, args, reason: "contest" };
  const reply = await client.surely("bot", "POST", `/v1/runs/${run_id}/intents`, input);
  if (reply?.status === 200 && reply.body.decision === "allow")
    client.note("intended", `${run_id}/${reply.body.step}`, call);
  return reply;
}

function decisionOf(reply: Reply | undefined): { out: Operation["out"]; value: number } {
  if (reply?.status !== 200) return { out: "", value: -1 };
  const { decision, step } = reply.body;
  return decision === "allow" ? { out: "allowed", value: step } : { out: "blocked", value: -1 };
}

/** A decision by a person, sent once. */
async function decide(client: Client, caller: Caller, path: string, event: string, subject: string) {
  const call = performance.now();
  const reply = await client.once(caller, "POST", path, {});
  if (reply?.status === 200) client.note(event, subject, call);
  const out: Operation["out"] =
    reply === undefined ? "" : reply.status === 200 ? "ok" : reply.status === 409 ? "refused" : "";
  return { out, value: undefined };
}

const approval: Contest = async (client, name) => {
  if (!(await openRun(client, name))) return undefined;
  const args = { name };
  const asked = await ask(client, name, "pay.once", args);
  const [id] = /apr_[0-9a-f-]+/.exec(JSON.stringify(asked?.body)) ?? [];
  if (id === undefined) return undefined;
  const history = new ObjectHistory("approval", name);
  const path = `/v1/approvals/${id}`;
  await Promise.all([
    history.record(0, "approve", 0, () => decide(client, "ann", `${path}/approve`, "approved", id)),
    history.record(1, "deny", 0, () => decide(client, "ben", `${path}/deny`, "denied", id)),
    ...Array.from({ length: 3 }, (_, i) =>
      history.record(2 + i, "use", 0, async () => decisionOf(await ask(client, name, "pay.once", args))),
    ),
  ]);
  // A later client finds it used, or uses it.
  await history.record(5, "use", 0, async () => decisionOf(await ask(client, name, "pay.once", args)));
  await history.record(5, "use", 0, async () => decisionOf(await ask(client, name, "pay.once", args)));
  return history.operations;
};

const grant: Contest = async (client, name) => {
  if (!(await openRun(client, name))) return undefined;
  const call = performance.now();
  const given = await client.once("root", "POST", "/v1/grants", {
    match: { tool: "pay.granted", actor: "bot" },
    rules: ["guarded"],
    when: [{ path: "$args.name", op: "eq", value: name }],
    max_uses: GRANT_USES,
    expires_at: new Date(Date.now() + 3_600_000).toISOString(),
    reason: "contest",
  });
  const id: string | undefined = given?.status === 201 ? given.body.id : undefined;
  if (id === undefined) return undefined;
  client.note("granted", id, call);
  const history = new ObjectHistory("grant", name);
  const use = (who: number, n: number) =>
    history.record(who, "use", GRANT_USES, async () =>
      decisionOf(await ask(client, name, "pay.granted", { name, n })),
    );
  await Promise.all([
    times(2, async (i) => {
      await use(i, 10 * i);
      await use(i, 10 * i + 1);
    }),
    history.record(2, "revoke", GRANT_USES, async () => {
      const reply = await client.surely("root", "DELETE", `/v1/grants/${id}`);
      return { out: reply === undefined ? "" : "ok", value: undefined };
    }),
  ]);
  await use(3, 40);
  return history.operations;
};

const limit: Contest = async (client, name) => {
  if (!(await openRun(client, name))) return undefined;
  const history = new ObjectHistory("limit", name);
  await times(3, async (i) => {
    for (let n = 0; n < 3; n++)
      await history.record(i, "call", LIMIT, async () =>
        decisionOf(await ask(client, name, "limited.call", { n: 10 * i + n })),
      );
  });
  await history.record(3, "call", LIMIT, async () =>
    decisionOf(await ask(client, name, "limited.call", { n: 99 })),
  );
  return history.operations;
};

/** A halt that nobody answered can still wait in a server that does not run, for as long as a fault lasts. */
const LATE_MS = 120_000;
let nextTool = 0;
/** When each tool can be used again. */
const busyUntil = new Map<number, number>();

const halt: Contest = async (client, name) => {
  const free = Array.from({ length: HALTED_TOOLS }, (_, i) => (nextTool + i) % HALTED_TOOLS).find(
    (i) => (busyUntil.get(i) ?? 0) < performance.now(),
  );
  if (free === undefined) return undefined;
  nextTool = free + 1;
  busyUntil.set(free, Number.POSITIVE_INFINITY);
  const tool = `halted.t${free}`;
  const history = new ObjectHistory("halt", name);
  try {
    if (!(await openRun(client, name)) || !(await liftAll(client, tool))) return undefined;
    await Promise.all([
      toggle(client, history, tool),
      ...Array.from({ length: 2 }, async (_, i) => {
        for (let n = 0; n < 4; n++)
          await history.record(1 + i, "call", 0, async () =>
            decisionOf(await ask(client, name, tool, { n: 10 * i + n })),
          );
      }),
    ]);
    await history.record(3, "call", 0, async () => decisionOf(await ask(client, name, tool, { n: 99 })));
  } finally {
    const isLost = history.operations.some(({ op, out }) => op === "halt" && out === "");
    busyUntil.set(free, isLost ? performance.now() + LATE_MS : 0);
  }
  return history.operations;
};

/** Halts and lifts twice. A halt that nobody answered can be active from then on; what follows allows for both. */
async function toggle(client: Client, history: ObjectHistory, tool: string): Promise<void> {
  for (const n of [0, 1]) {
    const id = await history.record(0, "halt", n, async () => {
      const call = performance.now();
      const reply = await client.once("root", "POST", "/v1/halt", { reason: "contest", tool });
      if (reply?.status !== 201) return { out: "", value: undefined };
      client.note("halted", reply.body.id, call);
      return { out: "ok", value: String(reply.body.id) };
    });
    if (id === undefined) continue;
    await history.record(0, "lift", n, async () => {
      const reply = await client.surely("root", "POST", "/v1/resume", { id });
      return { out: reply === undefined ? "" : "ok", value: undefined };
    });
  }
}

/** Before a tool is used again, no halt of it is left. */
async function liftAll(client: Client, tool: string): Promise<boolean> {
  const listed = await client.surely("root", "GET", "/v1/halts");
  if (listed?.status !== 200) return false;
  const left = (listed.body.halts as { id: string; scope: { tool: string | null } }[]).filter(
    ({ scope }) => scope.tool === tool,
  );
  for (const { id } of left) await client.surely("root", "POST", "/v1/resume", { id });
  return left.length === 0;
}

const plan: Contest = async (client, name) => {
  if (!(await openRun(client, name))) return undefined;
  const calls = [0, 1].map((n) => ({ tool: "pay.planned", args: { name, n } }));
  const call = performance.now();
  const body = { reason: "contest", calls };
  const proposed = await client.once("bot", "POST", `/v1/runs/${name}/plans`, body);
  const id: string | undefined = proposed?.status === 201 ? proposed.body.id : undefined;
  if (id === undefined) return undefined;
  client.note("plan_proposed", id, call);
  const history = new ObjectHistory("plan", name);
  const use = async (who: number, n: number): Promise<void> => {
    const step = await history.record(who, "use", n, async () =>
      decisionOf(await ask(client, name, "pay.planned", calls[n]!.args)),
    );
    if (step < 0) return;
    await history.record(who, "outcome", n, async () => {
      const asked = performance.now();
      const path = `/v1/runs/${name}/steps/${step}/outcome`;
      const reply = await client.surely("bot", "POST", path, { status: "succeeded" });
      if (reply?.status === 200) client.note("succeeded", `${name}/${step}`, asked);
      return { out: reply?.status === 200 ? "ok" : "", value: undefined };
    });
  };
  await Promise.all([
    history.record(0, "approve", 0, () =>
      decide(client, "ann", `/v1/plans/${id}/approve`, "plan_approved", id),
    ),
    history.record(1, "deny", 0, () => decide(client, "ben", `/v1/plans/${id}/deny`, "plan_denied", id)),
    times(2, async (i) => {
      await use(2 + i, 0);
      await use(2 + i, 1);
    }),
  ]);
  for (const n of [0, 1, 0]) await use(4, n);
  return history.operations;
};

export const CONTESTS: Record<string, Contest> = { approval, grant, limit, halt, plan };

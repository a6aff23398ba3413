/**
 * Authority that changes under open sessions: one key, whose roles, caps and validity change each round, and
 * the sessions that it opened with all rights. Each surface must then answer with the key's current rights,
 * not with its earlier ones.
 */
import { seeded } from "../../test/support/env.ts";
import { replyProblem } from "./batches.ts";
import { asBytes, type Plain } from "./requests.ts";
import { type AreaRow, newRow, noteTime } from "./row.ts";
import { Target } from "./target.ts";
import type { Reply } from "./wire.ts";

const RANKS = ["auditor", "approver", "operator", "admin"];
const ROLES = [["agent"], ...RANKS.map((role) => [role]), ...RANKS.map((role) => ["agent", role])];
const CAPS = [["*"], ["fake.*", "crm.*"], ["fake.read", "crm.read"], []];
const NO_CALL = "00000000-0000-4000-8000-000000000000";
const ACCEPT = { accept: "application/json, text/event-stream" };

/** What the key may in this round. */
interface Turn {
  roles: string[];
  max_permissions: string[];
  disabled: boolean;
}

/** Sessions opened before the first round. */
interface Opened {
  target: Target;
  key: string;
  index: number;
  operator: string;
  agent: string;
  cookie: string;
  csrf: string;
}

interface Probe {
  name: string;
  send(opened: Opened): Plain;
  /** What the answer must be: a status, and words in the body. */
  want(turn: Turn): [status: number, words: RegExp];
}

const rank = ({ roles }: Turn): number => Math.max(...roles.map((role) => RANKS.indexOf(role)));
const isAgent = ({ roles }: Turn): boolean => roles.includes("agent");
const may = (turn: Turn, permission: string): boolean =>
  turn.max_permissions.some(
    (cap) => cap === "*" || cap === permission || cap === permission.replace(/\.\w+$/, ".*"),
  );

const call = (name: string, args: object) =>
  JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } });

/** A tool of the operator's, in the session that was opened by an admin. */
const operatorTool = (name: string, args: object, needs: string, refusal: RegExp, done: RegExp): Probe => ({
  name: `operator session, ${name}`,
  send: ({ key, operator }) => ({
    ...{ key, method: "POST", path: "/operator/mcp", body: call(name, args) },
    headers: { ...ACCEPT, "mcp-session-id": operator },
  }),
  want(turn) {
    if (rank(turn) < 0) return [403, /auditor role or higher required/];
    return [200, rank(turn) >= RANKS.indexOf(needs) ? done : refusal];
  },
});

/** A tool of the upstream's, in the session that was opened with every permission. */
const agentTool = (name: string, permission: string): Probe => ({
  name: `agent session, ${name}`,
  send: ({ key, agent }) => ({
    ...{ key, method: "POST", path: "/mcp", body: call(name, {}) },
    headers: { ...ACCEPT, "mcp-session-id": agent },
  }),
  want(turn) {
    if (!isAgent(turn)) return [403, /agent role required/];
    return [
      200,
      may(turn, permission) ? /"svc\/decision":"allow"/ : /exceeds the current max_permissions of this key/,
    ];
  },
});

const route = (method: string, path: string, needs: string, body?: object): Probe => ({
  name: `${method} ${path}`,
  send: ({ key }) => ({ key, method, path, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }),
  want: (turn) => (rank(turn) >= RANKS.indexOf(needs) ? [200, /./] : [403, /role required|admin only/]),
});

const PROBES: readonly Probe[] = [
  operatorTool("svc.resume", {}, "admin", /admin only/, /lifted/),
  operatorTool(
    "svc.approve_action",
    { approval_id: `apr_${NO_CALL}` },
    "approver",
    /approver role required/,
    /unknown approval request/,
  ),
  operatorTool(
    "svc.execute_rollback",
    { run_id: "none", confirm: true },
    "operator",
    /operator role required/,
    /unknown run/,
  ),
  operatorTool("svc.list_runs", {}, "auditor", /./, /runs/),
  agentTool("echo", "fake.read"),
  agentTool("counted", "fake.write"),
  route("POST", "/v1/resume", "admin", {}),
  route("GET", "/v1/halts", "auditor"),
  {
    name: "an intent in a run of every permission",
    send: ({ key }) => ({
      ...{ key, method: "POST", path: "/v1/runs/turning/intents" },
      body: JSON.stringify({ tool: "crm.create", args: {}, reason: "r" }),
    }),
    want(turn) {
      if (!isAgent(turn)) return [403, /agent role required/];
      return [
        200,
        may(turn, "crm.write") ? /"decision":"allow"/ : /exceeds the current max_permissions of this key/,
      ];
    },
  },
  {
    name: "console session, a page",
    send: ({ cookie }) => ({ method: "GET", path: "/console/runs", headers: { cookie } }),
    want: (turn) => (rank(turn) < 0 ? [303, /^/] : [200, /<h1/]),
  },
  {
    name: "console session, a form",
    send: ({ cookie, csrf }) => ({
      ...{ method: "POST", path: "/console/evidence/resume", body: `csrf=${csrf}&confirm=yes` },
      headers: { cookie, "content-type": "application/x-www-form-urlencoded" },
    }),
    want: (turn) => [rank(turn) < 0 || rank(turn) === RANKS.indexOf("admin") ? 303 : 403, /^/],
  },
];

export async function turnRoles(count: number, seed: number): Promise<AreaRow> {
  const row = newRow("authority");
  const began = performance.now();
  const target = await Target.start("gateway");
  try {
    const opened = await open(target);
    // The start and the first requests don't count as answers.
    await target.stall();
    const random = seeded(seed);
    while (row.inputs < count && row.problems.length < 5) await oneRound(opened, random, row);
    noteTime(row, (await target.stall()).busy_ms, "one of the rounds");
  } finally {
    await target.stop();
  }
  row.seconds = (performance.now() - began) / 1_000;
  return row;
}

async function oneRound(opened: Opened, random: () => number, row: AreaRow): Promise<void> {
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)]!;
  const turn: Turn = { roles: pick(ROLES), max_permissions: pick(CAPS), disabled: random() < 0.1 };
  const { target, index } = opened;
  const change = { key: "admin", method: "PATCH", path: `/v1/keys/${index}`, body: JSON.stringify(turn) };
  const { status, body } = await target.send(asBytes(change));
  if (status !== 200) throw new Error(`the key could not be changed: ${status} ${body}`);
  for (const probe of PROBES) {
    const reply = await target.send(asBytes(probe.send(opened)));
    row.inputs++;
    const [wanted, words] = turn.disabled ? gone(probe) : probe.want(turn);
    if (reply.status < 300) row.accepted++;
    const problem = replyProblem(reply);
    if (problem === undefined && reply.status === wanted && words.test(reply.body)) continue;
    const told = `${reply.status} ${reply.body.slice(0, 200)}, not ${wanted} ${words}`;
    row.problems.push(`${probe.name} as ${JSON.stringify(turn)}: ${problem ?? told}`);
  }
}

/** A key that is gone is nobody's: the console asks to log in, everything else for a credential. */
function gone({ name }: Probe): [number, RegExp] {
  return name.startsWith("console") ? [303, /^/] : [401, /invalid credential/];
}

/** Opens everything with a key that may do everything. */
async function open(target: Target): Promise<Opened> {
  const send = async (plain: Plain): Promise<Reply> => target.send(asBytes(plain));
  const made = await send({
    ...{ key: "admin", method: "POST", path: "/v1/keys" },
    body: JSON.stringify({ name: "turning", roles: ["agent", "admin"], max_permissions: ["*"] }),
  });
  const { key, index } = JSON.parse(made.body) as { key: string; index: number };
  const permissions = ["crm.read", "crm.write"];
  const run = JSON.stringify({ run_id: "turning", permissions });
  await send({ key, method: "POST", path: "/v1/runs", body: run });
  const session = async (path: string): Promise<string> => {
    const params = {
      protocolVersion: "2025-06-18",
      capabilities: {},
      clientInfo: { name: "c", version: "1" },
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params });
    const { headers } = await send({ key, method: "POST", path, headers: ACCEPT, body });
    const id = /mcp-session-id: (\S+)/i.exec(headers)![1]!;
    // The session's own run is opened with its first call, and has every permission from then on.
    if (path === "/mcp")
      await send({
        key,
        method: "POST",
        path,
        headers: { ...ACCEPT, "mcp-session-id": id },
        body: call("echo", {}),
      });
    return id;
  };
  const cookieOf = ({ headers }: Reply): string => /set-cookie: ([^;]+)/i.exec(headers)?.[1] ?? "";
  const csrfOf = ({ body }: Reply): string => /name="csrf" value="([0-9a-f]+)"/.exec(body)?.[1] ?? "";
  const login = await send({ method: "GET", path: "/console/login" });
  const form = new URLSearchParams({ csrf: csrfOf(login), credential: key }).toString();
  const type = "application/x-www-form-urlencoded";
  const headers = { cookie: cookieOf(login), "content-type": type };
  const cookie = cookieOf(await send({ method: "POST", path: "/console/login", headers, body: form }));
  const csrf = csrfOf(await send({ method: "GET", path: "/console/evidence", headers: { cookie } }));
  if (cookie === "" || csrf === "") throw new Error("the console could not be logged in to");
  const [operator, agent] = [await session("/operator/mcp"), await session("/mcp")];
  return { target, key, index, operator, agent, cookie, csrf };
}

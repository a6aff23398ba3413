/**
 * Every operation and every form of the console, given what costs most to read: none may make the process stand
 * still. What there is to try is taken from the service's own tables, so that nothing new is left out: each field of
 * each operation, and each field of a form that is named here; a form that is not named here is a finding. Documents
 * get every input, another field every third one: which, turns from field to field and with the seed.
 */
import type { z } from "zod";
import { CONSOLE_ROUTES } from "../../src/console/routes.ts";
import type { HttpRow } from "../../src/http/api/http-row.ts";
import { HTTP_TABLE } from "../../src/http/api/http-table.ts";
import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";
import { replyProblem } from "./batches.ts";
import { type Bomb, textBombs, valueBombs } from "./bombs.ts";
import { ConsoleSession } from "./console-session.ts";
import { HOLD_MANIFESTS, HOLD_POLICY, parseTimes, SMALL, tryLargest, WHOLE } from "./holds.ts";
import { asBytes } from "./requests.ts";
import { type AreaRow, newRow, noteTime } from "./row.ts";
import { PERMISSIONS, REQUESTS } from "./samples.ts";
import type { Stall } from "./stall-watch.ts";
import { Target } from "./target.ts";
import type { Reply } from "./wire.ts";

/** The fields of each form that hold text of a person's own. */
export const FORM_FIELDS: Readonly<Record<string, readonly string[]>> = {
  "/approvals": ["id", "note"],
  "/approvals/:id": ["note"],
  "/approvals/:id/break-glass": ["reason"],
  "/approvals/:id/alike": ["reason"],
  "/approvals/:id/offer": ["args", "note"],
  "/challenges/:kind/:id": ["reason", "args"],
  "/contain": ["actor", "reason"],
  "/incidents/:id/notes": ["text"],
  "/incidents/:id/assign": ["to"],
  "/incidents/:id/close": ["reason"],
  "/grants": ["tool", "actor", "reason"],
  "/grants/challenge": ["tool", "actor", "reason"],
  "/grants/:id/revoke": [],
  "/grants/preview": ["tool", "actor"],
  "/passkeys": ["response"],
  "/passkeys/:id/confirm": ["code", "signature"],
  "/passkeys/:id/revoke": [],
  "/passkeys/options": [],
  "/upstreams/:name/link": [],
  "/upstreams/:id/revoke": [],
  "/push": ["subscription", "label"],
  "/push/here": ["subscription"],
  "/push/:id/quiet": ["from", "to", "zone", "off"],
  "/push/:id/test": [],
  "/push/:id/remove": [],
  "/plans/:id": ["note"],
  "/drills": ["tool", "upstream"],
  "/delegations": ["to", "tools", "reason"],
  "/delegations/challenge": ["to", "tools", "reason"],
  "/delegations/:id/revoke": [],
  "/runs/:id/steps/:n/resolve": ["note"],
  "/runs/:id/rollback": ["retries", "with"],
  "/runs/:id/replay": ["path", "value", "where"],
  "/registry/manifests": ["yaml"],
  "/registry/manifests/:tool/approve": ["version"],
  "/registry/manifests/:tool/deprecate": ["version"],
  "/policy": ["yaml", "note", "tool", "args", "earlier", "keep"],
  "/policy/versions/:version/activate": [],
  "/evidence/verify": [],
  "/evidence/halt": ["reason", "tool", "actor"],
  "/evidence/resume": ["id"],
  "/evidence/anchor": [],
  "/settings/test": ["channel"],
  "/settings/retention": ["days", "archive_dir"],
  "/settings/holds": ["run_id", "tool", "reason"],
  "/settings/holds/:id/release": [],
  "/settings/keys": ["name", "max_permissions", "groups"],
  "/settings/keys/:index": ["max_permissions", "expires_at"],
  "/settings/keys/:index/delete": ["fingerprint"],
};

/** A missing object for a parameter of a path, so that no attempt removes the ground of the next. */
const PARAMS: Readonly<Record<string, string>> = {
  id: "heavy",
  n: "0",
  kind: "approval",
  tool: "crm.get",
  version: "1",
  index: "99",
};
const filled = (path: string): string =>
  path.replace(/\{(\w+)\}|:(\w+)/g, (_, a, b) => PARAMS[a ?? b] ?? "x");

/** Bodies have at most 1 MB; the request line far less. */
const LARGEST = 900_000;
const SMALLEST = 50_000;
const IN_A_LINE = 6_000;
const SHORT = 15_000;
const PATIENCE_MS = 180_000;
const WHOLE_RUN = 10_000;
/** A field gets one of so many inputs: in a whole run, and in a small one. */
const TURNS = { whole: { document: 1, other: 3 }, small: { document: 9, other: 60 } };
const PROGRESS_MS = 15_000;
const DOCUMENTS: ReadonlySet<string> = new Set(["yaml", "policy"]);

/** `only` selects cases of the largest data by name, and leaves out the fields. */
export async function runHeavy(count: number, seed: number, only?: RegExp): Promise<AreaRow> {
  const row = newRow("heavy");
  const began = performance.now();
  if (only === undefined) await tryFields(row, count, seed);
  await tryHolds(row, count >= WHOLE_RUN, only);
  console.error(`heavy: the longest was ${Math.round(row.slowest_ms)} ms, for ${row.slowest}`);
  row.seconds = (performance.now() - began) / 1_000;
  return row;
}

/** Each field of each operation and form. */
async function tryFields(row: AreaRow, count: number, seed: number): Promise<void> {
  const size = Math.min(LARGEST, Math.max(SMALLEST, count * 10));
  const target = await Target.start("server", { patience_ms: PATIENCE_MS });
  try {
    const body = JSON.stringify({ run_id: "heavy", permissions: PERMISSIONS });
    await target.send(asBytes({ key: "agent", method: "POST", path: "/v1/runs", body }));
    const watch = new Watch(target, row, count >= WHOLE_RUN, seed);
    await watch.start();
    for (const place of HTTP_TABLE) await tryOperation(place, size, target, watch);
    await tryConsole(target, size, watch);
    await tryInForce(target, size, watch);
  } finally {
    const code = await target.stop();
    if (code !== 0) row.problems.push(`it ended with code ${code}`);
  }
}

/** Every page and route with the largest legal data, on a separate server. */
async function tryHolds(row: AreaRow, is_whole: boolean, only?: RegExp): Promise<void> {
  const sizes = is_whole ? WHOLE : SMALL;
  const setup = { patience_ms: PATIENCE_MS, manifests: HOLD_MANIFESTS, policy: HOLD_POLICY };
  const target = await Target.start("server", setup);
  const holds = new Map<string, Hold>();
  try {
    const watch = new Watch(target, row, is_whole);
    await watch.start();
    const see = async (what: string, send: () => Promise<Reply>) => {
      const reply = await watch.see(what, send);
      const route = what.replace(/: .*/, "");
      const known = holds.get(route);
      if (known === undefined || known.ms < watch.last.busy_ms)
        holds.set(route, { ms: watch.last.busy_ms, gc_ms: watch.last.gc_ms, what });
      return reply;
    };
    const tried = await tryLargest(target, sizes, see, only);
    if (tried === 0) row.problems.push("--only: no case has such a name");
  } finally {
    const code = await target.stop();
    if (code !== 0) row.problems.push(`it ended with code ${code}`);
    console.error(holdTable(holds, sizes.bytes));
  }
}

/** The longest hold of a page or route, what it was for, and how much of it collected garbage. */
interface Hold {
  ms: number;
  gc_ms: number;
  what: string;
}

/** The longest hold of each page and route, the longest first, next to what reading a body takes. */
function holdTable(holds: ReadonlyMap<string, Hold>, bytes: number): string {
  const { platform_ms, strict_ms, shape } = parseTimes(bytes);
  const sorted = [...holds.values()].sort((a, b) => b.ms - a.ms);
  return [
    "heavy: the longest hold of the event loop for each page and route, in ms, and the garbage collection in it",
    ...sorted.map(({ ms, gc_ms, what }) => `${columnOf(ms)}${columnOf(gc_ms)}  ${what}`),
    `${columnOf(strict_ms)}        reading a body of ${bytes.toLocaleString("en-US")} bytes (${shape}); JSON.parse alone takes ${platform_ms.toFixed(0)}`,
  ].join("\n");
}

const columnOf = (ms: number): string => ms.toFixed(0).padStart(6);

/** Sends a request, and returns the answer and the time that it held the event loop. */
class Watch {
  private readonly target: Target;
  private readonly row: AreaRow;
  private readonly turns: { document: number; other: number };
  private turn: number;
  private readonly began = performance.now();
  private told = performance.now();
  /** How long the last input held the event loop. */
  last: Stall = { loop_ms: 0, busy_ms: 0, gc_ms: 0 };

  constructor(target: Target, row: AreaRow, is_whole: boolean, seed = 0) {
    this.target = target;
    this.row = row;
    this.turns = is_whole ? TURNS.whole : TURNS.small;
    this.turn = seed;
  }

  /** Each field gets its share in turn, and documents a larger one. */
  share(field: string, bombs: readonly Bomb[]): readonly Bomb[] {
    const turns = DOCUMENTS.has(field) ? this.turns.document : this.turns.other;
    const turn = this.turn++ % turns;
    return bombs.filter((_, i) => i % turns === turn);
  }

  async start(): Promise<void> {
    await this.target.stall();
  }

  async see(what: string, send: () => Promise<Reply>): Promise<Reply> {
    const reply = await send();
    const { row } = this;
    row.inputs++;
    if (reply.status >= 200 && reply.status < 400) row.accepted++;
    const problem = replyProblem(reply);
    if (problem !== undefined) row.problems.push(`${what}: ${problem}`);
    this.last = await this.target.stall();
    const { busy_ms, gc_ms } = this.last;
    const collecting_ms = Math.round(Math.min(busy_ms, gc_ms));
    noteTime(row, busy_ms, `${what} (garbage collection: ${collecting_ms} ms)`);
    if (performance.now() - this.told >= PROGRESS_MS) this.tellProgress();
    return reply;
  }

  private tellProgress(): void {
    this.told = performance.now();
    const { inputs, slowest_ms, slowest } = this.row;
    const seconds = Math.round((this.told - this.began) / 1_000);
    console.error(
      `heavy: ${inputs.toLocaleString("en-US")} inputs after ${seconds} s; the longest hold ${Math.round(slowest_ms)} ms, for ${slowest}`,
    );
  }

  found(problem: string): void {
    this.row.problems.push(problem);
  }
}

const ROLE_KEYS: ReadonlySet<string> = new Set(["agent", "auditor", "approver", "operator", "admin"]);

async function tryOperation(row: HttpRow, size: number, target: Target, watch: Watch): Promise<void> {
  const { op, method } = row;
  const key = ROLE_KEYS.has(op.role) ? op.role : "admin";
  const name = `${method} ${row.path}`;
  const send = (path: string, body?: JsonValue) => () =>
    target.send(
      asBytes({
        key,
        method,
        path,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    );
  const path = filled(row.path);
  if (method === "GET") {
    await watch.see(name, send(path));
    for (const field of Object.keys(row.query))
      for (const { name: bomb, value } of watch.share(field, textBombs(IN_A_LINE)))
        await watch.see(
          `${name}, ${field}: ${bomb}`,
          send(`${path}?${field}=${encodeURIComponent(String(value)).slice(0, 2 * IN_A_LINE)}`),
        );
    return;
  }
  const sample = sampleOf(row);
  await watch.see(name, send(path, sample));
  for (const field of bodyFields(row))
    for (const { name: bomb, value } of watch.share(field, [...textsFor(field, size), ...valueBombs(size)]))
      await watch.see(`${name}, ${field}: ${bomb}`, send(path, { ...sample, [field]: value }));
}

/** Short input can take another path than long input. */
function textsFor(field: string, size: number): Bomb[] {
  const short = () => textBombs(SHORT).map(({ name, value }) => ({ name: `${name}, short`, value }));
  return DOCUMENTS.has(field) ? [...textBombs(size), ...short()] : textBombs(size);
}

/** A valid body around the given part. */
function sampleOf({ op, ...row }: HttpRow): JsonObject {
  const form = new RegExp(`^${row.path.replace(/\{\w+\}/g, "[^/]+")}$`);
  const body = REQUESTS.find(({ method, path }) => method === row.method && form.test(path))?.body ?? {};
  // Either of the two is given, and the text is the input.
  return op.id === "publish_manifest" ? {} : body;
}

function bodyFields({ op, body, placed }: HttpRow): string[] {
  const fields = Object.keys((op.input as z.ZodObject).shape);
  return body ? fields.filter((name) => !placed.has(name)) : [];
}

async function tryConsole(target: Target, size: number, watch: Watch): Promise<void> {
  const session = await ConsoleSession.open(target, "admin");
  for (const { method, path } of CONSOLE_ROUTES) {
    const at = `/console${filled(path)}`;
    if (method === "GET") {
      await watch.see(`console ${path}`, () => session.get(at));
      continue;
    }
    const fields = FORM_FIELDS[path];
    if (fields === undefined)
      watch.found(`the form ${path} is not tried: name its fields in stress/attack/heavy.ts`);
    await watch.see(`console form ${path}`, () => session.post(at, {}));
    // A form is written with three characters for many.
    for (const field of fields ?? [])
      for (const { name, value } of watch.share(field, textsFor(field, size / 3)))
        await watch.see(`console form ${path}, ${field}: ${name}`, () =>
          session.post(at, { do: "check", [field]: String(value) }),
        );
  }
}

/** A large valid policy: activated, read again, and shown. */
async function tryInForce(target: Target, size: number, watch: Watch): Promise<void> {
  const [plain] = textBombs(size);
  const post = (key: string, path: string, body: JsonValue) => () =>
    target.send(asBytes({ key, method: "POST", path, body: JSON.stringify(body) }));
  const published = await watch.see(
    "publishing a large policy",
    post("operator", "/v1/registry/policy", { yaml: (plain as Bomb).value }),
  );
  const version = /"version":"(\d+)"/.exec(published.body)?.[1];
  if (version === undefined) return watch.found(`a large policy is refused: ${published.body.slice(0, 200)}`);
  const activate = `/v1/registry/policy/${version}/activate`;
  const { status } = await watch.see("putting it in force", post("admin", activate, {}));
  if (status !== 200) watch.found(`it is not put in force: ${status}`);
  await watch.see("reading it again", post("admin", "/v1/reload", {}));
  for (const { op, path } of HTTP_TABLE.filter(({ method }) => method === "GET"))
    await watch.see(`${op.id} under it`, () =>
      target.send(asBytes({ key: op.role, method: "GET", path: filled(path) })),
    );
  const session = await ConsoleSession.open(target, "admin");
  for (const { method, path } of CONSOLE_ROUTES.filter(({ method }) => method === "GET"))
    await watch.see(`console ${method} ${path}`, () => session.get(`/console${filled(path)}`));
}

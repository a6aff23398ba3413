/**
 * Whether one tenant can learn anything about another by asking. A bound caller must get the same answer, byte for
 * byte, regardless of another tenant's actions. Another tenant's object must look like one that never existed.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { newKeyPair } from "../../src/evidence/signing.ts";
import type { HttpRow } from "../../src/http/api/http-row.ts";
import { HTTP_TABLE } from "../../src/http/api/http-table.ts";
import { pdfText } from "../evidence/support/pdf.ts";
import { seeded } from "../support/env.ts";
import { type TestServer, testServer } from "../support/server.ts";
import {
  ageCalls,
  difference,
  life,
  NEIGHBOUR,
  neverThere,
  ROLES,
  TENANT_KEYS,
  TENANT_MANIFESTS,
  TENANT_POLICY,
  type Things,
  TWIN,
  withIds,
} from "../support/tenant-life.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

let s: TestServer;
let theirs: Things;
let ours: Things;
/** Each question, and a bound caller's answer before the other tenant did anything. */
let before: Map<string, string>;

beforeAll(async () => {
  const key = join(tempDir("key"), "s.key");
  writeFileSync(key, newKeyPair().private_pem, { mode: 0o600 });
  s = await testServer({
    manifests: TENANT_MANIFESTS,
    policy: TENANT_POLICY,
    config: `capture: {enabled: true}\nsigning_key: ${key}\n`,
    keys: TENANT_KEYS,
  });
  ours = await life(s.call, s.env.now(), "acme");
  await ageCalls(s.app.core.store, "acme");
  before = await answers();
  theirs = await life(s.call, s.env.now(), NEIGHBOUR);
  await ageCalls(s.app.core.store, NEIGHBOUR);
});

/** The objects to ask for, the other tenant's name among them. */
const VALUES: Record<string, string[]> = {
  limit: ["1", "2", "500"],
  tenant: [NEIGHBOUR, "acme", "*"],
  actor: [`${NEIGHBOUR}-agent`, "acme-agent", TWIN],
  run_id: [`${NEIGHBOUR}-run`, "acme-run", `${NEIGHBOUR}-${TWIN}`],
  tool: ["mail.send", "crm.create", "crm.get"],
  status: ["pending", "open", "closed"],
  event: ["intended", "denied"],
  q: [NEIGHBOUR, "acme", "a"],
  order: ["asc", "desc"],
  since: ["1d"],
  format: ["json", "md"],
  within: ["3h"],
  attention: ["true"],
  all: ["true"],
  args: ['{"n":1}', '{"n":100}'],
};

/** Every GET as it is, and with fields of its query drawn at random. */
function questions(): string[] {
  const random = seeded(23);
  const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)]!;
  const asked = new Set<string>([`/v1/actors/${TWIN}`, `/v1/actors/${NEIGHBOUR}-agent`]);
  for (const row of HTTP_TABLE.filter(({ method }) => method === "GET")) {
    const path = withIds(row.path, ours);
    asked.add(path);
    const fields = Object.keys(row.query).filter((field) => field in VALUES);
    for (let i = 0; i < 2 * fields.length; i++) {
      const query = new URLSearchParams();
      for (const field of fields) if (random() < 0.4) query.set(field, pick(VALUES[field]!));
      asked.add(`${path}?${query}`);
    }
  }
  return [...asked];
}

/** Proofs go over the whole ledger, and their sizes and hashes with it; so does the file of a page with its id. */
const OVER_ALL = /\/(bundle|report\.pdf)$/;

async function answers(): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  // The head belongs to the ledger. Everybody can compare it with proofs.
  const { hash } = await s.app.core.store.head();
  const ask = async (role: string, question: string) => {
    const { status, text, body } = await s.call(`acme-${role}`, "GET", question);
    found.set(`${role} ${question}`, `${status} ${text.replaceAll(hash, "<head>")}`);
    return body?.next_cursor as string | null | undefined;
  };
  for (const question of questions()) {
    if (OVER_ALL.test(question)) continue;
    for (const role of ROLES) {
      const cursor = await ask(role, question);
      if (cursor)
        await ask(
          role,
          `${question}${question.includes("?") ? "&" : "?"}cursor=${encodeURIComponent(cursor)}`,
        );
    }
  }
  return found;
}

it("what a neighbour does changes no byte of an answer", async () => {
  verifies("beyond.tenants.apart");
  const after = await answers();
  expect(after.size).toBeGreaterThan(300);
  const changed = [...before].filter(([question, answer]) => after.get(question) !== answer);
  expect(
    changed.map(([question, answer]) => [question, ...difference(answer, after.get(question)!)]),
  ).toEqual([]);
});

it("an incident's files name the tenant's own part of an agent that works for both", async () => {
  verifies("beyond.tenants.apart", "beyond.incidents.tenant");
  for (const format of ["json", "md", "pdf"]) {
    const url = `/v1/incidents/${ours.incidents}?format=${format}`;
    const answer = await s.http.inject({ url, headers: { authorization: "Bearer acme-auditor" } });
    const text = format === "pdf" ? pdfText(new Uint8Array(answer.rawPayload)) : answer.body;
    expect([format, answer.statusCode, text.includes(`acme-${TWIN}`)]).toEqual([format, 200, true]);
    expect([format, text.includes(NEIGHBOUR)]).toEqual([format, false]);
  }
});

describe("a neighbour's thing is answered like one that was never there", () => {
  const rows = HTTP_TABLE.filter(({ path }) => /\{id\}|actors/.test(path));
  it.each(rows.map((row) => [`${row.method} ${row.path}`, row] as const))("%s", async (_, row) => {
    verifies("beyond.tenants.apart");
    const never = neverThere(theirs);
    const [kind] = /(?<=\/)[a-z]+(?=\/\{(?:id|name)\})/.exec(row.path)! as unknown as [keyof Things];
    for (const role of ROLES) {
      for (const body of bodiesOf(row)) {
        const ask = (things: Things) => s.call(`acme-${role}`, row.method, withIds(row.path, things), body);
        const [real, none] = [await ask(theirs), await ask(never)];
        expect([role, real.status, real.text.replaceAll(theirs[kind], never[kind])]).toEqual([
          role,
          none.status,
          none.text,
        ]);
        expect([200, 201, 202]).not.toContain(real.status);
      }
    }
  });

  it("named in a body", async () => {
    verifies("beyond.tenants.apart");
    const never = neverThere(theirs);
    const expires_at = new Date(s.env.now() + 3_600_000).toISOString();
    const reason = "for a reason that is long enough";
    const match = (actor: string) => ({ match: { tool: "mail.send", actor } });
    const terms = { rules: ["mails"], max_uses: 1, irreversible: true, expires_at, reason };
    const bodies: [path: string, of: (things: Things, tenant: string) => object][] = [
      ["resume", ({ halt }) => ({ id: halt })],
      ["simulate", ({ runs }) => ({ run_id: runs })],
      ["halt", (_, tenant) => ({ tenant, reason })],
      ["halt", (_, tenant) => ({ actor: `${tenant}-agent`, reason })],
      ["holds", ({ runs }) => ({ run_id: runs, reason })],
      ["holds", (_, tenant) => ({ tenant, reason })],
      ["contain", (_, tenant) => ({ actor: `${tenant}-agent`, reason, dry_run: true })],
      ["contain", (_, tenant) => ({ actor: "*", tenant, reason, dry_run: true })],
      ["grants", (_, tenant) => ({ ...match(`${tenant}-agent`), ...terms })],
      ["grants/preview", (_, tenant) => match(`${tenant}-agent`)],
      ["delegations", (_, tenant) => ({ to: `${tenant}-auditor`, expires_at, reason })],
      ["keys", (_, tenant) => ({ name: "x", role: "agent", tenant })],
    ];
    const parted: unknown[] = [];
    for (const [path, of] of bodies) {
      for (const role of ROLES) {
        const ask = async (things: Things, tenant: string) => {
          const { status, text } = await s.call(`acme-${role}`, "POST", `/v1/${path}`, of(things, tenant));
          const named = text
            .replaceAll(things.halt, "<halt>")
            .replaceAll(things.runs, "<run>")
            .replaceAll(tenant, "<tenant>");
          return `${status} ${named.replace(/[a-z]+_[0-9a-f]{8}-[-0-9a-f]{27}|"[0-9a-zA-Z_-]{32,}"/g, "<id>")}`;
        };
        const [real, none] = [await ask(theirs, NEIGHBOUR), await ask(never, "nosuch")];
        if (real !== none) parted.push([path, role, ...difference(real, none)]);
      }
    }
    expect(parted).toEqual([]);
  });
});

it("a name that a neighbour has is taken, and stays the neighbour's", async () => {
  verifies("beyond.tenants.names");
  const theirRun = async () => (await s.call(`${NEIGHBOUR}-auditor`, "GET", `/v1/runs/${theirs.runs}`)).text;
  const it = await theirRun();
  for (const run_id of [theirs.runs, `${NEIGHBOUR}-2`]) {
    const opened = await s.call("acme-agent", "POST", "/v1/runs", { run_id, permissions: ["p"] });
    expect([run_id, opened.status]).toEqual([run_id, 409]);
  }
  expect(await theirRun()).toBe(it);
  for (const name of [`${NEIGHBOUR}-auditor`, "admin"]) {
    const made = await s.call("acme-admin", "POST", "/v1/keys", { name, role: "agent" });
    expect([made.status, made.body.error]).toEqual([409, `the name ${name} is taken; choose another`]);
  }
  const { status } = await s.call("acme-admin", "POST", "/v1/keys", { name: "acme-agent", role: "agent" });
  expect(status).toBe(201);
});

/** As little as possible, and what would do. */
function bodiesOf(row: HttpRow): (object | undefined)[] {
  if (!row.body) return [undefined];
  const reason = "for a reason that is long enough";
  const call = { tool: "crm.get", args: { n: 1 }, reason };
  return [
    {},
    { reason },
    call,
    { reason, calls: [call] },
    { note: reason },
    { text: reason },
    { to: reason },
    { status: "succeeded", result: {} },
    { status: "succeeded", note: reason },
    { dry_run: true },
  ];
}

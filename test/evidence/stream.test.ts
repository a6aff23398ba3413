/** The ledger as a stream: to a file, a real HTTP receiver and real syslog receivers, through outages. */
import { createHash } from "node:crypto";
import { createSocket } from "node:dgram";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer as createHttp } from "node:http";
import { type AddressInfo, createServer as createTcp } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hmacHex } from "../../src/kernel/hash.ts";
import { EVENT_NAMES } from "../../src/ledger/events.ts";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { ROOT } from "../support/files.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const folder = tempDir("stream");
const hooks: { body: string; headers: Record<string, unknown> }[] = [];
let isDown = true;
const tcp: string[] = [];
const udp: string[] = [];
const store = new MemoryStore();
let server: TestServer;

const hook = createHttp((request, response) => {
  let body = "";
  request.setEncoding("utf8").on("data", (part: string) => {
    body += part;
  });
  request.on("end", () => {
    if (!isDown) hooks.push({ body, headers: request.headers });
    response.writeHead(isDown ? 503 : 200).end();
  });
});
/** Octet-counted frames, as RFC 6587 has them. */
const syslog = createTcp({ allowHalfOpen: true }, (socket) => {
  const parts: Buffer[] = [];
  socket.on("data", (part) => parts.push(part));
  socket.on("end", () => {
    let rest = Buffer.concat(parts);
    while (rest.length > 0) {
      const space = rest.indexOf(0x20);
      const length = Number(rest.subarray(0, space));
      tcp.push(rest.subarray(space + 1, space + 1 + length).toString());
      rest = rest.subarray(space + 1 + length);
    }
    socket.end();
  });
});
const datagrams = createSocket("udp4").on("message", (message) => udp.push(message.toString()));

const portOf = (listener: { address(): unknown }) => (listener.address() as AddressInfo).port;
const config = () => `
export:
  sinks:
    - {type: file, path: out.jsonl}
    - {type: file, path: out.cef, format: cef}
    - {type: file, path: out.ocsf, format: ocsf}
    - {type: webhook, url: "http://127.0.0.1:${portOf(hook)}/in", secret: s3cret}
    - {type: syslog, host: 127.0.0.1, port: ${portOf(syslog)}, protocol: tcp, format: cef}
    - {type: syslog, host: 127.0.0.1, port: ${portOf(datagrams)}, protocol: udp, format: jsonl}
`;

beforeAll(async () => {
  await new Promise<void>((resolve) => hook.listen(0, "127.0.0.1", resolve));
  await new Promise<void>((resolve) => syslog.listen(0, "127.0.0.1", resolve));
  await new Promise<void>((resolve) => datagrams.bind(0, "127.0.0.1", resolve));
  server = await testServer({ store, config: config() });
});
afterAll(() => {
  hook.close();
  syslog.close();
  datagrams.close();
});

async function calls(run_id: string, count: number): Promise<void> {
  await server.call("agent", "POST", "/v1/runs", { run_id, permissions: ["crm.read"] });
  for (let n = 0; n < count; n++)
    await server.call("agent", "POST", `/v1/runs/${run_id}/intents`, {
      tool: n % 2 === 0 ? "crm.get" : "a|b=c\\d",
      args: { n },
      reason: "two\nlines",
    });
}

const ledger = () => store.records({ limit: 10_000 });
const linesOf = (name: string) => {
  const path = join(server.folder, name);
  return existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : [];
};
const posted = () => hooks.flatMap(({ body }) => body.split("\n").slice(0, -1));

describe("the stream", () => {
  it("brings every record, in order, to files and syslog, while another sink is down", async () => {
    verifies("beyond.stream.file", "beyond.stream.syslog", "beyond.stream.formats", "beyond.stream.apart");
    await calls("r1", 150);
    const wanted = await ledger();
    await until(() => linesOf("out.jsonl").length === wanted.length, "the file");
    expect(linesOf("out.jsonl")).toEqual(wanted);
    await until(() => tcp.length === wanted.length && linesOf("out.cef").length === wanted.length, "CEF");
    const seqs = (lines: readonly string[]) => lines.map((line) => Number(/externalId=(\d+)/.exec(line)![1]));
    expect(seqs(linesOf("out.cef"))).toEqual(wanted.map((_, seq) => seq));
    expect(linesOf("out.cef")[1]).toMatch(
      /^CEF:0\|takeback\|svc\|[^|]+\|blocked\|call refused\|4\|externalId=1 rt=\d+ suser=agent act=blocked request=a\|b\\=c\\\\d /,
    );
    expect(tcp[3]).toMatch(
      /^<\d+>1 2026-06-15T12:00:00\.\d{3}Z \S+ svc - blocked \[svc@32473 seq="3" hash="[0-9a-f]{64}"\] CEF:0\|/,
    );
    await until(() => udp.length > 0, "a datagram");
    expect(udp[0]).toContain(wanted[0]!);
    expect(hooks).toEqual([]);
  });

  it("catches a sink up from the ledger once it is there, without a gap", async () => {
    verifies("beyond.stream.webhook", "beyond.stream.caught-up");
    isDown = false;
    server.env.advance(120_000);
    const wanted = await ledger();
    await until(() => {
      server.env.advance(60_000);
      return new Set(posted()).size === wanted.length;
    }, "the webhook");
    // At least once: new records come in order.
    expect([...new Set(posted())]).toEqual(wanted);
    const { body, headers } = hooks[0]!;
    expect(headers["x-svc-signature"]).toBe(`sha256=${hmacHex("s3cret", body)}`);
    expect([headers["x-svc-first-seq"], headers["content-type"]]).toEqual(["0", "application/x-ndjson"]);
  });

  it("continues where it was after a restart", async () => {
    verifies("beyond.stream.caught-up");
    const before = (await ledger()).length;
    await until(() => linesOf("out.ocsf").length === before, "the third file");
    await server.app.background.stop(1_000);
    await calls("r2", 5);
    writeFileSync(join(folder, "again"), "");
    hooks.length = 0;
    const again = await testServer({ store, config: config() });
    again.env.advance(600_000);
    const wanted = await ledger();
    await until(() => {
      again.env.advance(60_000);
      return posted().includes(wanted.at(-1)!);
    }, "the webhook after the restart");
    expect(posted()[0]).toBe(wanted[before]);
  });

  it("writes OCSF events that the published schema accepts, and that carry the chain", async () => {
    verifies("beyond.stream.ocsf-valid");
    const schema = JSON.parse(
      readFileSync(join(ROOT, "test/golden/ocsf/api_activity.json"), "utf8"),
    ) as Schema;
    const events = linesOf("out.ocsf").map((line) => JSON.parse(line) as Record<string, never>);
    expect(events.length).toBeGreaterThan(100);
    let prev = "0".repeat(64);
    for (const event of events) {
      expect(problemsOf(event, schema.class.attributes, schema)).toEqual([]);
      const { raw_data, raw_data_hash, type_uid, activity_id, metadata } = event as unknown as Ocsf;
      expect(type_uid).toBe(6_003 * 100 + activity_id);
      expect(createHash("sha256").update(raw_data).digest("hex")).toBe(raw_data_hash.value);
      expect(JSON.parse(raw_data)).toMatchObject({ prev, seq: metadata.sequence });
      prev = raw_data_hash.value;
    }
    expect(problemsOf({ ...events[0], x: 1 }, schema.class.attributes, schema)).toEqual([
      "x is no attribute",
    ]);
  });

  it("grades every event that the ledger knows, a containment as a halt", async () => {
    verifies("beyond.stream.severities");
    const full = new MemoryStore();
    await full.transact({
      run(tx) {
        for (const event of EVENT_NAMES) tx.append({ ts_ms: 1, event, actor: "somebody" });
      },
    });
    const sinks = `
export:
  sinks:
    - {type: file, path: all.ocsf, format: ocsf}
    - {type: file, path: all.cef, format: cef}
`;
    const graded = await testServer({ store: full, config: sinks });
    const read = (name: string) => {
      const path = join(graded.folder, name);
      return existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : [];
    };
    await until(() => read("all.ocsf").length === EVENT_NAMES.length, "the events");
    await until(() => read("all.cef").length === EVENT_NAMES.length, "the same in CEF");
    const events = read("all.ocsf").map((line) => JSON.parse(line) as Graded);
    const severity = Object.fromEntries(events.map((one) => [one.metadata.event_code, one.severity_id]));
    expect(Object.keys(severity)).toEqual([...EVENT_NAMES]);
    expect(severity).toMatchObject({
      halted: 4,
      contained: 4,
      drill_failed: 3,
      compensation_failed: 3,
      plan_denied: severity["denied"],
      granted: 2,
      delegated: 2,
      policy_activated: 2,
      resumed: 3,
      drill_passed: 1,
      intended: 1,
    });
    const status = Object.fromEntries(events.map((one) => [one.metadata.event_code, one.status_id]));
    expect(status).toMatchObject({ drill_failed: 2, plan_denied: 2, drill_passed: 1, plan_approved: 1 });
    const contained = read("all.cef").find((line) => line.includes("|contained|"));
    expect(contained).toMatch(/\|contained\|agent contained\|8\|/);
  });
});

interface Graded {
  severity_id: number;
  status_id: number;
  metadata: { event_code: string };
}

interface Ocsf {
  raw_data: string;
  raw_data_hash: { value: string };
  type_uid: number;
  activity_id: number;
  metadata: { sequence: number };
}
type Attributes = Record<
  string,
  { requirement?: string; enum?: number[]; type?: string; is_array?: boolean }
>;
interface Schema {
  class: { attributes: Attributes };
  objects: Record<string, { attributes: Attributes; constraints: { at_least_one?: string[] } }>;
}

/** The schema's complaints about a value: names, required members, enumerations, constraints, at every depth. */
function problemsOf(value: Record<string, unknown>, attributes: Attributes, schema: Schema): string[] {
  const found: string[] = [];
  for (const [name, { requirement }] of Object.entries(attributes))
    if (requirement === "required" && value[name] === undefined) found.push(`${name} is missing`);
  for (const [name, one] of Object.entries(value)) {
    const known = attributes[name];
    if (known === undefined) {
      found.push(`${name} is no attribute`);
      continue;
    }
    if (known.enum !== undefined && name !== "type_uid" && !known.enum.includes(one as number))
      found.push(`${name} is none of ${known.enum}`);
    const inner = known.type === undefined ? undefined : schema.objects[known.type];
    if (inner === undefined) {
      if (known.type?.endsWith("_t") && typeof one === "object") found.push(`${name} is no ${known.type}`);
      continue;
    }
    const { at_least_one } = inner.constraints;
    if (at_least_one !== undefined && !at_least_one.some((field) => field in (one as object)))
      found.push(`${name} has none of ${at_least_one}`);
    found.push(...problemsOf(one as Record<string, unknown>, inner.attributes, schema));
  }
  return found;
}

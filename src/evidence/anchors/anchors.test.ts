import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { freshKey } from "../../../test/evidence/support/bundles.ts";
import { drafts, storeOf } from "../../../test/evidence/support/ledgers.ts";
import { fakeEnv } from "../../../test/support/env.ts";
import { tempDir, tempFile } from "../../../test/support/tmp.ts";
import { until } from "../../../test/support/until.ts";
import { verifies } from "../../../test/support/verifies.ts";
import type { AnchorSink } from "../../config/sections/operations.ts";
import { createEgress, type EgressClient, type EgressRequest } from "../../egress/egress.ts";
import { hmacHex } from "../../kernel/hash.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import type { MemoryStore } from "../../store/memory/store.ts";
import { type ServiceLogger, silentLogger } from "../../telemetry/log.ts";
import { verifySignature } from "../signing.ts";
import { verifyStoreLedger } from "../verify-ledger.ts";
import { anchorLine, type LedgerAnchor, makeAnchor } from "./anchor.ts";
import { verifyAnchors } from "./anchor-verify.ts";
import { anchorNow, startAnchoring } from "./anchoring.ts";
import { sendAnchor } from "./sinks.ts";

const key = freshKey();
const publishAnchor = (anchor: LedgerAnchor, sinks: readonly AnchorSink[], through: EgressClient) =>
  sendAnchor(anchor, sinks, through, async () => {});
const egress = createEgress({ block_private: false });
afterAll(() => egress.close());
const at = (ms: number, more: { region?: string; signed?: boolean } = {}) => ({
  now: () => ms,
  region: more.region ?? null,
  signing: more.signed === false ? null : key,
});

function check(
  store: MemoryStore,
  lines: readonly (LedgerAnchor | string)[],
  keys: readonly (typeof key)[] = [key],
) {
  const text = lines.map((line) => `${typeof line === "string" ? line : anchorLine(line)}\n`).join("");
  const trusted = new Map(keys.map((one) => [one.key_id, one]));
  return verifyAnchors(
    tempFile("anchors.jsonl", text),
    (sizes) => verifyStoreLedger(store, { sizes }),
    trusted,
  );
}

const problems = async (...args: Parameters<typeof check>) =>
  (await check(...args)).findings.map(({ problem }) => problem);

describe("an anchor", () => {
  it(`is one line with the documented fields, in the documented words ${verifies(
    "ops.anchor.one-line",
    "ops.anchor.format",
    "ops.anchor.ts-ms",
    "ops.anchor.head",
    "ops.anchor.records",
    "contract.anchor.tree",
  )}`, async () => {
    const store = await storeOf(drafts(1, 9));
    const anchor = await makeAnchor(store, at(5, { signed: false }));
    expect(anchorLine(anchor)).not.toContain("\n");
    expect(Object.keys(JSON.parse(anchorLine(anchor)))).toEqual([
      "format",
      "version",
      "ts_ms",
      "head",
      "records",
      "tree",
    ]);
    const { hash } = await store.head();
    expect(anchor).toMatchObject({
      format: "svc-anchor",
      version: 1,
      ts_ms: 5,
      head: hash,
      records: 9,
      tree: { size: 9 },
    });
    expect(await makeAnchor(await storeOf([]), at(5, { signed: false }))).toMatchObject({
      records: 0,
      head: "0".repeat(64),
    });
  });

  it(`has a region and a signature only where they are configured ${verifies(
    "ops.anchor.region",
    "ops.anchor.signed-with-key",
    "ops.egress.region-evidence",
    "contract.anchor.domain",
    "ops.evidence.one-key",
  )}`, async () => {
    const store = await storeOf(drafts(1, 9));
    const { signature, ...signed } = await makeAnchor(store, at(5, { region: "eu-1" }));
    expect(Object.keys(signed)).toEqual([
      "format",
      "version",
      "ts_ms",
      "head",
      "records",
      "region",
      "tree",
      "key_id",
    ]);
    expect(signed).toMatchObject({ region: "eu-1", key_id: key.key_id });
    expect(verifySignature(key, "anchor", signed as unknown as JsonValue, signature!)).toBe(true);
    expect(verifySignature(key, "bundle", signed as unknown as JsonValue, signature!)).toBe(false);
  });

  it("is not made of a ledger that does not verify", async () => {
    const store = await storeOf(drafts(1, 9));
    const records = store.records.bind(store);
    store.records = async (query) =>
      (await records(query)).map((line) => line.replace('"seq":4,', '"seq":5,'));
    await expect(makeAnchor(store, at(5))).rejects.toThrow("does not verify at record 4");
  });
});

describe("sinks", () => {
  it(`file: one line for each anchor ${verifies("ops.anchoring.file-sink")}`, async () => {
    const store = await storeOf(drafts(1, 3));
    const path = join(tempDir(), "anchors.jsonl");
    const anchors = [await makeAnchor(store, at(1)), await makeAnchor(store, at(2))];
    for (const anchor of anchors) {
      expect(await publishAnchor(anchor, [{ type: "file", path }], egress)).toEqual([
        { type: "file", target: path, ok: true, error: null },
      ]);
    }
    expect(readFileSync(path, "utf8")).toBe(anchors.map((anchor) => `${anchorLine(anchor)}\n`).join(""));
    appendFileSync(path, '{"torn');
    await publishAnchor(anchors[0]!, [{ type: "file", path }], egress);
    expect(readFileSync(path, "utf8").split("\n").slice(2)).toEqual(['{"torn', anchorLine(anchors[0]!), ""]);
    await Promise.all(
      Array.from({ length: 20 }, () => publishAnchor(anchors[1]!, [{ type: "file", path }], egress)),
    );
    expect(readFileSync(path, "utf8").split("\n").slice(4, -1)).toEqual(
      Array(20).fill(anchorLine(anchors[1]!)),
    );
  });

  it("file: says why it cannot be written", async () => {
    const folder = tempDir();
    mkdirSync(join(folder, "d"));
    execFileSync("mkfifo", [join(folder, "pipe")]);
    const anchor = await makeAnchor(await storeOf([]), at(1));
    const to = (...paths: string[]): AnchorSink[] => paths.map((path) => ({ type: "file", path }));
    const results = await publishAnchor(
      anchor,
      to(join(folder, "d"), join(folder, "no", "x"), join(folder, "pipe")),
      egress,
    );
    expect(results.map(({ ok, error }) => [ok, error?.replace(/^.*?: /, "")])).toEqual([
      [false, "is a directory, not a file"],
      [false, "does not exist"],
      [false, "is a named pipe, not a file"],
    ]);
  });

  it(`webhook: posts the anchor, signed with the secret ${verifies("ops.anchoring.webhook-sink", "ops.anchoring.webhook-signed")}`, async () => {
    const got: { headers: Record<string, unknown>; body: string; method: string | undefined }[] = [];
    const server = createServer(async (request, response) => {
      let body = "";
      for await (const part of request) body += part;
      got.push({ headers: request.headers, body, method: request.method });
      response.statusCode = request.url === "/bad" ? 500 : 204;
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const anchor = await makeAnchor(await storeOf(drafts(1, 3)), at(1));
    const results = await publishAnchor(
      anchor,
      [
        { type: "webhook", url: `${base}/anchors`, secret: "s3cret" },
        { type: "webhook", url: `${base}/plain?key=k3y`, secret: null },
        { type: "webhook", url: `${base}/bad`, secret: null },
      ],
      egress,
    );
    server.close();
    expect(results).toEqual([
      { type: "webhook", target: `${base}/********`, ok: true, error: null },
      { type: "webhook", target: `${base}/********`, ok: true, error: null },
      { type: "webhook", target: `${base}/********`, ok: false, error: "the webhook answered 500" },
    ]);
    const signatures = got.map(({ headers }) => headers["x-svc-signature"]);
    expect(signatures).toContain(`sha256=${hmacHex("s3cret", anchorLine(anchor))}`);
    expect(signatures.filter((one) => one === undefined)).toHaveLength(2);
    for (const { body, method, headers } of got) {
      expect([method, headers["content-type"], body]).toEqual([
        "POST",
        "application/json",
        anchorLine(anchor),
      ]);
    }
  });

  it(`webhook: goes through the egress guard, with ten seconds of time ${verifies(
    "ops.anchoring.webhook-guarded",
    "ops.anchoring.webhook-timeout",
    "ops.egress.covers-anchors",
  )}`, async () => {
    const guarded = createEgress({ block_private: true });
    const anchor = await makeAnchor(await storeOf([]), at(1));
    const sink: AnchorSink = { type: "webhook", url: "http://127.0.0.1:9/hook", secret: null };
    const [result] = await publishAnchor(anchor, [sink], guarded);
    await guarded.close();
    expect(result).toMatchObject({
      ok: false,
      error: expect.stringContaining('egress rule "private" refuses 127.0.0.1'),
    });
    const asked: EgressRequest[] = [];
    const recording = {
      async request(_: string, options: EgressRequest) {
        asked.push(options);
        return { status: 200 };
      },
    };
    await publishAnchor(anchor, [{ ...sink, secret: "s" }], recording as unknown as EgressClient);
    expect(asked[0]).toMatchObject({ timeout_ms: 10_000, secret_headers: ["x-svc-signature"] });
  });
});

describe("anchoring", () => {
  const parts = async (sinks: AnchorSink[], log: ServiceLogger = silentLogger) => ({
    store: await storeOf(drafts(1, 3)),
    env: fakeEnv({ now: 1_000 }),
    egress,
    signing: key,
    region: null,
    origin: null,
    sinks,
    interval_ms: 3_600_000,
    log,
  });

  it(`happens at the start and at every interval, until it is stopped ${verifies(
    "ops.anchoring.at-start",
    "ops.anchoring.every-interval",
  )}`, async () => {
    const path = join(tempDir(), "a.jsonl");
    const all = await parts([{ type: "file", path }]);
    const stop = new AbortController();
    const running = startAnchoring(all, stop.signal);
    const times = () =>
      readFileSync(path, "utf8")
        .trim()
        .split("\n")
        .map((line) => (JSON.parse(line) as LedgerAnchor).ts_ms);
    await until(() => all.env.sleepers === 1, "the wait for the next anchor");
    expect(times()).toEqual([1_000]);
    await all.env.advance(3_600_000);
    await until(() => all.env.sleepers === 1, "the wait for the next anchor");
    expect(times()).toEqual([1_000, 3_601_000]);
    stop.abort();
    await running;
    await all.env.advance(36_000_000);
    expect(times()).toHaveLength(2);
  });

  it(`loses no sink for another's failure, and says what failed ${verifies(
    "ops.anchoring.failing-sink",
    "ops.error.side-channels-anchor",
  )}`, async () => {
    const folder = tempDir();
    const path = join(folder, "good.jsonl");
    const warnings: [string, unknown][] = [];
    const log: ServiceLogger = { ...silentLogger, warn: (msg, fields) => void warnings.push([msg, fields]) };
    const all = await parts(
      [
        { type: "file", path: join(folder, "no", "x") },
        { type: "file", path },
      ],
      log,
    );
    const stop = new AbortController();
    const running = startAnchoring(all, stop.signal);
    await until(() => all.env.sleepers === 1, "the wait for the next anchor");
    stop.abort();
    await running;
    expect(readFileSync(path, "utf8").split("\n")).toHaveLength(2);
    expect(warnings).toEqual([
      [
        "an anchor could not be delivered",
        { sink: "file", target: join(folder, "no", "x"), error: expect.stringContaining("does not exist") },
      ],
    ]);
  });

  it("survives a ledger that cannot be read, and does nothing without sinks", async () => {
    const warnings: string[] = [];
    const log: ServiceLogger = { ...silentLogger, warn: (msg) => void warnings.push(msg) };
    const all = await parts([{ type: "file", path: join(tempDir(), "a") }], log);
    await all.store.close();
    const stop = new AbortController();
    const running = startAnchoring(all, stop.signal);
    await until(() => all.env.sleepers === 1, "the wait for the next anchor");
    stop.abort();
    await running;
    expect(warnings).toEqual(["the ledger could not be anchored"]);
    await startAnchoring({ ...all, sinks: [] }, new AbortController().signal);
  });

  it("on demand answers with the anchor and each sink", async () => {
    const path = join(tempDir(), "a.jsonl");
    const published = await anchorNow(await parts([{ type: "file", path }]), "ann");
    expect(published.sinks).toEqual([{ type: "file", target: path, ok: true, error: null }]);
    expect(readFileSync(path, "utf8")).toBe(`${anchorLine(published.anchor)}\n`);
  });
});

describe("holding a ledger against its anchors", () => {
  const grow = async (store: MemoryStore, count: number) =>
    store.transact({
      run(tx) {
        for (let i = 0; i < count; i++) tx.append({ ts_ms: 1, event: "reloaded", actor: "x" });
      },
    });

  it(`accepts every anchor of a ledger that only grew ${verifies("contract.anchor.consistency", "ops.anchor-verify.same-hash")}`, async () => {
    const store = await storeOf([]);
    const anchors: LedgerAnchor[] = [];
    for (const count of [0, 1, 4, 0, 30]) {
      await grow(store, count);
      anchors.push(await makeAnchor(store, at(anchors.length)));
    }
    const { findings, ledger } = await check(store, anchors);
    expect(ledger).toMatchObject({ records: 35, first_bad: null });
    expect(findings.map(({ ts_ms, records, trust, problem }) => [ts_ms, records, trust, problem])).toEqual(
      [0, 1, 5, 5, 35].map((records, i) => [i, records, "trusted", null]),
    );
  });

  it(`finds a ledger that was cut ${verifies("ops.anchor-verify.enough-records", "ops.anchor.truncated-message")}`, async () => {
    const anchor = await makeAnchor(await storeOf(drafts(1, 9)), at(1));
    expect(await problems(await storeOf(drafts(1, 7)), [anchor])).toEqual([
      "the ledger has 7 records but was anchored at 9: it has been truncated",
    ]);
    // An anchor of the fields that every anchor has says it as well.
    const { format, version, ts_ms, head, records } = anchor;
    const plain = { format, version, ts_ms, head, records } as LedgerAnchor;
    expect(await problems(await storeOf(drafts(1, 7)), [plain, { ...plain, records: 7 }], [])).toEqual([
      "the ledger has 7 records but was anchored at 9: it has been truncated",
      "history was rewritten: record 6 no longer has the anchored hash",
    ]);
    expect(await problems(await storeOf(drafts(1, 9)), [plain], [])).toEqual([null]);
  });

  it(`finds a history that was rewritten ${verifies("ops.anchor.rewritten-message")}`, async () => {
    const list = drafts(1, 9);
    const anchor = await makeAnchor(await storeOf(list), at(1));
    const other = await storeOf(
      [...list.slice(0, 4), { ...list[4]!, actor: "somebody else" }, ...list.slice(5), ...list.slice(8)].map(
        (d) => ({ ...d, run_id: undefined, run_seq: undefined }),
      ),
    );
    expect(await problems(other, [anchor])).toEqual([
      "history was rewritten: record 8 no longer has the anchored hash",
    ]);
    const tree = { size: 9, root: "0".repeat(64) };
    const { signature: _, key_id: __, ...unsigned } = { ...anchor, tree };
    expect(await problems(await storeOf(list), [unsigned as LedgerAnchor], [])).toEqual([
      "history was rewritten: the first 9 records no longer have the anchored tree root",
    ]);
  });

  it(`demands that the ledger itself verifies ${verifies("ops.anchor-verify.ledger")}`, async () => {
    const store = await storeOf(drafts(1, 9));
    const anchor = await makeAnchor(store, at(1));
    const records = store.records.bind(store);
    store.records = async (query) =>
      (await records(query)).map((line) => line.replace('"seq":4,', '"seq":5,'));
    expect(await check(store, [anchor])).toMatchObject({ findings: [], ledger: { first_bad: { seq: 4 } } });
  });

  it(`checks signatures against the trusted key ${verifies("ops.anchor-verify.trusted-key", "ops.anchor-verify.unsigned")}`, async () => {
    const store = await storeOf(drafts(1, 9));
    const signed = await makeAnchor(store, at(1));
    const unsigned = await makeAnchor(store, at(1, { signed: false }));
    const other = freshKey();
    expect(await problems(store, [signed, unsigned])).toEqual([
      null,
      "it is not signed, and a trusted key was given",
    ]);
    expect(await problems(store, [signed], [other])).toEqual([
      `it is signed with key ${key.key_id}, which is not a trusted key`,
    ]);
    expect(await problems(store, [signed], [other, key])).toEqual([null]);
    const { findings } = await check(store, [signed, unsigned], []);
    expect(findings.map(({ trust }) => trust)).toEqual(["unchecked", "unsigned"]);
    for (const changed of [
      { ts_ms: 2 },
      { region: "x" },
      { records: 8 },
      { tree: { size: 9, root: "0".repeat(64) } },
    ]) {
      expect((await problems(store, [{ ...signed, ...changed }]))[0], JSON.stringify(changed)).not.toBeNull();
    }
  });

  it("finds a later anchor with fewer records, but not one that was only written late", async () => {
    const store = await storeOf([]);
    await grow(store, 5);
    const five = await makeAnchor(store, at(10));
    await grow(store, 5);
    const ten = await makeAnchor(store, at(20));
    expect(await problems(store, [five, ten])).toEqual([null, null]);
    expect(await problems(store, [ten, five])).toEqual([null, null]);
    const late = { ...five, ts_ms: 30, signature: "", key_id: "" };
    const { signature: _, key_id: __, ...plain } = late;
    const { signature: ___, key_id: ____, ...first } = ten;
    expect(await problems(store, [first as LedgerAnchor, plain as LedgerAnchor], [])).toEqual([
      null,
      "it counts 5 records after an anchor of 10: a ledger never shrinks",
    ]);
    const back = { ...(first as LedgerAnchor), ts_ms: 1 };
    expect(await problems(store, [plain as LedgerAnchor, back], [])).toEqual([null, null]);
  });

  it.each([
    ["nothing", ""],
    ["no JSON", "hello"],
    ["a list", "[]"],
    ["another version", '{"format":"svc-anchor","version":2,"ts_ms":1,"head":"","records":0,"tree":{}}'],
  ])("does not take %s for an anchor", async (_, line) => {
    const store = await storeOf([]);
    const good = await makeAnchor(store, at(1, { signed: false }));
    const found = await problems(store, [line, good], []);
    expect(found[0]).toEqual(expect.any(String));
    expect(found[1]).toBeNull();
  });

  it("does not take an anchor with members too many, half a signature, or another layout of numbers", async () => {
    const store = await storeOf([]);
    const good = await makeAnchor(store, at(1, { signed: false }));
    const lines = [
      anchorLine({ ...good, note: "x" } as LedgerAnchor),
      anchorLine({ ...good, key_id: key.key_id }),
      anchorLine({ ...good, region: 5 } as unknown as LedgerAnchor),
      anchorLine({ ...good, tree: { size: 1, root: "0".repeat(64) } }),
      anchorLine(good).replace('"ts_ms":1', '"ts_ms":1.0'),
      `${anchorLine(good)}\r`,
      `\ufeff${anchorLine(good)}`,
    ];
    for (const line of lines) expect((await problems(store, [line], []))[0], line).not.toBeNull();
  });

  it("names a file without anchors", async () => {
    const store = await storeOf([]);
    const latin1 = join(tempDir(), "latin1");
    writeFileSync(latin1, Buffer.from([0xe9, 0x0a]));
    const run = (path: string) =>
      verifyAnchors(path, (sizes) => verifyStoreLedger(store, { sizes }), new Map());
    await expect(run(tempFile("empty", ""))).rejects.toThrow("nothing to check against");
    await expect(run("/dev/zero")).rejects.toThrow("is a device");
    await expect(run(tempDir())).rejects.toThrow("is a directory");
    await expect(run(latin1)).rejects.toThrow("is not UTF-8");
  });
});

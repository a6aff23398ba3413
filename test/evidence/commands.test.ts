import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { registerAnchor } from "../../src/cli/commands/evidence/anchor.ts";
import { registerBundle } from "../../src/cli/commands/evidence/bundle.ts";
import { registerReport } from "../../src/cli/commands/evidence/report.ts";
import { registerVerify } from "../../src/cli/commands/evidence/verify.ts";
import { registerVerifyBundle } from "../../src/cli/commands/evidence/verify-bundle.ts";
import { registerKeygen } from "../../src/cli/commands/keys/keygen.ts";
import type { RegisterCommand } from "../../src/cli/context.ts";
import { hmacHex } from "../../src/kernel/hash.ts";
import { openStore } from "../../src/store/open.ts";
import { fakeEnv } from "../support/env.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { command } from "./support/command.ts";
import { drafts } from "./support/ledgers.ts";
import { pdfText } from "./support/pdf.ts";

const folder = tempDir("evidence-cli");
const at = (name: string) => join(folder, name);
const run = (register: RegisterCommand, ...argv: string[]) =>
  command(register, argv, { cwd: folder, clock: fakeEnv({ now: Date.parse("2026-06-15T12:00:00Z") }) });
const oneLine = (text: string) => expect(text.trimEnd().split("\n"), text).toHaveLength(1);
const quiet = () => {};

async function fill(data: string, store: "files" | "sqlite", seed = 5, count = 40): Promise<void> {
  const opened = await openStore({ store, data, database_url: null, warn: quiet });
  await opened.transact({
    run(tx) {
      for (const draft of drafts(seed, count)) tx.append(draft);
    },
  });
  await opened.close();
}

beforeAll(async () => {
  await fill(at("data"), "files");
  await run(registerKeygen, "keygen", "k");
  await run(registerKeygen, "keygen", "other");
  writeFileSync(at("manifests.yaml"), "- {tool: t, effect: read, permission: p}\n");
  mkdirSync(at("folder"));
  mkdirSync(at("bare"));
  execFileSync("mkfifo", [at("pipe")]);
});

describe("svc keygen", () => {
  it(`writes both halves, and never over a key ${verifies("core.cli.keygen", "ops.evidence.keygen")}`, async () => {
    const { code, out } = await run(registerKeygen, "keygen", "fresh");
    expect(code).toBe(0);
    expect(out).toContain("fresh.key");
    expect(out).toMatch(/key id: +[0-9a-f]{16}/);
    expect(statSync(at("fresh.key")).mode & 0o777).toBe(0o600);
    expect(readFileSync(at("fresh.pub"), "utf8")).toContain("BEGIN PUBLIC KEY");
    const again = await run(registerKeygen, "keygen", "fresh");
    expect(again.code).toBe(1);
    oneLine(again.err);
    expect(again.err).toContain("never overwritten");
  });
});

describe("svc verify", () => {
  it("lists the checks, the number of records, and the head", async () => {
    const { code, out } = await run(registerVerify, "verify", "-d", "data", "--tree");
    expect(code).toBe(0);
    expect(out).toMatch(/^ok: 40 records, head [0-9a-f]{64}\n/);
    expect(out).toContain("tree root:");
    expect(out).toContain("not checked: whether records are missing at the end");
    const json = JSON.parse((await run(registerVerify, "verify", "-d", "data", "--json")).out) as object;
    expect(json).toEqual({
      ok: true,
      records: 40,
      head: expect.stringMatching(/^[0-9a-f]{64}$/),
      first_bad: null,
    });
  });

  it("names the first bad record and why, and repairs nothing", async () => {
    mkdirSync(at("bad"));
    const text = readFileSync(at("data/ledger.jsonl"), "utf8").split("\n");
    writeFileSync(
      at("bad/ledger.jsonl"),
      text.with(7, text[7]!.replace('"event":"', '"event":"x')).join("\n"),
    );
    const before = readFileSync(at("bad/ledger.jsonl"));
    const { code, out } = await run(registerVerify, "verify", "-d", "bad");
    expect(code).toBe(1);
    expect(out).toContain("INVALID: record 7: its hash does not match what it says: it was changed");
    expect(out).toContain("the 7 records before it are sound");
    expect(readFileSync(at("bad/ledger.jsonl")).equals(before)).toBe(true);
    expect(existsSync(at("bad/lock.db"))).toBe(false);
    const json = JSON.parse((await run(registerVerify, "verify", "-d", "bad", "--json")).out) as object;
    expect(json).toMatchObject({ ok: false, first_bad: { seq: 7 } });
  });

  it("names a torn last line", async () => {
    mkdirSync(at("torn"));
    writeFileSync(at("torn/ledger.jsonl"), `${readFileSync(at("data/ledger.jsonl"), "utf8")}{"actor":"x`);
    const { code, out } = await run(registerVerify, "verify", "-d", "torn");
    expect(code).toBe(1);
    expect(out).toContain("INVALID: record 40: the last line is torn");
  });

  it("verifies a sqlite store without opening it for writing", async () => {
    await fill(at("lite"), "sqlite");
    const { code, out } = await run(registerVerify, "verify", "-d", "lite", "--store", "sqlite");
    expect([code, out.split("\n")[0]]).toEqual([0, expect.stringMatching(/^ok: 40 records/)]);
    const none = await run(registerVerify, "verify", "-d", "folder", "--store", "sqlite");
    expect(none.code).toBe(1);
    oneLine(none.err);
    writeFileSync(at("folder/svc.db"), "no database");
    expect((await run(registerVerify, "verify", "-d", "folder", "--store", "sqlite")).err).toContain(
      "is not the database",
    );
  });

  it.each([
    ["no ledger", "bare", "does not exist"],
    ["no folder", "nowhere", "does not exist"],
  ])("refuses %s in one line", async (_, data, why) => {
    const { code, err } = await run(registerVerify, "verify", "-d", data);
    expect(code).toBe(1);
    oneLine(err);
    expect(err).toContain(why);
    expect(existsSync(at("nowhere"))).toBe(false);
  });
});

describe("svc bundle and svc verify-bundle", () => {
  it(`write a bundle of the whole ledger, and verify it ${verifies(
    "ops.evidence.bundle-whole",
    "ops.evidence.verify-pub",
    "ops.evidence.verify-no-pub",
  )}`, async () => {
    const wrote = await run(registerBundle, "bundle", "-d", "data", "--key", "k.key", "--out", "all.json");
    expect([wrote.code, wrote.err]).toEqual([0, ""]);
    expect(wrote.out).toMatch(
      /all\.json: the whole ledger, 40 records, ledger head [0-9a-f]{64}, signed with key/,
    );
    const trusted = await run(
      registerVerifyBundle,
      "verify-bundle",
      "all.json",
      "--pub",
      "other.pub",
      "--pub",
      "k.pub",
    );
    expect(trusted.code).toBe(0);
    expect(trusted.out).toContain("ok: a bundle of the whole ledger: 40 records");
    expect(trusted.out).toContain("which you trust");
    expect(trusted.out).not.toContain("not checked");
    const alone = await run(registerVerifyBundle, "verify-bundle", "all.json");
    expect(alone.code).toBe(0);
    expect(alone.out).toContain("the key was not checked against a trusted key");
    const stranger = await run(registerVerifyBundle, "verify-bundle", "all.json", "--pub", "other.pub");
    expect([stranger.code, stranger.out]).toEqual([
      1,
      expect.stringMatching(/^INVALID: it is signed with key/),
    ]);
  });

  it(`write a bundle of one run; a changed one is INVALID ${verifies("ops.evidence.bundle-run", "ops.evidence.verify-invalid")}`, async () => {
    const run_id = drafts(5, 40).find((draft) => draft.run_id !== undefined)!.run_id!;
    const env = { SVC_SIGNING_KEY: "k.key" };
    const wrote = await command(
      registerBundle,
      ["bundle", "-d", "data", "--run", run_id, "--out", "run.json"],
      { cwd: folder, env },
    );
    expect([wrote.code, wrote.err]).toEqual([0, ""]);
    const good = await run(registerVerifyBundle, "verify-bundle", "run.json", "--pub", "k.pub", "--json");
    expect(JSON.parse(good.out)).toMatchObject({
      ok: true,
      report: { kind: "run", run_id, trust: "trusted" },
    });
    writeFileSync(
      at("changed.json"),
      readFileSync(at("run.json"), "utf8").replace('"event":"', '"event":"x'),
    );
    const bad = await run(registerVerifyBundle, "verify-bundle", "changed.json", "--pub", "k.pub");
    expect([bad.code, bad.out]).toEqual([
      1,
      expect.stringMatching(/^INVALID: record \d+: its hash does not match/),
    ]);
    oneLine(bad.out);
  });

  it.each([
    ["no key", ["--out", "x.json"], "no signing key"],
    ["a public key", ["--key", "k.pub", "--out", "x.json"], "give the .key file"],
    ["a key that is a folder", ["--key", "folder", "--out", "x.json"], "is a directory"],
    ["a key that is a pipe", ["--key", "pipe", "--out", "x.json"], "is a named pipe"],
    ["an unknown run", ["--key", "k.key", "--out", "x.json", "--run", "nobody"], "unknown run nobody"],
    ["a folder to write to", ["--key", "k.key", "--out", "folder"], "is a directory"],
    ["no such folder to write to", ["--key", "k.key", "--out", "no/x.json"], "does not exist"],
  ])("refuse %s in one line", async (_, more, why) => {
    const { code, err } = await run(registerBundle, "bundle", "-d", "data", ...more);
    expect(code).toBe(1);
    oneLine(err);
    expect(err).toContain(why);
    expect(existsSync(at("x.json"))).toBe(false);
  });

  it.each([
    [["missing.json"], "does not exist"],
    [["folder"], "is a directory"],
    [["pipe"], "is a named pipe"],
    [["/dev/zero"], "is a device"],
    [["all.json", "--pub", "k.key"], "give the .pub file"],
    [["all.json", "--pub", "missing.pub"], "does not exist"],
  ])("refuse to verify %j in one line", async (argv, why) => {
    const { code, err, out } = await run(registerVerifyBundle, "verify-bundle", ...argv);
    expect([code, out]).toEqual([1, ""]);
    oneLine(err);
    expect(err).toContain(why);
  });

  it("make no new data folder by mistake", async () => {
    const { code, err } = await run(
      registerBundle,
      "bundle",
      "-d",
      "typo",
      "--key",
      "k.key",
      "--out",
      "x.json",
    );
    expect([code, err]).toEqual([1, expect.stringContaining("is not a data directory")]);
    expect(existsSync(at("typo"))).toBe(false);
  });
});

describe("svc anchor", () => {
  it(`publishes to the given sinks, signed, and verifies line by line ${verifies(
    "ops.anchor-publish.options",
    "ops.anchor-verify.ok-line",
    "ops.anchoring.file-sink",
  )}`, async () => {
    const got: { body: string; signature: unknown }[] = [];
    const server = createServer(async (request, response) => {
      let body = "";
      for await (const part of request) body += part;
      got.push({ body, signature: request.headers["x-svc-signature"] });
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
    const argv = [
      "anchor",
      "publish",
      "-d",
      "data",
      "--key",
      "k.key",
      "--file",
      "anchors.jsonl",
      "--webhook",
      url,
      "--secret",
      "s",
    ];
    const { code, out } = await run(registerAnchor, ...argv);
    server.close();
    expect(code).toBe(0);
    expect(out).toMatch(
      /^anchored 40 records, head [0-9a-f]{64}, signed with key [0-9a-f]{16}\n {2}file .*ok\n {2}webhook .*ok\n$/,
    );
    expect(`${got[0]!.body}\n`).toBe(readFileSync(at("anchors.jsonl"), "utf8"));
    expect(got[0]!.signature).toBe(`sha256=${hmacHex("s", got[0]!.body)}`);
    const verified = await run(
      registerAnchor,
      "anchor",
      "verify",
      "anchors.jsonl",
      "--pub",
      "k.pub",
      "-d",
      "data",
    );
    expect(verified.code).toBe(0);
    expect(verified.out).toMatch(
      /^2026-06-15T12:00:00.000Z {2}40 records {2}ok\nok: 1 anchor holds for the ledger of 40 records/,
    );
    const alone = await run(registerAnchor, "anchor", "verify", "anchors.jsonl", "-d", "data");
    expect(alone.out).toContain("not checked: the signatures");
  });

  it(`uses the configured sinks, and exits 1 if any failed ${verifies(
    "ops.anchor-publish.configured",
    "ops.anchor-publish.exit-1",
    "ops.error.anchor-command",
  )}`, async () => {
    const sinks = "[{type: file, path: configured.jsonl}, {type: file, path: no/x}]";
    writeFileSync(at("svc.config.yaml"), `data: data\nanchor: {sinks: ${sinks}}\negress: {region: eu-9}\n`);
    const { code, out } = await run(registerAnchor, "anchor", "publish", "--config", "svc.config.yaml");
    expect(code).toBe(1);
    expect(out).toMatch(/unsigned/);
    expect(out).toMatch(/configured\.jsonl +ok/);
    expect(out).toMatch(/x +FAILED: .*does not exist/);
    expect(JSON.parse(readFileSync(at("configured.jsonl"), "utf8"))).toMatchObject({
      format: "svc-anchor",
      region: "eu-9",
    });
    writeFileSync(at("svc.config.yaml"), "");
  });

  it(`fails for a ledger that was cut or rewritten ${verifies(
    "ops.anchor-verify.exit-1",
    "ops.anchor.truncated-message",
    "ops.anchor.rewritten-message",
    "ops.anchor-verify.unsigned",
  )}`, async () => {
    await run(registerAnchor, "anchor", "publish", "-d", "data", "--file", "unsigned.jsonl");
    mkdirSync(at("cut"));
    const lines = readFileSync(at("data/ledger.jsonl"), "utf8").split("\n");
    writeFileSync(at("cut/ledger.jsonl"), `${lines.slice(0, 30).join("\n")}\n`);
    const cut = await run(registerAnchor, "anchor", "verify", "unsigned.jsonl", "-d", "cut");
    expect([cut.code, cut.out]).toEqual([
      1,
      expect.stringContaining("the ledger has 30 records but was anchored at 40: it has been truncated"),
    ]);
    await fill(at("rewritten"), "files", 6);
    const rewritten = await run(registerAnchor, "anchor", "verify", "unsigned.jsonl", "-d", "rewritten");
    expect([rewritten.code, rewritten.out]).toEqual([1, expect.stringContaining("history was rewritten")]);
    const unsigned = await run(
      registerAnchor,
      "anchor",
      "verify",
      "unsigned.jsonl",
      "-d",
      "data",
      "--pub",
      "k.pub",
    );
    expect([unsigned.code, unsigned.out]).toEqual([1, expect.stringContaining("it is not signed")]);
    mkdirSync(at("broken"), { recursive: true });
    copyFileSync(at("data/ledger.jsonl"), at("broken/ledger.jsonl"));
    writeFileSync(
      at("broken/ledger.jsonl"),
      lines.with(3, lines[3]!.replace('"seq":3', '"seq":4')).join("\n"),
    );
    const broken = await run(registerAnchor, "anchor", "verify", "unsigned.jsonl", "-d", "broken");
    expect([broken.code, broken.out]).toEqual([
      1,
      expect.stringContaining("INVALID: the ledger does not verify at record 3"),
    ]);
  });

  it.each([
    [["publish", "-d", "data"], "no sinks"],
    [["publish", "-d", "data", "--file", "a", "--secret", "s"], "requires --webhook"],
    [["publish", "-d", "typo", "--file", "a"], "is not a data directory"],
    [["verify", "missing", "-d", "data"], "does not exist"],
    [["verify", "folder", "-d", "data"], "is a directory"],
    [["verify", "/dev/zero", "-d", "data"], "is a device"],
  ])("refuses %j in one line", async (argv, why) => {
    const { code, err } = await run(registerAnchor, "anchor", ...argv);
    expect(code).toBe(1);
    oneLine(err);
    expect(err).toContain(why);
  });
});

describe("svc report", () => {
  const run_id = drafts(5, 40).find((draft) => draft.run_id !== undefined)!.run_id!;
  const base = ["-d", "data", "-m", "manifests.yaml"];

  it(`on a run is a page or a PDF, by the file's ending ${verifies("ops.evidence.report-extension")}`, async () => {
    const page = await run(registerReport, "report", run_id, ...base, "--out", "run.html");
    expect([page.code, page.err, page.out]).toEqual([0, "", `wrote ${at("run.html")}\n`]);
    expect(readFileSync(at("run.html"), "utf8")).toContain("<h1>Run report</h1>");
    const pdf = await run(registerReport, "report", run_id, ...base, "--out", "run.PDF");
    expect([pdf.code, pdf.err]).toEqual([0, ""]);
    expect(pdfText(readFileSync(at("run.PDF")))).toContain("Run report");
    verifies("beyond.first.report");
    const printed = await run(registerReport, "report", run_id, ...base);
    expect([printed.code, printed.out]).toEqual([0, readFileSync(at("run.html"), "utf8")]);
    const asked = await run(registerReport, "report", run_id, ...base, "--format", "html");
    expect([asked.code, asked.out]).toEqual([0, printed.out]);
    const named = await run(registerReport, "report", run_id, ...base, "--format", "pdf", "--out", "paper");
    expect([named.code, named.err]).toEqual([0, ""]);
    expect(pdfText(readFileSync(at("paper")))).toContain("Run report");
  });

  it(`on a period goes to the terminal or a file, in three formats ${verifies(
    "ops.evidence.period-command",
    "ops.evidence.period-out",
    "contract.duration.since-duration",
    "contract.duration.since-date",
  )}`, async () => {
    const md = await run(registerReport, "report", "--since", "2026-01-01", ...base);
    expect([md.code, md.out]).toEqual([0, expect.stringMatching(/^# Period report/)]);
    const json = await run(registerReport, "report", "--since", "30d", "--format", "json", ...base);
    expect(JSON.parse(json.out)).toMatchObject({ format: "svc-period-report", ledger: { records: 40 } });
    const html = await run(registerReport, "report", "--since", "30d", "--out", "period.html", ...base);
    expect([html.code, html.out]).toEqual([0, `wrote ${at("period.html")}\n`]);
    expect(readFileSync(at("period.html"), "utf8")).toContain("<h1>Period report</h1>");
  });

  it.each([
    [[], "nothing to report on"],
    [[run_id, "--since", "7d"], "not both"],
    [[run_id, "--out", "x.doc"], "ends in .html or .pdf"],
    [[run_id, "--out", "x.pdf", "--format", "md"], "must be one of html, pdf"],
    [[run_id, "--out", "x.pdf", "--format", "html"], "ends in .pdf, but the format is html"],
    [[run_id, "--format", "pdf"], "required for a PDF"],
    [["nobody", "--out", "x.pdf"], "unknown run nobody"],
    [["--since", "-1d"], "neither a duration"],
    [["--since", "1e9d"], "neither a duration"],
    [["--since", "7d", "--format", "xml"], "must be one of md, html, json"],
    [["--since", "7d", "--out", "folder"], "is a directory"],
    [["--since", "7d", "--out", "x.doc"], "ends in .md, .html, .json or .pdf"],
    [["--since", "7d", "--format", "md", "--out", "x.pdf"], "ends in .pdf, but the format is md"],
  ])("refuses %j in one line", async (argv, why) => {
    const { code, err } = await run(registerReport, "report", ...argv, ...base);
    expect(code).toBe(1);
    oneLine(err);
    expect(err).toContain(why);
    expect(existsSync(at("x.pdf"))).toBe(false);
  });
});

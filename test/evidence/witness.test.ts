/** Checkpoints, witnesses and forks, as an auditor meets them: over HTTP, on the command line, in bundles. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { registerAnchor } from "../../src/cli/commands/evidence/anchor.ts";
import { registerVerifyBundle } from "../../src/cli/commands/evidence/verify-bundle.ts";
import { readSigningKey, writeKeyFiles } from "../../src/evidence/key-files.ts";
import type { SigningKey } from "../../src/evidence/signing.ts";
import { parseCheckpoint, signCheckpoint } from "../../src/evidence/witness/checkpoint.ts";
import { storeCosignatures } from "../../src/evidence/witness/cosignature-store.ts";
import { parseNote, parseVerifierKey } from "../../src/evidence/witness/note.ts";
import { LedgerProofs } from "../../src/evidence/witness/proofs.ts";
import { isConsistent, rootFromProof } from "../../src/ledger/merkle-tree.ts";
import { openStore } from "../../src/store/open.ts";
import { ROOT } from "../support/files.ts";
import { program } from "../support/programs.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { bundleOf } from "./support/bundles.ts";
import { command } from "./support/command.ts";
import { drafts, storeOf } from "./support/ledgers.ts";
import { python } from "./support/verifiers.ts";
import { servedWitness, type TestWitness, witnessOf } from "./support/witnesses.ts";

const OPENSSL = await program("openssl");

const folder = tempDir("witness-flow");
const at = (name: string) => join(folder, name);
let key: SigningKey;
let server: TestServer;
let first: TestWitness;
let second: TestWitness;

beforeAll(async () => {
  await writeKeyFiles(at("k"));
  key = readSigningKey(at("k.key"));
  first = await servedWitness(key);
  second = await servedWitness(key, undefined, "witness.example/w2");
  writeFileSync(at("second.vkey"), `${second.key}\n`);
  server = await testServer({
    config: `signing_key: ${at("k.key")}
anchor:
  interval: 7d
  sinks:
    - {type: witness, url: "${first.url}/", key: "${first.key}"}
    - {type: witness, url: "${second.url}", key: ${at("second.vkey")}}
`,
  });
  await oneCall("r1");
});

async function oneCall(run_id: string, to: TestServer = server): Promise<void> {
  await to.call("agent", "POST", "/v1/runs", { run_id, permissions: ["crm.read"] });
  await to.call("agent", "POST", `/v1/runs/${run_id}/intents`, { tool: "crm.get", args: {}, reason: "look" });
  await to.call("agent", "POST", `/v1/runs/${run_id}/steps/0/outcome`, { status: "succeeded" });
}

const events = async () =>
  (await server.app.core.store.records({ limit: 1_000 })).map(
    (line) => JSON.parse(line) as { event: string },
  );
const witnessed = async () => (await events()).filter(({ event }) => event === "witnessed").length;
const run = (...argv: string[]) => command(registerVerifyBundle, ["verify-bundle", ...argv], { cwd: folder });
const anchor = (...argv: string[]) => command(registerAnchor, ["anchor", ...argv], { cwd: folder });

/** What the page says, with the witnesses' verifier keys. */
async function page(file: string, witnesses: string[], quorum?: number): Promise<string | null> {
  const core = await import(pathToFileURL(join(ROOT, "viewer/src/verify.js")).href);
  const options = {
    trusted: [core.parsePublicKey(key.pem)],
    witnesses: witnesses.map((text) => core.parseWitness(text)),
    ...(quorum === undefined ? {} : { quorum }),
  };
  return (await core.verifyBundle(new Blob([readFileSync(file)]), options)).problem;
}

/** What each of the three says of a file. */
async function threeSay(file: string, witnesses: string[], quorum = witnesses.length): Promise<boolean[]> {
  const flags = witnesses.flatMap((one) => ["--witness", one]);
  const count = witnesses.length === 0 ? [] : ["--quorum", String(quorum)];
  const own = await run(file, "--pub", at("k.pub"), ...flags, ...count);
  const said = await python(["verify-bundle", "--pub", at("k.pub"), ...flags, ...count, file]);
  return [own.code === 0, said[0]!.startsWith("ok"), (await page(file, witnesses, quorum)) === null];
}

describe("notes", () => {
  it("of the published examples are read to the byte", () => {
    const known = parseVerifierKey(
      "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
      "key",
    );
    expect(known).toMatchObject({ name: "example.com/foo", type: 1 });
    const note = parseNote(
      "This is an example message.\n\n\u2014 example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n",
    );
    expect(note).toMatchObject({
      body: "This is an example message.\n",
      signatures: [{ key_id: "530d903a" }],
    });
  });
});

describe("the ledger's tree over HTTP", () => {
  it("is a checkpoint that openssl verifies", async () => {
    verifies("beyond.checkpoint.form", "beyond.checkpoint.origin");
    const { status, text, headers } = await server.call("auditor", "GET", "/v1/ledger/checkpoint");
    expect([status, headers["content-type"]]).toEqual([200, "text/plain; charset=utf-8"]);
    const { records } = await server.app.core.store.head();
    const [origin, size, root, empty, line] = text.split("\n");
    expect([origin, size, empty]).toEqual([`svc/${key.key_id}`, String(records), ""]);
    expect(Buffer.from(root!, "base64")).toHaveLength(32);
    const [dash, name, coded] = line!.split(" ");
    expect([dash, name]).toEqual(["\u2014", origin]);
    const bytes = Buffer.from(coded!, "base64");
    const id = createHash("sha256")
      .update(`${origin}\n`)
      .update(Buffer.from([1]))
      .update(key.raw)
      .digest();
    expect(bytes.subarray(0, 4)).toEqual(id.subarray(0, 4));
    writeFileSync(at("body"), `${origin}\n${size}\n${root}\n`);
    writeFileSync(at("sig"), bytes.subarray(4));
    const said = execFileSync(OPENSSL, [
      ..."pkeyutl -verify -pubin -rawin -inkey".split(" "),
      ...[at("k.pub"), "-sigfile", at("sig"), "-in", at("body")],
    ]);
    expect(String(said)).toContain("Verified Successfully");
    const named = await testServer({
      config: `signing_key: ${at("k.key")}\nledger_origin: example.com/log\n`,
    });
    const other = await named.call("auditor", "GET", "/v1/ledger/checkpoint");
    expect(other.text.split("\n").slice(0, 2)).toEqual(["example.com/log", "0"]);
  });

  it("is for auditors, and needs a signing key", async () => {
    verifies("beyond.checkpoint.auditor");
    const plain = await testServer();
    for (const path of ["checkpoint", "consistency?from=0", "inclusion?seq=0"]) {
      expect((await server.call("agent", "GET", `/v1/ledger/${path}`)).status).toBe(403);
      const refused = await plain.call("auditor", "GET", `/v1/ledger/${path}`);
      expect([refused.status, refused.body.error]).toEqual([404, expect.stringContaining("not enabled")]);
    }
    expect((await server.call("auditor", "GET", "/v1/ledger/checkpoint?witnessed=maybe")).status).toBe(400);
  });

  it("proves every beginning and every record", async () => {
    verifies("beyond.checkpoint.consistency", "beyond.checkpoint.inclusion");
    for (let i = 0; i < 3; i++) await oneCall(`p${i}`);
    const { records } = await server.app.core.store.head();
    const ask = (path: string) => server.call("auditor", "GET", `/v1/ledger/${path}`);
    for (const [from, to] of [
      [0, records],
      [1, records],
      [3, 7],
      [4, records],
      [records, records],
      [5, 8],
    ]) {
      const { body, status } = await ask(`consistency?from=${from}&to=${to}`);
      expect([status, body.from, body.to]).toEqual([200, from, to]);
      const ends = [
        { size: from!, root: body.from_root },
        { size: to!, root: body.to_root },
      ] as const;
      expect(isConsistent(...ends, body.proof)).toBe(true);
    }
    for (const [seq, size] of [
      [0, 1],
      [2, 7],
      [6, 7],
      [3, records],
      [records - 1, records],
    ]) {
      const { body } = await ask(`inclusion?seq=${seq}&size=${size}`);
      const line = (await server.app.core.store.records({ from: seq!, to: seq!, limit: 1 }))[0]!;
      const leaf = createHash("sha256")
        .update("\0")
        .update(line.replace(/,"hash":"[0-9a-f]{64}"/, ""))
        .digest("hex");
      expect(body.leaf_hash).toBe(leaf);
      expect(rootFromProof(leaf, seq!, size!, body.proof)).toBe(body.root);
    }
    const bad = [
      "consistency?from=5&to=3",
      `consistency?from=1&to=${records + 9}`,
      "consistency?to=3",
      "inclusion?seq=-1",
    ];
    for (const path of [
      ...bad,
      "inclusion?seq=3&size=3",
      `inclusion?seq=0&size=${records + 9}`,
      "inclusion?seq=x",
    ])
      expect((await ask(path)).status, path).toBe(400);
  });

  it("is proven the same over blocks that were filled long ago", async () => {
    const store = await storeOf(drafts(3, 2_500));
    const proofs = await LedgerProofs.of(store);
    for (const [from, to] of [
      [1, 2_500],
      [1_023, 1_024],
      [1_024, 2_048],
      [1_000, 2_049],
      [2_047, 2_500],
      [2_048, 2_100],
    ]) {
      const ends = [
        { size: from!, root: await proofs.root(from!) },
        { size: to!, root: await proofs.root(to!) },
      ] as const;
      const proof = await proofs.consistency(from!, to!);
      expect(isConsistent(...ends, proof), `${from} to ${to}`).toBe(true);
      expect(isConsistent(ends[0], ends[1], proof.slice(1)), `${from} to ${to}, cut`).toBe(false);
      expect(isConsistent({ ...ends[0], root: ends[1].root }, ends[1], proof)).toBe(false);
    }
  });
});

describe("a witness as a sink", () => {
  it("cosigns at each anchor, and is recorded where there was news", async () => {
    verifies("beyond.witness.sink", "beyond.witness.recorded");
    await oneCall("w1");
    const before = await witnessed();
    const published = await server.call("admin", "POST", "/v1/anchor", {});
    expect(published.status).toBe(200);
    expect(published.body.sinks.map(({ type, ok }: { type: string; ok: boolean }) => [type, ok])).toEqual([
      ["witness", true],
      ["witness", true],
    ]);
    expect(await witnessed()).toBe(before + 1);
    const { detail, actor } = (await events()).at(-1) as unknown as { detail: string; actor: string };
    expect([actor, detail]).toEqual([
      "admin",
      expect.stringMatching(
        /^checkpoint of \d+ records cosigned by witness\.example\/w1, witness\.example\/w2$/,
      ),
    ]);
    expect((await server.call("admin", "POST", "/v1/anchor", {})).status).toBe(200);
    expect(await witnessed()).toBe(before + 1);
    const cosigned = await server.call("auditor", "GET", "/v1/ledger/checkpoint?witnessed=1");
    expect(cosigned.text.match(/^\u2014 /gm)).toHaveLength(3);
  });

  it("says why it refuses", async () => {
    const stranger = await servedWitness(key, "example.com/other");
    const wrong = await testServer({
      config: `signing_key: ${at("k.key")}\nanchor: {interval: 7d, sinks: [{type: witness, url: "${stranger.url}", key: "${stranger.key}"}]}\n`,
    });
    const refused = await wrong.call("admin", "POST", "/v1/anchor", {});
    expect([refused.status, refused.body.error]).toEqual([
      502,
      expect.stringContaining("does not know the log"),
    ]);
    const unsigned = await testServer({
      config: `anchor: {interval: 7d, sinks: [{type: witness, url: "${first.url}", key: "${first.key}"}]}\n`,
    });
    expect((await unsigned.call("admin", "POST", "/v1/anchor", {})).body.error).toContain("svc keygen");
    // Two ledgers of one key and one size.
    const third = await servedWitness(key);
    const config = `signing_key: ${at("k.key")}\nanchor: {interval: 7d, sinks: [{type: witness, url: "${third.url}", key: "${third.key}"}]}\n`;
    const answers = [];
    for (const run_id of ["one", "another"]) {
      const twin = await testServer({ config });
      await oneCall(run_id, twin);
      answers.push(await twin.call("admin", "POST", "/v1/anchor", {}));
    }
    expect(answers.map(({ status }) => status)).toEqual([200, 502]);
    expect(answers[1]!.body.error).toContain("history was rewritten, or another ledger has the same origin");
  });
});

describe("a witnessed bundle", () => {
  const bundle = async (path: string, file: string) => {
    writeFileSync(at(file), (await server.call("auditor", "GET", path)).text);
    return at(file);
  };

  it("verifies with all three, and shows what it lacks", async () => {
    verifies("beyond.witness.in-bundles", "beyond.witness.three-verifiers", "beyond.witness.quorum");
    await oneCall("b1");
    await server.call("admin", "POST", "/v1/anchor", {});
    const both = [first.key, second.key];
    for (const [path, file] of [
      ["/v1/ledger/bundle", "l.json"],
      ["/v1/runs/b1/bundle", "r.json"],
    ] as const) {
      const good = await bundle(path, file);
      expect(await threeSay(good, both), file).toEqual([true, true, true]);
      expect(await threeSay(good, []), file).toEqual([true, true, true]);
    }
    const stranger = witnessOf(new Map()).verifierKey;
    expect(await threeSay(at("r.json"), [first.key, stranger])).toEqual([false, false, false]);
    expect(await threeSay(at("r.json"), [first.key, stranger], 1)).toEqual([true, true, true]);
    expect((await run("r.json", "--witness", first.key)).out).toContain(
      "witness.example/w1 cosigned the first",
    );
    expect((await run("r.json")).out).toContain("not checked: the witnesses' cosignatures");
    expect((await run("r.json", "--quorum", "1")).err).toContain("--witness <key>");
    expect((await run("r.json", "--witness", first.key, "--quorum", "2")).code).toBe(1);
    // Only this server has seen the records after the last cosignature.
    await oneCall("b2");
    const late = await bundle("/v1/runs/b2/bundle", "late.json");
    expect(await threeSay(late, [first.key])).toEqual([false, false, false]);
    expect((await run("late.json", "--witness", first.key)).out).toContain("not seen by enough witnesses");
    expect(await threeSay(late, [])).toEqual([true, true, true]);
  });

  it("does not pass with anything in its checkpoints changed", async () => {
    verifies("beyond.witness.three-verifiers");
    type Carried = { note: string; consistency: string[] };
    const text = readFileSync(at("r.json"), "utf8");
    const { checkpoints } = JSON.parse(text) as { checkpoints: Carried[] };
    const [one] = checkpoints as [Carried];
    const lines = one.note.split("\n");
    const changes: Record<string, unknown> = {
      "a proof node too many": [{ ...one, consistency: [...one.consistency, "00".repeat(32)] }],
      "no proof": [{ ...one, consistency: [] }],
      "another size": [{ ...one, note: one.note.replace(`\n${lines[1]}\n`, `\n${Number(lines[1]) - 1}\n`) }],
      "another origin": [{ ...one, note: one.note.replace(lines[0]!, `${lines[0]}x`) }],
      "without the log's signature": [{ ...one, note: one.note.replace(`${lines[4]}\n`, "") }],
      "without a signature": [{ ...one, note: one.note.split("\n\n")[0] }],
      "a cosignature for another time": [{ ...one, note: swapByte(one.note, 5, 10) }],
      "a broken cosignature": [{ ...one, note: swapByte(one.note, 5, 40) }],
      "a member more": [{ ...one, x: 1 }],
      "a list of texts": ["x"],
      "no list": {},
      "a control character": [{ ...one, note: `\u0001${one.note}` }],
    };
    for (const [name, changed] of Object.entries(changes)) {
      const file = at("changed.json");
      const found = JSON.stringify(checkpoints);
      expect(text).toContain(`"checkpoints":`);
      const bundleText = JSON.stringify({ ...JSON.parse(text), checkpoints: changed });
      writeFileSync(file, bundleText);
      expect(found).not.toBe(JSON.stringify(changed));
      expect(await threeSay(file, [first.key]), name).toEqual([false, false, false]);
    }
  });

  function swapByte(note: string, line: number, at: number): string {
    const lines = note.split("\n");
    const [dash, name, coded] = lines[line]!.split(" ");
    const bytes = Buffer.from(coded!, "base64");
    bytes[at] = bytes[at]! ^ 1;
    return lines.with(line, `${dash} ${name} ${bytes.toString("base64")}`).join("\n");
  }
});

describe("a second history, signed with the stolen key", () => {
  it("is found by a verifier that requires the witness, also behind the last cosigned checkpoint", async () => {
    verifies("beyond.fork.witness");
    const real = await storeOf(drafts(8, 20));
    const head = { origin: `svc/${key.key_id}`, ...(await LedgerProofs.of(real)).snapshot.tree };
    const cosigned = first.witness;
    const answer = cosigned.addCheckpoint(Buffer.from(`old 0\n\n${signCheckpoint(head, key)}`));
    // This witness already knows another ledger under that origin.
    expect(answer.status).toBe(409);
    const honest = witnessOf(new Map([[head.origin, [{ name: head.origin, type: 1, key }]]]));
    const line = honest.addCheckpoint(Buffer.from(`old 0\n\n${signCheckpoint(head, key)}`)).text;
    const kept = { ...head, name: "witness.example/w1", key_id: "w", seconds: 1, line };
    // The thief continues from the cosigned beginning with records that the witness never saw.
    const forked = await storeOf([...drafts(8, 20), { ts_ms: 1, event: "approved", actor: "mallory" }]);
    await storeCosignatures(forked, server.env, "engine", [kept]);
    writeFileSync(at("forked.json"), await bundleOf(forked, key));
    expect(await threeSay(at("forked.json"), [])).toEqual([true, true, true]);
    expect(await threeSay(at("forked.json"), [honest.verifierKey])).toEqual([false, false, false]);
    const rewritten = await storeOf(drafts(9, 20));
    await rewritten.transact({ run: (tx) => tx.put("meta", "witnesses", { w: kept }) });
    await expect(bundleOf(rewritten, key)).rejects.toThrow("history was rewritten");
  });

  it("is found by two people's checkpoints", async () => {
    verifies("beyond.fork.checkpoints", "beyond.checkpoint.command");
    const histories = { mine: drafts(8, 20), yours: [...drafts(8, 12), ...drafts(10, 8)] };
    for (const [name, list] of Object.entries(histories)) {
      const store = await openStore({ store: "files", data: at(name), database_url: null, warn: () => {} });
      await store.transact({
        run: (tx) => void list.map(({ run_id: _, run_seq: __, ...one }) => tx.append(one)),
      });
      await store.close();
      writeFileSync(at("svc.config.yaml"), `signing_key: ${at("k.key")}\n`);
      const printed = await anchor("checkpoint", "-d", at(name));
      expect(parseCheckpoint(printed.out)).toMatchObject({ size: 20 });
      writeFileSync(at(`${name}.txt`), printed.out);
    }
    const alone = await anchor("verify", "--checkpoint", "mine.txt", "-d", at("mine"), "--pub", at("k.pub"));
    expect([alone.code, alone.out]).toEqual([0, expect.stringContaining("ok: 1 checkpoint holds")]);
    const both = await anchor(
      "verify",
      "--checkpoint",
      "mine.txt",
      "yours.txt",
      "-d",
      at("mine"),
      "--pub",
      at("k.pub"),
    );
    expect(both.code).toBe(1);
    expect(both.out).toContain("two histories were shown");
    expect(both.out).toContain("INVALID: 2 of 2 checkpoints do not hold");
    const forged = await anchor(
      "verify",
      "--checkpoint",
      "mine.txt",
      "-d",
      at("mine"),
      "--pub",
      at("../nothing"),
    );
    expect(forged.code).toBe(1);
    const neither = await anchor("verify", "-d", at("mine"));
    expect(neither.err).toContain("--checkpoint <file>");
  });

  it("is found on a server, too", async () => {
    verifies("beyond.fork.checkpoints");
    const { text } = await server.call("auditor", "GET", "/v1/ledger/checkpoint");
    writeFileSync(at("kept.txt"), text);
    for (const name of ["later", "and later", "last"]) await oneCall(name.replace(" ", "-"));
    const address = await server.http.listen({ port: 0, host: "127.0.0.1" });
    const env = { SVC_SERVER: address, SVC_TOKEN: "auditor" };
    const ask = (...argv: string[]) => command(registerAnchor, ["anchor", ...argv], { cwd: folder, env });
    expect((await ask("verify", "--checkpoint", "kept.txt", "--pub", at("k.pub"))).code).toBe(0);
    const foreign = await ask("verify", "--checkpoint", "mine.txt", "--pub", at("k.pub"));
    expect([foreign.code, foreign.out]).toEqual([1, expect.stringContaining("two histories were shown")]);
    expect((await ask("checkpoint")).out).toContain(`svc/${key.key_id}\n`);
  });
});

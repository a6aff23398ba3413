/** `svc witness serve` as its own process: what it signs, what it refuses, and what it knows after a kill. */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { readSigningKey, writeKeyFiles } from "../../src/evidence/key-files.ts";
import type { SigningKey } from "../../src/evidence/signing.ts";
import {
  cosignatureLine,
  cosignatureOf,
  logKey,
  parseCheckpoint,
  signCheckpoint,
} from "../../src/evidence/witness/checkpoint.ts";
import { requestBody } from "../../src/evidence/witness/client.ts";
import { parseSignatures, parseVerifierKey } from "../../src/evidence/witness/note.ts";
import { LedgerProofs } from "../../src/evidence/witness/proofs.ts";
import { WitnessState } from "../../src/evidence/witness/state.ts";
import type { StateStore } from "../../src/govern/port/store.ts";
import { ROOT } from "../support/files.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { drafts, storeOf } from "./support/ledgers.ts";
import { witnessOf } from "./support/witnesses.ts";

const folder = tempDir("witness-serve");
const at = (name: string) => join(folder, name);
const ORIGIN = "example.com/log";
let log: SigningKey;
let store: StateStore;
let proofs: LedgerProofs;

beforeAll(async () => {
  await writeKeyFiles(at("log"));
  await writeKeyFiles(at("w"));
  log = readSigningKey(at("log.key"));
  store = await storeOf(drafts(4, 30));
  proofs = await LedgerProofs.of(store);
});

interface Serving {
  url: string;
  key: string;
  end(signal: NodeJS.Signals): Promise<void>;
}

function serve(): Promise<Serving> {
  const args = ["witness", "serve", "--state", at("state"), "--key", at("w.key"), "--port", "0"];
  const child = spawn(
    process.execPath,
    [join(ROOT, "bin/svc.js"), ...args, "--log", `${ORIGIN}=${at("log.pub")}`],
    {
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  let text = "";
  return new Promise((resolve, reject) => {
    const hear = (part: Buffer) => {
      text += part;
      const url = /listening on (http:\S+)/.exec(text)?.[1];
      const key = /^\S+\+[0-9a-f]{8}\+\S+$/m.exec(text)?.[0];
      if (url === undefined || key === undefined) return;
      const end = (signal: NodeJS.Signals) => {
        child.kill(signal);
        return ended;
      };
      resolve({ url, key, end });
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    void ended.then(() => reject(new Error(text)));
  });
}

const head = async (size: number, from = proofs) => ({ origin: ORIGIN, size, root: await from.root(size) });
async function submission(old: number, size: number, from = proofs): Promise<string> {
  return requestBody(old, await from.consistency(old, size), signCheckpoint(await head(size, from), log));
}
async function post(
  to: Serving,
  body: string,
): Promise<{ status: number; type: string | null; text: string }> {
  const answer = await fetch(`${to.url}/add-checkpoint`, { method: "POST", body });
  return { status: answer.status, type: answer.headers.get("content-type"), text: await answer.text() };
}

describe("svc witness serve", () => {
  it("cosigns what continues, refuses what does not, and knows both after it was killed", async () => {
    verifies("beyond.witness.serve", "beyond.witness.crash", "beyond.witness.status-codes");
    let serving = await serve();
    const known = parseVerifierKey(serving.key, "printed");
    expect(known).toMatchObject({ type: 4, name: expect.stringMatching(/^svc-witness\/[0-9a-f]{16}$/) });
    const given = await post(serving, await submission(0, 10));
    expect([given.status, given.type]).toEqual([200, "text/plain; charset=utf-8"]);
    const body = (parseCheckpoint(signCheckpoint(await head(10), log)) as { note: { body: string } }).note
      .body;
    const lines = parseSignatures(given.text);
    expect(cosignatureOf(body, lines as never, known)).toMatchObject({ name: known.name });
    await serving.end("SIGKILL");

    serving = await serve();
    expect(await post(serving, await submission(0, 12))).toEqual({
      ...{ status: 409, type: "text/x.tlog.size", text: "10\n" },
    });
    const other = await LedgerProofs.of(await storeOf(drafts(5, 30)));
    expect((await post(serving, await submission(10, 20, other))).status).toBe(422);
    const twin = signCheckpoint(await head(10, other), log);
    expect(await post(serving, requestBody(10, [], twin))).toEqual({
      ...{ status: 409, type: "text/x.tlog.size", text: "10\n" },
    });
    expect((await post(serving, requestBody(10, ["00".repeat(32)], twin))).status).toBe(422);
    expect((await post(serving, await submission(10, 20))).status).toBe(200);
    expect((await post(serving, await submission(20, 20))).status).toBe(200);
    const monitored = await fetch(
      `${serving.url}/${createHash("sha256").update(ORIGIN).digest("hex")}/checkpoint`,
    );
    expect(parseCheckpoint(await monitored.text())).toMatchObject({ size: 20, origin: ORIGIN });
    expect((await fetch(`${serving.url}/${"0".repeat(64)}/checkpoint`)).status).toBe(404);
    await serving.end("SIGTERM");
  });

  it("answers each mistake with its own status", async () => {
    verifies("beyond.witness.status-codes");
    const witness = witnessOf(new Map([[ORIGIN, [logKey(ORIGIN, log)]]]));
    const ask = (text: string) => witness.addCheckpoint(Buffer.from(text));
    const good = await submission(0, 10);
    const strange = readSigningKey(at("w.key"));
    expect(ask(requestBody(0, [], signCheckpoint({ ...(await head(3)), origin: "else" }, log))).status).toBe(
      404,
    );
    expect(ask(requestBody(0, [], signCheckpoint(await head(3), strange))).status).toBe(403);
    expect(ask(good.replace(`\n10\n`, `\n11\n`)).status).toBe(403);
    const malformed = [
      "",
      "old 1",
      "old 01\n\nx",
      good.replace("old 0", "old -1"),
      good.replace("old 0\n", "old 0\nAA==\n"),
    ];
    for (const text of [
      ...malformed,
      good.trimEnd(),
      `old 0\n${"x\n".repeat(70)}\n`,
      await submission(10, 10).then((x) => x.replace("old 10", "old 11")),
    ])
      expect(ask(text).status, text).toBe(400);
    expect(witness.addCheckpoint(Buffer.from([0xff, 0xfe])).status).toBe(400);
    const junk = `${Buffer.alloc(32).toString("base64")}\n`;
    expect(ask(good.replace("old 0\n", `old 0\n${junk}`)).status).toBe(422);
    expect(
      ask(requestBody(0, [], signCheckpoint({ origin: ORIGIN, size: 0, root: "00".repeat(32) }, log))).status,
    ).toBe(422);
    expect(ask(requestBody(0, [], signCheckpoint(await head(0), log))).status).toBe(200);
    expect(ask(good).status).toBe(200);
  });

  it("signs nothing for a log if it cosigned more than it remembers", async () => {
    const signing = readSigningKey(at("w.key"));
    const witness = witnessOf(new Map([[ORIGIN, [logKey(ORIGIN, log)]]]), { name: "w", signing });
    const later = signCheckpoint(await head(20), log);
    const own = cosignatureLine(later.split("\n\n")[0]!.concat("\n"), "w", signing, 1_790_000_000);
    expect(witness.addCheckpoint(Buffer.from(`old 0\n\n${later}${own}`))).toMatchObject({
      status: 422,
      text: expect.stringContaining("restored from an older copy"),
    });
  });

  it("holds a thousand logs, each at its own size", async () => {
    verifies("beyond.witness.serve");
    const origins = Array.from({ length: 1_000 }, (_, i) => `example.com/${i}`);
    const state = new WitnessState(at("many"));
    const witness = witnessOf(new Map(origins.map((origin) => [origin, [logKey(origin, log)]])), { state });
    const { root } = await head(7);
    for (const origin of origins) {
      const body = requestBody(0, [], signCheckpoint({ origin, size: 7, root }, log));
      expect(witness.addCheckpoint(Buffer.from(body)).status).toBe(200);
    }
    const again = requestBody(0, [], signCheckpoint({ origin: origins[999]!, size: 7, root }, log));
    expect(witness.addCheckpoint(Buffer.from(again))).toMatchObject({ status: 409, text: "7\n" });
    state.close();
  });

  it("says what its options lack", async () => {
    const { registerWitness } = await import("../../src/cli/commands/evidence/witness.ts");
    const { command } = await import("./support/command.ts");
    const run = (...argv: string[]) =>
      command(registerWitness, ["witness", "serve", "--state", at("s"), ...argv], { cwd: folder });
    writeFileSync(at("bad.pub"), readFileSync(at("log.key"), "utf8"));
    const tries: [string[], RegExp][] = [
      [["--key", "w.key", "--log", "nothing"], /<origin>=<public key file>/],
      [["--key", "w.key", "--log", `${ORIGIN}=bad.pub`], /private key/],
      [["--key", "w.key", "--log", `${ORIGIN}=log.pub`, "--port", "x"], /--port/],
      [["--key", "missing.key", "--log", `${ORIGIN}=log.pub`], /does not exist/],
      [["--key", "w.key", "--log", `${ORIGIN}=log.pub`, "--name", "a b"], /--name/],
    ];
    for (const [argv, said] of tries) {
      const { code, err } = await run(...argv);
      expect([code, err]).toEqual([1, expect.stringMatching(said)]);
    }
  });
});

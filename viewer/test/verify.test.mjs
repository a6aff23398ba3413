// The viewer's verification core in Node: `node --test viewer/test`. Good evidence passes; every change to it shows.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { test } from "node:test";
import { verifyEd25519 } from "../src/core/ed25519.js";
import { parseStrict } from "../src/core/json.js";
import { sha256, toHex } from "../src/core/sha256.js";
import { sha512 } from "../src/core/sha512.js";
import { createSession, sniff } from "../src/session.js";
import { parsePublicKey, verifyAnchors, verifyBundle, verifyLedger } from "../src/verify.js";
import {
  canonicalJson,
  makeAnchor,
  makeBundle,
  makeLedger,
  makeSigner,
  rechain,
  seal,
  signBundle,
  toLines,
} from "./evidence.mjs";

const SIGNER = makeSigner();
const TRUSTED = [parsePublicKey(SIGNER.pem)];
const RECORDS = makeLedger(23);
const blob = (content) =>
  new Blob([
    typeof content === "string" || content instanceof Uint8Array ? content : JSON.stringify(content),
  ]);
const ledger = (records) => verifyLedger(blob(typeof records === "string" ? records : toLines(records)));
const bundle = (made, options = { trusted: TRUSTED }) => verifyBundle(blob(made), options);

async function refused(promise, saying = "") {
  const { ok, problem } = await promise;
  assert.equal(ok, false);
  assert.ok(problem.includes(saying), `${problem} should say ${saying}`);
}

test("the hashes are SHA-256 and SHA-512 at every length around a block", () => {
  for (let length = 0; length < 300; length++) {
    const data = randomBytes(length);
    assert.equal(toHex(sha256(data)), createHash("sha256").update(data).digest("hex"));
    assert.equal(toHex(sha512(data)), createHash("sha512").update(data).digest("hex"));
  }
});

test("Ed25519: both ways agree on good and changed signatures, and refuse what strictness refuses", async () => {
  const message = Buffer.from("svc");
  const signature = Buffer.from(SIGNER.sign("svc"), "base64");
  const order = 2n ** 252n + 27742317777372353535851937790883648493n;
  const s = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString("hex")}`) + order;
  const raised = Buffer.from(s.toString(16).padStart(64, "0"), "hex").reverse();
  for (const native of [true, false]) {
    const check = (key, candidate) => verifyEd25519(key, message, candidate, { native });
    assert.equal(await check(SIGNER.raw, signature), true);
    assert.equal(await check(SIGNER.raw, Buffer.concat([signature.subarray(0, 32), raised])), false);
    assert.equal(await check(SIGNER.raw, signature.subarray(1)), false);
    for (const small of [
      "01".padEnd(64, "0"),
      "00".repeat(32),
      `ec${"ff".repeat(30)}7f`,
      `ee${"ff".repeat(30)}7f`,
    ]) {
      const key = Buffer.from(small, "hex");
      assert.equal(await check(key, Buffer.concat([key, Buffer.alloc(32)])), false);
    }
    for (let bit = 0; bit < 512; bit += 37) {
      const flipped = Buffer.from(signature);
      flipped[bit >> 3] ^= 1 << (bit & 7);
      assert.equal(await check(SIGNER.raw, flipped), false);
    }
  }
});

test("strict JSON refuses what readers disagree about", () => {
  assert.deepEqual({ ...parseStrict('{"a":[1,-2,"\\u00e9"]}') }, { a: [1, -2, "é"] });
  for (const text of [
    '{"__proto__":true}',
    '{"a":1,"a":2}',
    "1.0",
    "1e3",
    "-0",
    "01",
    "9007199254740993",
    "NaN",
    "[1,]",
    '{"a":1}x',
    "'a'",
    '"\u0001"',
    `${"[".repeat(80)}`,
    "",
  ]) {
    assert.throws(() => parseStrict(text), undefined, text);
  }
});

test("good ledgers of many sizes", async () => {
  for (const size of [1, 2, 3, 7, 23]) {
    const { ok, records, head } = await ledger(RECORDS.slice(0, size));
    assert.deepEqual({ ok, records, head }, { ok: true, records: size, head: RECORDS[size - 1].hash });
  }
});

test("a ledger changed in any field, or in its order", async () => {
  for (const [position, record] of RECORDS.entries()) {
    const put = (changed) => ledger(RECORDS.map((other, i) => (i === position ? changed : other)));
    for (const field of Object.keys(record)) {
      for (const value of ["x", 99, null, true, -1, [null], { a: 1 }])
        await refused(put({ ...record, [field]: value }), `record ${position} `);
      const { [field]: _, ...without } = record;
      await refused(put(without), `record ${position} `);
    }
    if (position < 22) {
      await refused(
        put(seal({ ...record, actor: "mallory" })),
        `record ${position + 1} (line ${position + 2}): its prev`,
      );
      await refused(ledger(RECORDS.filter((_, i) => i !== position)), "missing");
    }
    await refused(ledger([...RECORDS.slice(0, position + 1), ...RECORDS.slice(position)]), "repeated");
  }
  const dropped = RECORDS.filter((_, i) => i !== 3).map((record, seq) => ({ ...record, seq }));
  await refused(ledger(rechain(dropped)), "a record of the run is missing");
});

test("lines that say the right thing in the wrong bytes", async () => {
  const line = canonicalJson(RECORDS[0]);
  await refused(ledger(line), "torn");
  await refused(ledger(`${line}\r\n`), "CR LF");
  await refused(ledger(`\ufeff${line}\n`), "byte-order mark");
  await refused(ledger(` ${line}\n`), "canonical");
  await refused(ledger(`${line}\n\n`), "empty");
  await refused(ledger(`${line.replace("{", '{"actor":"a",')}\n`), "appears twice");
  await refused(ledger(`${line.replace('"seq":0', '"seq":-0')}\n`), "-0");
  await refused(ledger(`${line.replace('"seq":0', '"seq":0.0')}\n`), "plain integer");
  await refused(ledger(`${line.replace('"bot"', '"\\ud800"')}\n`), "surrogate");
  await refused(ledger(""), "empty");
  await refused(verifyLedger(blob(new Uint8Array([0xff, 10]))), "not UTF-8");
});

test("bundles of a ledger and of runs, signed by whom", async () => {
  for (const size of [0, 1, 5, 23])
    assert.equal((await bundle(makeBundle(RECORDS.slice(0, size), SIGNER))).ok, true);
  for (const run of ["run_0", "run_1", "run_2", "run_quiet"]) {
    const made = makeBundle(RECORDS, SIGNER, run);
    assert.equal((await bundle(made)).signature, "trusted");
    assert.equal((await bundle(made, {})).signature, "self-consistent");
    assert.equal((await bundle(JSON.stringify(made, null, 2))).ok, true);
  }
  const stranger = makeBundle(RECORDS, makeSigner());
  await refused(bundle(stranger), "not a trusted key");
  const { public_key: _, ...bare } = makeBundle(RECORDS, SIGNER);
  assert.equal((await bundle(bare)).ok, true);
  await refused(bundle(bare, {}), "cannot be checked");
  const made = makeBundle(RECORDS, SIGNER);
  const inHex = Buffer.from(made.signature, "base64").toString("hex");
  await refused(bundle({ ...made, signature: inHex }), "64 bytes of base64");
  await refused(bundle({ ...made, public_key: SIGNER.raw.toString("base64") }), "not a PEM public key");
});

test("bundles changed in any member", async () => {
  for (const made of [makeBundle(RECORDS, SIGNER), makeBundle(RECORDS, SIGNER, "run_1")]) {
    for (const field of Object.keys(made)) {
      for (const value of [undefined, null, 7, true, "x", [], { a: 1 }]) {
        const isSame = (made[field] ?? null) === (value ?? null);
        const isOptional = field === "public_key" || (field === "proofs" && made.kind === "ledger");
        if (isSame || (isOptional && (value ?? null) === null && !(field === "proofs" && value === null)))
          continue;
        await refused(bundle({ ...made, [field]: value }));
      }
    }
    await refused(bundle({ ...made, extra: 1 }), "no bundle has");
    await refused(bundle(`${JSON.stringify(made)}{}`), "more after the end");
    await refused(bundle(JSON.stringify(made).replace('"count"', '"count":1,"count"')), "appears twice");
    await refused(
      bundle(JSON.stringify(made).replace('"records"', '"records":[],"records"')),
      "appears twice",
    );
    await refused(bundle(JSON.stringify(made).replace('"records"', '"rec\\u006frds"')), "not one plain list");
    await refused(bundle(JSON.stringify(made).replace("[{", "[,{")), "list of objects");
    for (let cut = 1; cut < 4000; cut += 211) await refused(bundle(JSON.stringify(made).slice(0, cut)));
  }
});

test("a run with a record left out, and other games", async () => {
  const made = makeBundle(RECORDS, SIGNER, "run_1");
  const [first, second, ...others] = made.records;
  const { [second.seq]: path, ...proofs } = made.proofs;
  const without = { ...made, records: [first, ...others], count: made.count - 1, proofs };
  await refused(bundle(without), "missing");
  await refused(bundle(signBundle(without, SIGNER)), "missing");
  const last = { ...made, records: made.records.slice(0, -1), count: made.count - 1 };
  await refused(
    bundle({ ...last, proofs: dropKey(made.proofs, made.records.at(-1).seq) }),
    "signature does not match",
  );
  const lie = (changes, saying) => refused(bundle(signBundle({ ...made, ...changes }, SIGNER)), saying);
  const game = (changed, saying = "does not lead") =>
    lie({ proofs: { ...made.proofs, [second.seq]: changed } }, saying);
  await game(path.slice(1));
  await game(path.slice(0, -1));
  await game([...path, path[0]]);
  await game([...path].reverse());
  await game("x", "not a list of hashes");
  await lie({ tree: { ...made.tree, size: 0 } }, "beyond the signed tree");
  await lie({ tree: { ...made.tree, size: 24 } }, "does not lead");
  await lie({ proofs: { ...made.proofs, 99: path } }, "does not hold");
  await lie({ run_id: "run_2" }, "another run");
  await lie({ proofs }, "no inclusion proof");
  const whole = makeBundle(RECORDS, SIGNER);
  await refused(bundle(signBundle({ ...whole, head: "1".repeat(64) }, SIGNER)), "its head");
  await refused(
    bundle(signBundle({ ...whole, tree: { ...whole.tree, root: "1".repeat(64) } }, SIGNER)),
    "tree root",
  );
});

function dropKey(object, key) {
  const { [key]: _, ...rest } = object;
  return rest;
}

test("records split over chunks of the file", async () => {
  // Each record holds enough text that the 4 MB chunks end inside records, strings and escapes.
  const long = '"\\😀'.repeat(90_000);
  const records = rechain(
    Array.from({ length: 12 }, (_, seq) => ({ seq, ts_ms: 1, event: "halted", reason: `${seq}${long}` })),
  );
  assert.equal((await ledger(records)).ok, true);
  assert.equal((await bundle(makeBundle(records, SIGNER))).ok, true);
});

test("anchors", async () => {
  const check = (anchors, records, trusted = TRUSTED) =>
    verifyAnchors(blob(toLines(anchors)), blob(toLines(records)), { trusted });
  const good = [0, 1, 9, 9, 23].map((size) => makeAnchor(RECORDS.slice(0, size), SIGNER));
  assert.equal((await check(good, RECORDS)).ok, true);
  await refused(
    check(good, RECORDS.slice(0, 12)),
    "the ledger has 12 records but was anchored at 23: it has been truncated",
  );
  await refused(check(good, []), "has 0 records but was anchored at 1");
  const forged = rechain(RECORDS.map((record, i) => (i === 8 ? { ...record, actor: "mallory" } : record)));
  const { anchors } = await check(good, forged);
  assert.deepEqual(
    anchors.map(({ problem }) => problem?.slice(0, 21) ?? "ok"),
    ["ok", "ok", ...Array(3).fill("history was rewritten")],
  );
  await refused(check([good[2], good[1]], RECORDS), "never shrinks");
  await refused(check([makeAnchor(RECORDS, null)], RECORDS), "not signed");
  assert.equal((await check([makeAnchor(RECORDS, null)], RECORDS, [])).ok, true);
  await refused(check([makeAnchor(RECORDS, makeSigner())], RECORDS), "not a trusted key");
  for (const field of Object.keys(good[2])) {
    for (const value of [undefined, null, 7, "x", {}])
      await refused(check([{ ...good[2], [field]: value }], RECORDS));
  }
  const changed = RECORDS.map((record, i) => (i === 2 ? { ...record, actor: "x" } : record));
  await refused(check(good, changed), "the ledger, record 2");
});

test("public keys", () => {
  assert.equal(parsePublicKey(SIGNER.pem).keyId, SIGNER.keyId);
  assert.equal(parsePublicKey(SIGNER.pem.replaceAll("\n", "\r\n")).keyId, SIGNER.keyId);
  for (const text of [
    "",
    "x",
    SIGNER.pem.slice(0, 60),
    SIGNER.pem.replace("PUBLIC", "PRIVATE").replace("PUBLIC", "PRIVATE"),
    SIGNER.raw.toString("base64"),
  ]) {
    assert.throws(() => parsePublicKey(text), undefined, text);
  }
});

test("a session: files in any order, search, and one bad key that changes nothing", async () => {
  const said = [];
  const session = createSession((message) => said.push(message));
  const file = (name, content) => Object.assign(blob(content), { name });
  assert.equal(await sniff(file("k", SIGNER.pem)), "key");
  await session({ type: "open", file: file("a.jsonl", toLines([makeAnchor(RECORDS, SIGNER)])) });
  assert.equal(said.at(-1).type, "waiting");
  await session({ type: "open", file: file("svc.pub", SIGNER.pem) });
  await session({ type: "open", file: file("ledger.jsonl", toLines(RECORDS)) });
  assert.equal(said.at(-1).verdict.level, "good");
  assert.equal(said.at(-1).anchors[0].signature, "trusted");
  await session({ type: "addKey", text: "nonsense" });
  assert.equal(said.at(-1).type, "failed");
  await session({ type: "filter", query: { text: "tool:mail 😀", event: "intended" } });
  const { count } = said.at(-1);
  assert.equal(count, RECORDS.filter(({ tool, reason }) => tool && reason.includes("😀")).length);
  await session({ type: "rows", from: 0, to: 50 });
  assert.equal(said.at(-1).rows.length, count);
  assert.ok(said.at(-1).rows.every(({ record }) => record.reason.includes("😀")));
  await session({ type: "open", file: file("b.json", JSON.stringify(makeBundle(RECORDS, SIGNER, "run_0"))) });
  assert.equal(said.at(-1).verdict.headline, "Verified");
  await session({ type: "dropKey", keyId: SIGNER.keyId });
  assert.equal(said.at(-1).verdict.level, "partial");
});

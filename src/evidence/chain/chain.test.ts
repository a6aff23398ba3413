import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ledgerLines, ledgerText } from "../../../test/evidence/support/ledgers.ts";
import { checkPlainly, leafOf, plainRoot } from "../../../test/evidence/support/oracle.ts";
import { LEDGER_TAMPERS, rehash } from "../../../test/evidence/support/tamper.ts";
import { seeded } from "../../../test/support/env.ts";
import { verifies } from "../../../test/support/verifies.ts";
import { readRecordLine } from "../../ledger/read-record.ts";
import { ChunkVerifier, toLineChunk } from "./chunk.ts";
import { LedgerJoin } from "./join.ts";
import { idBytes, newRunSeed, RunTable } from "./run-numbering.ts";
import {
  HASH_FIELD,
  numberAt,
  PREV_FIELD,
  RUN_ID_FIELD,
  RUN_SEQ_FIELD,
  ScannedFields,
  SEQ_FIELD,
  scanRecord,
} from "./scan.ts";
import { NodeBuilder, TreeFrontier } from "./subtrees.ts";

/** Checks the lines in stretches of these lengths and joins them. */
function joined(lines: readonly string[], size: number, cuts: number[] = []) {
  const seed = newRunSeed();
  const checker = new ChunkVerifier({
    seed,
    tree: { cuts, largest: Number.POSITIVE_INFINITY },
    in_bundle: false,
  });
  const join = new LedgerJoin({ seed, tree: true, sizes: cuts });
  for (let i = 0; i < lines.length; i += size) {
    if (!join.add(checker.check(toLineChunk(ledgerText(lines.slice(i, i + size)))))) break;
  }
  return join;
}

function scan(line: string) {
  const { bytes } = toLineChunk(`${line}\n`);
  const found = new ScannedFields();
  const end = scanRecord(new DataView(bytes.buffer), bytes, 0, found);
  if (end < 0 || bytes[end] !== 0x0a) return undefined;
  const text = (field: number) => bytes.toString("utf8", found.at[field]!, found.to[field]!);
  // The reader of the record checks its hashes.
  if (![text(HASH_FIELD), text(PREV_FIELD)].every((hash) => /^"[0-9a-f]{64}"$/.test(hash))) return undefined;
  return {
    hash: JSON.parse(text(HASH_FIELD)),
    prev: JSON.parse(text(PREV_FIELD)),
    seq: numberAt(bytes, found.at[SEQ_FIELD]!, found.to[SEQ_FIELD]!),
    run_id: !found.has(RUN_ID_FIELD) ? undefined : JSON.parse(text(RUN_ID_FIELD)),
    run_seq: !found.has(RUN_SEQ_FIELD)
      ? undefined
      : numberAt(bytes, found.at[RUN_SEQ_FIELD]!, found.to[RUN_SEQ_FIELD]!),
  };
}

describe("the quick scanner", () => {
  it("reads every record that the service writes as the strict reader does", () => {
    for (let seed = 0; seed < 30; seed++) {
      for (const line of ledgerLines(seed, 20)) {
        const { body: _, ...facts } = readRecordLine(line) as Exclude<
          ReturnType<typeof readRecordLine>,
          string
        >;
        expect(scan(line), line).toEqual(facts);
      }
    }
  });

  it("accepts nothing that the strict reader refuses", () => {
    const lines = ledgerLines(7, 30);
    const change = fc.record({
      line: fc.nat(29),
      at: fc.nat(900),
      cut: fc.nat(3),
      text: fc.string({ unit: "binary", maxLength: 3 }),
    });
    fc.assert(
      fc.property(change, ({ line, at, cut, text }) => {
        const source = lines[line]!;
        const p = at % source.length;
        const changed = source.slice(0, p) + text + source.slice(p + cut);
        if (changed.includes("\n") || !changed.isWellFormed() || scan(changed) === undefined) return true;
        return typeof readRecordLine(changed) !== "string";
      }),
      { numRuns: 3_000, seed: 1 },
    );
  });

  it.each([
    ["a surrogate in UTF-8", Buffer.from([0xed, 0xa0, 0x80])],
    ["an overlong form", Buffer.from([0xc0, 0xaf])],
    ["an overlong form of three bytes", Buffer.from([0xe0, 0x80, 0xaf])],
    ["a code point beyond the last", Buffer.from([0xf4, 0x90, 0x80, 0x80])],
    ["a lone continuation", Buffer.from([0x80])],
    ["a cut character", Buffer.from([0xe6, 0xbc])],
    ["a raw control character", Buffer.from([0x01])],
    ["a slash escaped for nothing", Buffer.from("\\/")],
    ["an upper-case escape", Buffer.from("\\u001F")],
    ["an escape with a short form", Buffer.from("\\u000a")],
    ["an escaped letter", Buffer.from("\\u0041")],
    ["an unknown escape", Buffer.from("\\x")],
  ])("leaves %s to the strict reader", (_, insert) => {
    const [before, after] = ledgerLines(1, 1)[0]!.split('"event":"');
    const bytes = Buffer.concat([
      Buffer.from(`${before}"event":"`),
      insert,
      Buffer.from(`${after}\n`),
      Buffer.alloc(16),
    ]);
    const copy = Buffer.from(new Uint8Array(bytes).buffer);
    expect(scanRecord(new DataView(copy.buffer), copy, 0, new ScannedFields())).toBe(-1);
  });
});

describe("checking in stretches", () => {
  it(`gives the same as checking line by line, wherever the borders lie ${verifies("contract.verifier.typescript", "ops.evidence.without-tool")}`, () => {
    for (let seed = 0; seed < 12; seed++) {
      const lines = ledgerLines(seed, 40);
      const wanted = checkPlainly(lines);
      for (const size of [1, 2, 3, 7, 16, 40]) {
        const join = joined(lines, size);
        expect([join.records, join.head, join.bad]).toEqual([40, wanted.hash, null]);
      }
    }
  });

  it.each(Object.entries(LEDGER_TAMPERS))(
    "finds %s, at the same record wherever the borders lie",
    (_, tamper) => {
      for (let seed = 0; seed < 12; seed++) {
        const lines = tamper(ledgerLines(seed, 12), seeded(seed));
        const wanted = checkPlainly(lines);
        expect(wanted.bad).not.toBeNull();
        for (const size of [1, 2, 5, 13]) {
          const { bad, records } = joined(lines, size);
          expect(bad?.seq, `${seed} ${size} ${bad?.problem} / ${wanted.bad?.problem}`).toBe(wanted.bad?.seq);
          expect(records).toBeLessThanOrEqual(bad!.seq);
        }
      }
    },
  );

  it.each<[string, (lines: string[]) => string[], number, string]>([
    ["a changed text", (l) => l.with(4, l[4]!.replace('"event":"', '"event":"x')), 4, "it was changed"],
    [
      "a forged record",
      (l) =>
        l.with(
          4,
          rehash(l[4]!, (r) => {
            r["actor"] = "z";
          }),
        ),
      5,
      "prev is not the hash",
    ],
    ["a dropped record", (l) => l.toSpliced(4, 1), 4, "it says that it is record 5"],
    [
      "no link to the start",
      (l) =>
        l.with(
          0,
          rehash(l[0]!, (r) => {
            r["prev"] = "1".repeat(64);
          }),
        ),
      0,
      "64 zeros",
    ],
    ["an empty line", (l) => l.toSpliced(3, 0, ""), 3, "empty"],
    ["a converted file", (l) => l.map((line) => `${line}\r`), 0, "CR LF"],
    ["an array", (l) => l.with(2, "[]"), 2, "not a JSON object"],
    ["a text", (l) => l.with(2, '"x"'), 2, "not a JSON object"],
    [
      "a negative time",
      (l) =>
        l.with(
          0,
          rehash(l[0]!, (r) => {
            r["ts_ms"] = -1;
          }),
        ),
      0,
      "ts_ms is not a whole number",
    ],
    [
      "a float",
      (l) =>
        l.with(
          0,
          rehash(l[0]!, (r) => {
            r["x"] = 1.5;
          }),
        ),
      0,
      "must be a text",
    ],
    [
      "an object inside",
      (l) =>
        l.with(
          0,
          rehash(l[0]!, (r) => {
            r["x"] = {};
          }),
        ),
      0,
      "must be a text",
    ],
    [
      "run_seq without a run",
      (l) =>
        l.with(
          0,
          rehash(l[0]!, (r) => void delete r["run_id"]),
        ),
      0,
      "without the other",
    ],
    [
      "no time",
      (l) =>
        l.with(
          0,
          rehash(l[0]!, (r) => void delete r["ts_ms"]),
        ),
      0,
      "has no ts_ms",
    ],
  ])("says what is wrong: %s", (_, tamper, seq, problem) => {
    const lines = ledgerLines(3, 8);
    const { bad } = joined(tamper(lines), 3);
    expect(bad).toMatchObject({ seq, problem: expect.stringContaining(problem) });
  });

  it("lets fields of a later version through", () => {
    const line = rehash(ledgerLines(1, 1)[0]!, (record) => {
      record["zz"] = ["later", 1, true];
    });
    expect(joined([line], 1).bad).toBeNull();
  });
});

describe("the tree from parts", () => {
  it(`has the roots that one leaf after the other gives, at every size asked for ${verifies("contract.bundle.tree", "contract.bundle.leaf")}`, () => {
    const lines = ledgerLines(5, 50);
    const leaves = lines.map(leafOf);
    const wanted = Array.from({ length: 51 }, (_, size) => plainRoot(leaves.slice(0, size)));
    for (const size of [1, 3, 8, 50]) {
      for (const cuts of [[0, 1, 2, 3, 50], [7, 8, 9, 31, 49], Array.from({ length: 51 }, (_, i) => i)]) {
        const join = joined(lines, size, cuts);
        expect(join.root()).toBe(wanted[50]);
        for (const cut of cuts) {
          const head = cut === 0 ? "0".repeat(64) : (JSON.parse(lines[cut - 1]!) as { hash: string }).hash;
          expect(join.moments.get(cut)).toEqual({ root: wanted[cut], head });
        }
      }
    }
  });

  it("keeps parts below a largest size, and refuses one that is out of place", () => {
    const builder = new NodeBuilder(6, [], 4);
    for (let i = 6; i < 17; i++) builder.add("0".repeat(64), String(i));
    expect(builder.finish().map(({ size, end }) => [size, end])).toEqual([
      [2, "7"],
      [4, "11"],
      [4, "15"],
      [1, "16"],
    ]);
    const frontier = new TreeFrontier();
    frontier.push(1, "0".repeat(64));
    expect(() => frontier.push(2, "0".repeat(64))).toThrow("wrong position");
  });
});

describe("the table of runs", () => {
  it("counts many runs, and finds the earliest wrong number when stretches are joined", () => {
    const seed = newRunSeed();
    const [whole, part] = [new RunTable(seed), new RunTable(seed)];
    const id = (n: number) => idBytes(`run_${n}`);
    for (let n = 0; n < 5_000; n++)
      expect(part.countRecord(id(n), 0, id(n).byteLength, 0, n)).toBeUndefined();
    expect(whole.join(part.spans())).toBeUndefined();
    expect(whole.count).toBe(5_000);
    part.clear();
    for (let n = 0; n < 5_000; n++) {
      expect(
        part.countRecord(id(n), 0, id(n).byteLength, n === 4_000 || n === 70 ? 2 : 1, 5_000 + n),
      ).toBeUndefined();
    }
    expect(part.countRecord(id(9), 0, id(9).byteLength, 5, 10_000)).toBe(2);
    expect(whole.join(part.spans())).toEqual({ seq: 5_070, run_seq: 2, due: 1 });
  });
});

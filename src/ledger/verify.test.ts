import { describe, expect, it } from "vitest";
import { canonical } from "../kernel/canonical.ts";
import { sha256Hex } from "../kernel/hash.ts";
import type { JsonObject } from "../kernel/json.ts";
import { EMPTY_HEAD, type Head, sealRecord } from "./record.ts";
import { ChainVerifier, joinStretches } from "./verify.ts";

function ledger(n: number): string[] {
  let head: Head = EMPTY_HEAD;
  const next = new Map<string, number>();
  return Array.from({ length: n }, (_, i) => {
    const run_id = `run ${i % 3} "é\u0001😀`;
    const run_seq = next.get(run_id) ?? 0;
    next.set(run_id, run_seq + 1);
    const { record, line } = sealRecord(
      {
        ts_ms: 1_000 + i,
        event: "intended",
        actor: "a\\b",
        run_id,
        run_seq,
        step: i,
        tool: "t",
        detail: "x\ny",
      },
      head,
    );
    head = { records: record.seq + 1, hash: record.hash };
    return line;
  });
}

function check(lines: string[]) {
  const verifier = new ChainVerifier();
  for (const line of lines) if (!verifier.take(line)) break;
  return verifier.stretch;
}

/** Changes a record and hashes it again, as somebody with write access would. */
function forge(line: string, change: (record: JsonObject) => void): string {
  const { hash: _, ...record } = JSON.parse(line) as JsonObject;
  change(record);
  return canonical({ ...record, hash: sha256Hex(canonical(record)) });
}

describe("verifying a chain", () => {
  const good = ledger(12);

  it("accepts what was sealed", () => {
    const last = JSON.parse(good[11]!) as { hash: string };
    expect(check(good)).toMatchObject({ records: 12, hash: last.hash, bad: null });
    expect(check([])).toMatchObject({ records: 0, bad: null });
  });

  it("accepts further fields, as long as the line is canonical", () => {
    expect(
      check([
        forge(good[0]!, (record) => {
          record["zz"] = ["later", 1, true];
        }),
      ]).bad,
    ).toBeNull();
  });

  it.each<[string, (lines: string[]) => string[], number, string]>([
    ["a changed field", (l) => l.with(4, l[4]!.replace('"t"', '"u"')), 4, "hash does not match"],
    [
      "a forged record",
      (l) =>
        l.with(
          4,
          forge(l[4]!, (r) => {
            r["tool"] = "u";
          }),
        ),
      5,
      "prev is not",
    ],
    ["a dropped record", (l) => l.toSpliced(4, 1), 4, "says seq 5"],
    ["two swapped", (l) => [...l.slice(0, 4), l[5]!, l[4]!, ...l.slice(6)], 4, "says seq 5"],
    ["a doubled record", (l) => l.toSpliced(5, 0, l[4]!), 5, "says seq 4"],
    ["a space in a line", (l) => l.with(4, l[4]!.replace(",", ", ")), 4, "not canonical"],
    ["an escaped letter", (l) => l.with(4, l[4]!.replace('"t"', '"\\u0074"')), 4, "not canonical"],
    [
      "a float",
      (l) =>
        l.with(
          0,
          forge(l[0]!, (r) => {
            r["x"] = 1.5;
          }),
        ),
      0,
      "neither a string",
    ],
    ["a torn line", (l) => l.with(11, l[11]!.slice(0, 40)), 11, "not JSON"],
    [
      "a missing number within a run",
      (l) => [
        forge(l[0]!, (r) => {
          delete r["run_seq"];
        }),
      ],
      0,
      "no run_seq",
    ],
    [
      "a wrong number within a run",
      (l) => [
        forge(l[0]!, (r) => {
          r["run_seq"] = 3;
        }),
      ],
      0,
      "run_seq 3",
    ],
    [
      "no link to the start",
      (l) => [
        forge(l[0]!, (r) => {
          r["prev"] = "1".repeat(64);
        }),
      ],
      0,
      "start",
    ],
    ["a duplicate key", (l) => l.with(2, l[2]!.replace("{", '{"actor":"x",')), 2, "duplicate key"],
  ])("finds %s", (_, tamper, seq, problem) => {
    const { bad } = check(tamper(good));
    expect(bad?.seq).toBe(seq);
    expect(bad?.problem).toContain(problem);
  });

  it("finds a record of a run left out, although everything was numbered and linked anew", () => {
    let prev = "0".repeat(64);
    const forged = good.toSpliced(3, 1).map((line, seq) => {
      const next = forge(line, (record) => {
        record["seq"] = seq;
        record["prev"] = prev;
      });
      prev = (JSON.parse(next) as { hash: string }).hash;
      return next;
    });
    const { bad } = check(forged);
    expect(bad?.seq).toBe(5);
    expect(bad?.problem).toContain("missing or moved");
  });

  it("joins stretches that were checked apart, and finds a break at the border", () => {
    const apart = (lines: string[], cut: number) => {
      const right = new ChainVerifier(cut, null);
      for (const line of lines.slice(cut)) if (!right.take(line)) break;
      return joinStretches(check(lines.slice(0, cut)), right.stretch);
    };
    for (let cut = 1; cut < 12; cut++) expect(apart(good, cut)).toMatchObject({ records: 12, bad: null });
    const forged = good.with(
      4,
      forge(good[4]!, (record) => {
        record["tool"] = "u";
      }),
    );
    expect(apart(forged, 5).bad).toMatchObject({ seq: 5 });
    expect(apart(good.with(7, "x"), 5).bad).toMatchObject({ seq: 7 });
  });
});

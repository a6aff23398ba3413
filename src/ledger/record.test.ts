import { describe, expect, it } from "vitest";
import { verifies } from "../../test/support/verifies.ts";
import { sha256Hex } from "../kernel/hash.ts";
import { toCanonicalJson } from "../kernel/json/canonical.ts";
import type { JsonValue } from "../kernel/json/json.ts";
import {
  EMPTY_HEAD,
  GENESIS_HASH,
  RECORD_FIELDS,
  type RecordDraft,
  recordFieldsOfKind,
  sealRecord,
  splitLine,
} from "./record.ts";

describe("ledger records", () => {
  const draft = {
    ts_ms: 1,
    event: "blocked",
    actor: 'a"b\u2028\n',
    run_id: "r",
    run_seq: 0,
    tool: "t",
    detail: "d",
    scope_seal: "sha256:x",
  } as const;

  it("hold no half of a character, wherever a text was cut", () => {
    const halves = { ...draft, reason: "why \ud83d", detail: "\ude00 and so on" };
    const { record, line } = sealRecord(halves, EMPTY_HEAD);
    expect(JSON.parse(line)).toMatchObject({ reason: "why \ufffd", detail: "\ufffd and so on" });
    expect(record).toEqual(JSON.parse(line));
  });

  it("are canonical JSON with the hash of everything else", () => {
    verifies(
      "contract.record.hash",
      "contract.record.genesis",
      "contract.record.seq-from-0",
      "core.record.seq",
      "core.record.event",
    );
    const { record, line } = sealRecord(draft, EMPTY_HEAD);
    expect(line).toBe(toCanonicalJson(JSON.parse(line) as JsonValue));
    const { hash, ...rest } = JSON.parse(line) as Record<string, JsonValue>;
    expect(hash).toBe(sha256Hex(toCanonicalJson(rest)));
    expect(record).toMatchObject({ seq: 0, prev: GENESIS_HASH, hash });
    expect(splitLine(line)).toEqual({ body: toCanonicalJson(rest), hash });
  });

  it("are written with every field of the table, in its order", () => {
    const all: Record<string, unknown> = Object.fromEntries(
      Object.keys(RECORD_FIELDS).map((name) => [name, "x"]),
    );
    for (const name of recordFieldsOfKind("count")) all[name] = 1;
    const { line } = sealRecord(all as unknown as RecordDraft, EMPTY_HEAD);
    expect(Object.keys(JSON.parse(line))).toEqual(Object.keys(RECORD_FIELDS));
    expect(line).toBe(toCanonicalJson(JSON.parse(line) as JsonValue));
  });

  it("leave absent fields out and link to their predecessor", () => {
    verifies("contract.record.absent-left-out", "contract.record.prev", "core.record.hash-linked");
    const first = sealRecord(draft, EMPTY_HEAD).record;
    const { line } = sealRecord({ ts_ms: 2, event: "halted", actor: "x" }, { records: 1, hash: first.hash });
    expect(Object.keys(JSON.parse(line))).toEqual(["actor", "event", "hash", "prev", "seq", "ts_ms"]);
    expect(JSON.parse(line)).toMatchObject({ prev: first.hash, seq: 1 });
  });
});

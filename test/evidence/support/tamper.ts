/** What somebody might do to a ledger or a bundle, by chance or by intent. Each takes the same dice. */
import { sha256Hex } from "../../../src/kernel/hash.ts";
import { toCanonicalJson } from "../../../src/kernel/json/canonical.ts";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import { type Dice, pick, upTo } from "./ledgers.ts";

/** Changes a record and hashes it again, as somebody with write access would. */
export function rehash(line: string, change: (record: JsonObject) => void): string {
  const { hash: _, ...record } = JSON.parse(line) as JsonObject;
  change(record);
  return toCanonicalJson({ ...record, hash: sha256Hex(toCanonicalJson(record)) });
}

/** Another value of the same kind. */
export function otherValue(dice: Dice, value: JsonValue): JsonValue {
  if (typeof value === "number")
    return pick(
      dice,
      [value + 1, Math.abs(value - 1), 0, value * 2 + 3].filter((n) => n !== value),
    );
  if (typeof value === "boolean") return !value;
  if (typeof value !== "string") return "x";
  if (/^(?:sha256:)?[0-9a-f]{64}$/.test(value)) {
    const at = value.length - 1 - upTo(dice, 64);
    return value.slice(0, at) + (value[at] === "0" ? "1" : "0") + value.slice(at + 1);
  }
  return pick(dice, [`${value}x`, `x${value}`, value === "" ? "y" : value.slice(1)]);
}

export type LedgerTamper = (lines: readonly string[], dice: Dice) => string[];

const at = (lines: readonly string[], dice: Dice): number => upTo(dice, lines.length);

/** Every one of these makes a ledger that must not pass. They need at least four records. */
export const LEDGER_TAMPERS: Readonly<Record<string, LedgerTamper>> = {
  "a field changed": (lines, dice) => {
    const i = at(lines, dice);
    const record = JSON.parse(lines[i]!) as JsonObject;
    const field = pick(dice, Object.keys(record));
    return lines.with(i, toCanonicalJson({ ...record, [field]: otherValue(dice, record[field]!) }));
  },
  "a field removed": (lines, dice) => {
    const i = at(lines, dice);
    const record = JSON.parse(lines[i]!) as JsonObject;
    delete record[pick(dice, Object.keys(record))];
    return lines.with(i, toCanonicalJson(record));
  },
  "a field added": (lines, dice) => {
    const i = at(lines, dice);
    return lines.with(i, toCanonicalJson({ ...(JSON.parse(lines[i]!) as JsonObject), extra: "x" }));
  },
  "a record forged and hashed again": (lines, dice) => {
    // All but the last: a forged last record is only seen against an anchor or a signature.
    const i = upTo(dice, lines.length - 1);
    return lines.with(
      i,
      rehash(lines[i]!, (record) => {
        record["actor"] = `${String(record["actor"])}!`;
      }),
    );
  },
  "a record dropped": (lines, dice) => lines.toSpliced(upTo(dice, lines.length - 1), 1),
  "a record doubled": (lines, dice) => {
    const i = at(lines, dice);
    return lines.toSpliced(i, 0, lines[i]!);
  },
  "two records swapped": (lines, dice) => {
    const i = at(lines, dice);
    const j = (i + 1 + upTo(dice, lines.length - 1)) % lines.length;
    return lines.with(i, lines[j]!).with(j, lines[i]!);
  },
  "the records reversed": (lines) => lines.toReversed(),
  "the records rotated": (lines, dice) => {
    const i = 1 + upTo(dice, lines.length - 1);
    return [...lines.slice(i), ...lines.slice(0, i)];
  },
  "a line torn": (lines, dice) => {
    const i = at(lines, dice);
    return lines.with(i, lines[i]!.slice(0, 1 + upTo(dice, lines[i]!.length - 1)));
  },
  "a byte flipped": (lines, dice) => {
    const i = at(lines, dice);
    const bytes = Buffer.from(lines[i]!);
    const p = upTo(dice, bytes.length);
    bytes[p] = bytes[p]! ^ (1 << upTo(dice, 7));
    return lines.with(
      i,
      bytes.toString("latin1") === Buffer.from(bytes.toString()).toString("latin1")
        ? bytes.toString()
        : "\ufffd",
    );
  },
  "a space in a line": (lines, dice) => {
    const i = at(lines, dice);
    return lines.with(i, lines[i]!.replace('":', '": '));
  },
  "a letter escaped": (lines, dice) => {
    const i = at(lines, dice);
    return lines.with(i, lines[i]!.replace('"event"', '"\\u0065vent"'));
  },
  "a key doubled": (lines, dice) => {
    const i = at(lines, dice);
    return lines.with(i, lines[i]!.replace("{", '{"actor":"x",'));
  },
  "a field that JavaScript may not see, all hashed again": (lines) => {
    let prev = "0".repeat(64);
    return lines.map((line, i) => {
      const { hash: _, ...record } = JSON.parse(line) as JsonObject;
      const hidden = i === 0 ? '{"__proto__":"x",' : "{";
      const body = toCanonicalJson({ ...record, prev }).replace("{", hidden);
      prev = sha256Hex(body);
      return body.replace(/,"(?=[i-z])/, `,"hash":"${prev}","`);
    });
  },
  "a number spelled otherwise": (lines, dice) => {
    const i = at(lines, dice);
    return lines.with(
      i,
      lines[i]!.replace(/"ts_ms":(\d+)/, pick(dice, ['"ts_ms":$1.0', '"ts_ms":$1e0', '"ts_ms":-$1'])),
    );
  },
  "an empty line": (lines, dice) => lines.toSpliced(at(lines, dice), 0, ""),
  "CR LF": (lines) => lines.map((line) => `${line}\r`),
  "a byte order mark": (lines) => lines.with(0, `\ufeff${lines[0]!}`),
  "another ledger's record": (lines, dice) => {
    const i = at(lines, dice);
    return lines.with(
      i,
      rehash(lines[i]!, (record) => {
        record["prev"] = "f".repeat(64);
      }),
    );
  },
  "a wrong number in its run, all hashed again": (lines) => {
    let prev = "0".repeat(64);
    let isDone = false;
    const out = lines.map((line) => {
      const next = rehash(line, (record) => {
        record["prev"] = prev;
        if (!isDone && record["run_seq"] !== undefined) record["run_seq"] = (record["run_seq"] as number) + 5;
        isDone ||= record["run_seq"] !== undefined;
      });
      prev = (JSON.parse(next) as { hash: string }).hash;
      return next;
    });
    return isDone ? out : lines.toReversed();
  },
  "a record of a run left out, all numbered and hashed again": (lines) => {
    const runs = lines.map((line) => (JSON.parse(line) as JsonObject)["run_id"]);
    // Between the first and the last: only the adjacent records can show it.
    const inside = (run: JsonValue | undefined, i: number) =>
      runs.indexOf(run) < i && runs.indexOf(run, i + 1) > 0;
    const left = runs.findIndex((run, i) => run !== undefined && inside(run, i));
    if (left < 0) return lines.toReversed();
    let prev = "0".repeat(64);
    return lines.toSpliced(left, 1).map((line, seq) => {
      const next = rehash(line, (record) => Object.assign(record, { seq, prev }));
      prev = (JSON.parse(next) as { hash: string }).hash;
      return next;
    });
  },
};

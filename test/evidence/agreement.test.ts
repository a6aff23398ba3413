/**
 * Three separate verifiers must agree on every file: good ones, and files changed in every way that we
 * could think of. SVC_AGREEMENT=full tries a thousand good ones and ten thousand changed ones.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { seeded } from "../support/env.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { BUNDLE_TAMPERS, freshKey, PROOF_TAMPERS, seededBundle } from "./support/bundles.ts";
import { type Dice, ledgerLines, ledgerText, upTo } from "./support/ledgers.ts";
import { LEDGER_TAMPERS } from "./support/tamper.ts";
import { askBrowser, askPython, askTypeScript, type What } from "./support/verifiers.ts";
import { WITNESS, WITNESS_TAMPERS, witnessedBundle } from "./support/witnessed.ts";

const isFull = process.env["SVC_AGREEMENT"] === "full";
const GOOD = isFull ? 1_000 : 24;
const CHANGED = isFull ? 5_000 : 200;
const WITNESSED = isFull ? 2_800 : 28;
const TIME = isFull ? 3_600_000 : 120_000;

const key = freshKey();
const folder = tempDir("agreement");
const pub = join(folder, "k.pub");
writeFileSync(pub, key.pem);

interface Case {
  name: string;
  text: string | Uint8Array;
  /** Whether it must hold; null where only agreement is asked for. */
  holds: boolean | null;
}

async function agree(what: What, cases: readonly Case[], witness?: string): Promise<void> {
  const home = tempDir(what);
  const files = cases.map(({ text }, i) => {
    const file = join(home, `${i}.json`);
    writeFileSync(file, text);
    return file;
  });
  const own = await askTypeScript(what, files, key, witness);
  const [python, browser] = [
    await askPython(what, files, pub, witness),
    await askBrowser(what, files, key, witness),
  ];
  const odd = files.flatMap((file, i) => {
    const said = {
      typescript: own.get(file)!,
      python: python.get(file)!,
      browser: browser.get(file)!,
    };
    const verdicts = Object.values(said).map((problem) => problem === null);
    const { holds, name } = cases[i]!;
    const isAgreed = verdicts.every((verdict) => verdict === verdicts[0]);
    return isAgreed && (holds === null || verdicts[0] === holds) ? [] : [{ name, file, holds, ...said }];
  });
  expect(odd).toEqual([]);
}

/** Cases from a table of changes, as many as asked for, one after the other. */
function fromTable<T>(
  table: Readonly<Record<string, (good: T, dice: Dice) => T>>,
  count: number,
  good: (seed: number) => T,
  show: (changed: T) => string | Uint8Array,
): Case[] {
  const changes = Object.entries(table);
  return Array.from({ length: count }, (_, i) => {
    const [name, change] = changes[i % changes.length]!;
    return {
      name: `${name} (${i})`,
      text: show(change(good(i), seeded(i))),
      holds: false,
    };
  });
}

/** Bytes changed at random: flipped, cut, doubled, inserted. */
function damage(text: string, dice: Dice): Uint8Array {
  const bytes = Buffer.from(text);
  const p = upTo(dice, bytes.length);
  const parts = [
    () =>
      Buffer.concat([
        bytes.subarray(0, p),
        Buffer.from([bytes[p]! ^ (1 << upTo(dice, 8))]),
        bytes.subarray(p + 1),
      ]),
    () => bytes.subarray(0, p),
    () => Buffer.concat([bytes.subarray(0, p), bytes.subarray(p + 1 + upTo(dice, 20))]),
    () => Buffer.concat([bytes.subarray(0, p), Buffer.from([upTo(dice, 256)]), bytes.subarray(p)]),
    () => Buffer.concat([bytes.subarray(0, p), bytes.subarray(Math.max(0, p - 30), p), bytes.subarray(p)]),
  ];
  return parts[upTo(dice, parts.length)]!();
}

describe("three verifiers agree", () => {
  it(
    `on ledgers ${verifies("contract.verifier.typescript", "contract.verifier.python", "contract.verifier.browser", "ops.evidence.python", "ops.evidence.viewer")}`,
    async () => {
      const good = Array.from(
        { length: GOOD },
        (_, i): Case => ({
          name: `good ${i}`,
          text: ledgerText(ledgerLines(i, 1 + (i % 40))),
          holds: true,
        }),
      );
      const lines = (seed: number) => ledgerLines(seed, 4 + (seed % 20));
      const changed = fromTable(LEDGER_TAMPERS, CHANGED, lines, ledgerText);
      const damaged = Array.from(
        { length: CHANGED / 2 },
        (_, i): Case => ({
          name: `damage ${i}`,
          text: damage(ledgerText(lines(i)), seeded(i)),
          holds: null,
        }),
      ).filter(({ text }) => text.length > 0);
      await agree("ledger", [...good, ...changed, ...damaged]);
    },
    TIME,
  );

  it(
    "on bundles",
    async () => {
      const bundles = await Promise.all(Array.from({ length: GOOD }, (_, i) => seededBundle(i, key)));
      const good = bundles.map(({ text }, i): Case => ({ name: `good ${i}`, text, holds: true }));
      const any = (i: number) => bundles[i % GOOD]!.text;
      const runs = bundles.filter(({ kind }) => kind === "run");
      const run = (i: number) => runs[i % runs.length]!.text;
      const changed = [
        ...fromTable(BUNDLE_TAMPERS, CHANGED, any, (text) => text),
        ...fromTable(PROOF_TAMPERS, CHANGED / 4, run, (text) => text),
      ];
      const damaged = Array.from(
        { length: CHANGED / 2 },
        (_, i): Case => ({
          name: `damage ${i}`,
          text: damage(any(i), seeded(i)),
          holds: null,
        }),
      ).filter(({ text }) => text.length > 0);
      const relaid = good.flatMap(({ name, text }): Case[] => [
        {
          name: `${name}, one line`,
          text: JSON.stringify(JSON.parse(String(text))),
          holds: true,
        },
        {
          name: `${name}, indented`,
          text: JSON.stringify(JSON.parse(String(text)), null, 2),
          holds: true,
        },
        {
          name: `${name}, CR LF`,
          text: String(text).replaceAll("\n", "\r\n"),
          holds: true,
        },
      ]);
      await agree("bundle", [...good, ...relaid.slice(0, 60), ...changed, ...damaged]);
    },
    TIME,
  );

  it(
    `on bundles that require a witness ${verifies("beyond.witness.three-verifiers")}`,
    async () => {
      const good = await Promise.all(
        Array.from({ length: WITNESSED / 4 }, async (_, i): Promise<Case> => {
          return {
            name: `good ${i}`,
            text: await witnessedBundle(i, key, seeded(i)),
            holds: true,
          };
        }),
      );
      const tampers = Object.entries(WITNESS_TAMPERS);
      const changed = await Promise.all(
        Array.from({ length: WITNESSED }, async (_, i): Promise<Case> => {
          const [name, forge] = tampers[i % tampers.length]!;
          return {
            name: `${name} (${i})`,
            text: await forge(i, key, seeded(i)),
            holds: false,
          };
        }),
      );
      const damaged = good.map(
        ({ text }, i): Case => ({
          name: `damage ${i}`,
          text: damage(String(text), seeded(i)),
          holds: null,
        }),
      );
      await agree("bundle", [...good, ...changed, ...damaged.filter(({ text }) => text.length > 0)], WITNESS);
    },
    TIME,
  );
});

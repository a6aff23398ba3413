/** Ledgers made from a seed: many runs, every field, and text that is hard on readers. */
import type { LedgerEvent } from "../../../src/ledger/events.ts";
import { EMPTY_HEAD, type LedgerHead, type RecordDraft, sealRecord } from "../../../src/ledger/record.ts";
import { MemoryStore } from "../../../src/store/memory/store.ts";
import { seeded } from "../../support/env.ts";

const EVENTS: readonly LedgerEvent[] = ["intended", "succeeded", "failed", "blocked", "compensated"];
const TEXTS = [
  "plain",
  "",
  'quote " backslash \\ slash /',
  "line\nbreak\ttab\r\u0000\u001f\u007f",
  "é ü \u00a0 \u2028 \ufeff",
  "漢字 и кириллица",
  "😀 🏳️‍🌈 \u{10ffff}",
  ',"hash":"0000","prev":"',
  "{}[]:,",
  "a".repeat(300),
];

export type Dice = () => number;

export function pick<T>(dice: Dice, from: readonly T[]): T {
  return from[Math.floor(dice() * from.length)]!;
}

export function upTo(dice: Dice, n: number): number {
  return Math.floor(dice() * n);
}

/** `count` drafts over a few runs, some records belonging to none. */
export function drafts(seed: number, count: number): RecordDraft[] {
  const dice = seeded(seed);
  const runs = Array.from({ length: 1 + upTo(dice, 4) }, (_, i) => `run_${seed}-${i}${i === 3 ? " é" : ""}`);
  const next = new Map<string, number>();
  const maybe = (text: string) => (dice() < 0.5 ? undefined : text);
  return Array.from({ length: count }, (_, i): RecordDraft => {
    const draft: RecordDraft = {
      ts_ms: 1_780_000_000_000 + i * 1_000 + upTo(dice, 1_000),
      event: pick(dice, EVENTS),
      actor: pick(dice, TEXTS),
      tool: maybe(pick(dice, TEXTS)),
      tenant: maybe("acme"),
      reason: maybe(pick(dice, TEXTS)),
      detail: maybe(pick(dice, TEXTS)),
      effect: maybe("compensable"),
      args_hash: maybe(`sha256:${"ab".repeat(32)}`),
      result_hash: maybe(`sha256:${"cd".repeat(32)}`),
      manifest_version: maybe("1.2.0"),
    };
    if (dice() < 0.1) return draft;
    const run_id = pick(dice, runs);
    const run_seq = next.get(run_id) ?? 0;
    next.set(run_id, run_seq + 1);
    return { ...draft, run_id, run_seq, step: upTo(dice, 5), scope_seal: "sha256:seal" };
  });
}

export function seal(list: readonly RecordDraft[]): string[] {
  let head: LedgerHead = EMPTY_HEAD;
  return list.map((draft) => {
    const { record, line } = sealRecord(draft, head);
    head = { records: record.seq + 1, hash: record.hash };
    return line;
  });
}

export function ledgerLines(seed: number, count: number): string[] {
  return seal(drafts(seed, count));
}

export function ledgerText(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join("");
}

/** A memory store that holds the ledger of these drafts. */
export async function storeOf(list: readonly RecordDraft[]): Promise<MemoryStore> {
  const store = new MemoryStore();
  await store.transact({
    run(tx) {
      for (const draft of list) tx.append(draft);
    },
  });
  return store;
}

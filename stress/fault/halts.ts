/**
 * Halts under load. While four processes make calls as fast as they can, one of them is ordered to halt. After
 * the halt's record no process gets an allow until it is lifted. Operations that include a halt are tried too.
 */
import type { Linked } from "../../test/support/first-bad.ts";
import { audit } from "./audit.ts";
import { type Bench, pause, WRITERS } from "./bench.ts";
import type { Ack, Place } from "./protocol.ts";
import { addFindings, newRow, type Row } from "./row.ts";
import type { Writer } from "./writer.ts";

const STOPS_A_PLACE = 50;
const WIDTH = 4;

interface Span {
  from: number;
  to: number;
  answered: number;
}

/** How calls are stopped: a halt, or more than that. */
export interface Means {
  /** Returns the halt and the position of its record on the ledger; `settled` waits for the work after the answer. */
  stop(
    number: number,
    pick: () => Writer,
  ): Promise<{ id: string; seq: number; answered: number; settled?(): Promise<void> }>;
  /** Faults in the ledger at the end. */
  objections?(records: readonly Linked[]): string[];
  close?(): Promise<void>;
}

export function halts(bench: Bench): Promise<Row> {
  return stopsUnderLoad(bench, "halts under load", async () => ({
    stop: (number, pick) => pick().ask("halt", `drill ${number}`),
  }));
}

export async function stopsUnderLoad(
  bench: Bench,
  name: string,
  meansAt: (place: Place) => Promise<Means>,
): Promise<Row> {
  const row = newRow(bench.store, name);
  while (row.trials < bench.count) {
    const place = await bench.places.make(bench.store);
    const writers = await bench.crew.hireAll(WRITERS, place);
    const means = await meansAt(place);
    for (const writer of writers) await writer.ask("load", { label: `${writer.pid}`, width: WIDTH });
    const spans: Span[] = [];
    for (let i = 0; i < STOPS_A_PLACE && row.trials + spans.length < bench.count; i++)
      spans.push(await stopOnce(bench, means, writers, i));
    for (const writer of writers) await writer.ask("rest");
    const acks = writers.flatMap((writer) => writer.acks);
    await bench.crew.dismiss(...writers);
    await means.close?.();
    judge(row, spans, acks);
    row.answers += acks.length;
    const { findings, records } = await audit(place, acks);
    addFindings(row, findings);
    row.problems.push(...(means.objections?.(records) ?? []));
    await place.dispose();
  }
  return row;
}

async function stopOnce(bench: Bench, means: Means, writers: Writer[], number: number): Promise<Span> {
  // Every process is being answered allow just before.
  const all = (kind: Ack["kind"]): Promise<unknown> =>
    Promise.all(
      writers.map((writer) => {
        const from = writer.acks.length;
        return writer.until(() => writer.acks.slice(from).some((ack) => ack.kind === kind));
      }),
    );
  await all("allow");
  await pause(bench.random() * 5);
  const pick = (): Writer => writers[Math.floor(bench.random() * WRITERS)]!;
  const { id, seq, answered, settled } = await means.stop(number, pick);
  await all("blocked");
  await settled?.();
  const { seq: to } = await pick().ask("resume", id);
  return { from: seq, to, answered };
}

/** By the order of the ledger, and by the clock: nobody who asked after the halt was answered got an allow. */
function judge(row: Row, spans: readonly Span[], acks: readonly Ack[]): void {
  const inOrder = [...acks].sort((a, b) => a.seq - b.seq);
  let at = 0;
  for (const { from, to, answered } of spans) {
    while (at < inOrder.length && inOrder[at]!.seq < from) at++;
    const wasAllowing = inOrder[at - 1]?.kind !== "blocked";
    let blocked = 0;
    for (; at < inOrder.length && inOrder[at]!.seq < to; at++) {
      const { kind, seq } = inOrder[at]!;
      if (kind === "allow") row.problems.push(`record ${seq} allows after the halt ${from}`);
      if (kind === "blocked") blocked++;
    }
    if (wasAllowing && blocked >= WRITERS) row.trials++;
    const late = acks.find(({ kind, seq, asked }) => kind === "allow" && asked > answered && seq < to);
    if (late !== undefined)
      row.problems.push(`record ${late.seq} was asked for after the halt ${from} was answered, and allowed`);
  }
}

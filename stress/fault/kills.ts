/**
 * SIGKILL under load. Four processes write to one store; some of them, or all, are killed at a random moment.
 * The others must continue, and the next process that opens the store must find every answered write.
 */
import { audit } from "./audit.ts";
import { type Bench, pause, WRITERS } from "./bench.ts";
import type { Ack } from "./protocol.ts";
import { addFindings, newRow, type Row } from "./row.ts";
import type { Writer } from "./writer.ts";

/** A place is left for a fresh one after so many rounds, so that looking at all of it stays cheap. */
const ROUNDS_A_PLACE = 15;
const WIDTH = 4;

export async function kills(bench: Bench): Promise<Row> {
  const row = newRow(bench.store, "SIGKILL under load");
  while (row.trials < bench.count) {
    const place = await bench.places.make(bench.store);
    const writers = await bench.crew.hireAll(WRITERS, place);
    const acks: Ack[] = [];
    for (let round = 0; round < ROUNDS_A_PLACE && row.trials < bench.count; round++) {
      // All of them at the end, since the place is left: no process is ended in any other way.
      await killSome(bench, row, writers, acks, round, round === ROUNDS_A_PLACE - 1);
      addFindings(row, (await audit(place, acks)).findings);
      if (round === ROUNDS_A_PLACE - 1) break;
      while (writers.length < WRITERS) writers.push(await bench.crew.hire(place));
    }
    row.answers += acks.length;
    await bench.crew.dismiss(...writers);
    await place.dispose();
  }
  return row;
}

async function killSome(
  bench: Bench,
  row: Row,
  writers: Writer[],
  acks: Ack[],
  round: number,
  all: boolean,
): Promise<void> {
  await Promise.all(
    writers.map((writer) => writer.ask("load", { label: `${round}-${writer.pid}`, width: WIDTH })),
  );
  // A kill before the first answer would prove nothing; after it every lane has a call under way.
  const before = new Map(writers.map((writer) => [writer, writer.acks.length]));
  const since = (writer: Writer): number => writer.acks.length - before.get(writer)!;
  await Promise.all(writers.map((writer) => writer.until(() => since(writer) > 0)));
  await pause(bench.random() * 20);

  const victims = all || bench.random() < 0.25 ? [...writers] : writers.filter(() => bench.random() < 0.5);
  if (victims.length === 0) victims.push(writers[0]!);
  await bench.crew.dismiss(...victims);
  row.trials += victims.filter((writer) => since(writer) > 0).length;
  for (const victim of victims) writers.splice(writers.indexOf(victim), 1);
  // A lock that died with its holder must not hold up the others.
  const reached = new Map(writers.map((writer) => [writer, since(writer)]));
  await Promise.all(writers.map((writer) => writer.until(() => since(writer) > reached.get(writer)!)));
  await Promise.all(writers.map((writer) => writer.ask("rest")));
  for (const writer of [...victims, ...writers]) acks.push(...writer.acks.splice(0));
}

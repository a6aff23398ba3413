/**
 * Clocks that jump under load, each process's separately: an hour back, a year on. The ledger keeps its order,
 * and an expired request stays expired, regardless of later clocks.
 */
import { audit } from "./audit.ts";
import { type Bench, pause, WRITERS } from "./bench.ts";
import { addFindings, newRow, type Row } from "./row.ts";
import type { Writer } from "./writer.ts";

const HOUR_MS = 3_600_000;
const JUMPS = [-HOUR_MS, 0, 400 * 24 * HOUR_MS, -400 * 24 * HOUR_MS, 2 * HOUR_MS];
const WIDTH = 2;

export async function clocks(bench: Bench): Promise<Row> {
  const row = newRow(bench.store, "clock jumps");
  const place = await bench.places.make(bench.store);
  const writers = await bench.crew.hireAll(WRITERS, place);
  for (const writer of writers) await writer.ask("load", { label: `${writer.pid}`, width: WIDTH });
  const answered = async (writer: Writer): Promise<void> => {
    const from = writer.acks.length;
    await writer.until(() => writer.acks.length > from + WIDTH);
  };
  for (let i = 0; row.trials < bench.count; i++) {
    const jumper = writers[i % WRITERS]!;
    await answered(jumper);
    await jumper.ask("clock", JUMPS[Math.floor(bench.random() * JUMPS.length)]!);
    await answered(jumper);
    for (const problem of await revive(writers, i)) row.problems.push(problem);
    row.trials++;
    await pause(bench.random() * 2);
  }
  for (const writer of writers) await writer.ask("rest");
  const acks = writers.flatMap((writer) => writer.acks);
  await bench.crew.dismiss(...writers);
  row.answers += acks.length;
  addFindings(row, (await audit(place, acks)).findings);
  await place.dispose();
  return row;
}

/** A request runs out by one clock; then everybody tries to bring it back by theirs. */
async function revive(writers: readonly Writer[], number: number): Promise<string[]> {
  const [asks, ends, ...others] = writers;
  const [request] = await asks!.ask("seed", { label: `jump${number}`, count: 1, call: "waiting" });
  await ends!.ask("clock", 800 * 24 * HOUR_MS);
  const expire = { ...request!, act: "expire", by: "clock" } as const;
  const [ended] = await ends!.ask("attempt", [expire]);
  if (!ended!.won) return [`request ${number} did not run out`];
  const tries = await Promise.all(
    others.map(async (writer, i) => {
      await writer.ask("clock", -800 * 24 * HOUR_MS);
      const by = `person${i}`;
      return writer.ask("attempt", [
        { ...request!, act: "approve", by },
        { ...request!, act: "use", by },
      ]);
    }),
  );
  const revived = tries.flat().filter(({ won }) => won);
  return revived.map(({ act }) => `request ${number} had run out, and ${act} worked`);
}

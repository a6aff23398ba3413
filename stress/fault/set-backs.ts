/**
 * PostgreSQL restored to an older state under four live processes, and back again. While it lacks a record that
 * a process has seen, that process refuses; once it has everything again, all continue.
 */
import { backUp } from "../../test/support/pg-backup.ts";
import { audit } from "./audit.ts";
import { type Bench, pause, WRITERS } from "./bench.ts";
import { addFindings, newRow, type Row } from "./row.ts";
import type { Writer } from "./writer.ts";

const WIDTH = 4;

export async function setBacks(bench: Bench): Promise<Row> {
  const row = newRow(bench.store, "PostgreSQL set back under live processes");
  const place = await bench.places.make("postgres");
  const url = place.database_url!;
  const writers = await bench.crew.hireAll(WRITERS, place);
  const all = (act: (writer: Writer) => Promise<unknown>) => Promise.all(writers.map(act));
  let loads = 0;
  const load = () => all((writer) => writer.ask("load", { label: `${loads++}-${writer.pid}`, width: WIDTH }));
  const answered = () =>
    all((writer) => {
      const from = writer.acks.length;
      return writer.until(() => writer.acks.length > from + WIDTH);
    });
  while (row.trials < bench.count) {
    await load();
    await answered();
    const older = await backUp(url);
    await answered();
    await pause(bench.random() * 20);
    await all((writer) => writer.ask("rest"));
    const newer = await backUp(url);

    await older.restore();
    const reached = writers.map((writer) => writer.acks.length);
    await all((writer) => writer.ask("insist"));
    writers.forEach((writer, i) => {
      if (writer.acks.length > reached[i]!) row.problems.push("answered for records in the place of others");
    });

    await newer.restore();
    await load();
    await answered();
    await all((writer) => writer.ask("rest"));
    row.trials++;
    const acks = writers.flatMap((writer) => writer.acks);
    addFindings(row, (await audit(place, acks)).findings);
  }
  row.answers = writers.reduce((sum, writer) => sum + writer.acks.length, 0);
  await bench.crew.dismiss(...writers);
  await place.dispose();
  return row;
}

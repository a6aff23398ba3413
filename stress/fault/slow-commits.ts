/**
 * Four processes on a PostgreSQL that takes longer over a COMMIT than callers wait. Every process compares the numbers of
 * its steps with its answers: a finally refused call must not have taken one.
 */
import pg from "pg";
import { audit } from "./audit.ts";
import { type Bench, WRITERS } from "./bench.ts";
import { addFindings, newRow, type Row } from "./row.ts";

const WIDTH = 4;
/** One that costs those their time who wait behind it, and one that nobody waits for. */
const SLOW_S = [2.9, 6];

export async function slowCommits(bench: Bench): Promise<Row> {
  const row = newRow(bench.store, "COMMIT slower than its callers wait");
  const place = await bench.places.make("postgres");
  const writers = await bench.crew.hireAll(WRITERS, place);
  const database = new pg.Client(place.database_url!);
  // A run that fails leaves the connection to the server's end.
  database.on("error", () => {});
  await database.connect();
  await commitsTake(database, 0);
  await database.query(`CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON svc_head DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION slow()`);
  while (row.trials < bench.count) {
    const runs = new Map(writers.map((writer) => [writer, `${row.trials}-${writer.pid}`]));
    for (const [writer, label] of runs) await writer.ask("load", { label, width: WIDTH });
    // Every lane has opened its run; a second try at that would meet the first.
    for (const [writer, label] of runs) {
      const lanes = () =>
        new Set(writer.acks.map(({ run_id }) => run_id).filter((id) => id.startsWith(label)));
      await writer.until(() => lanes().size === WIDTH);
    }
    const before = await refusals(writers);
    await commitsTake(database, SLOW_S[row.trials % SLOW_S.length]!);
    while ((await refusals(writers)) < before + WRITERS * WIDTH)
      await new Promise((resolve) => setTimeout(resolve, 50));
    await commitsTake(database, 0);
    const reached = writers.map((writer) => writer.acks.length);
    await Promise.all(
      writers.map((writer, i) => writer.until(() => writer.acks.length > reached[i]! + WIDTH)),
    );
    await Promise.all(writers.map((writer) => writer.ask("rest")));
    row.trials++;
    const acks = writers.flatMap((writer) => writer.acks);
    addFindings(row, (await audit(place, acks)).findings);
  }
  row.answers = writers.reduce((sum, writer) => sum + writer.acks.length, 0);
  await database.end();
  await bench.crew.dismiss(...writers);
  await place.dispose();
  return row;
}

async function refusals(writers: readonly { ask(op: "refusals"): Promise<number> }[]): Promise<number> {
  const counts = await Promise.all(writers.map((writer) => writer.ask("refusals")));
  return counts.reduce((sum, count) => sum + count, 0);
}

async function commitsTake(database: pg.Client, seconds: number): Promise<void> {
  await database.query(`CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_sleep(${seconds}); RETURN NULL; END'`);
}

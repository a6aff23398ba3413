/**
 * PostgreSQL going away under load, in every manner: crashed, killed, restarted, its connections cut. Four
 * processes write; each is refused for a while, none gets a false answer, and all recover on their own.
 */
import pg from "pg";
import type { PgServer } from "../../test/support/pg-server.ts";
import { audit } from "./audit.ts";
import { type Bench, pause, WRITERS } from "./bench.ts";
import { addFindings, newRow, type Row } from "./row.ts";

const WIDTH = 4;
const HEAL_MS = 10_000;

const OUTAGES: Record<string, (server: PgServer) => Promise<void>> = {
  crashed: (server) => server.restart("immediate"),
  killed: (server) => server.restart("kill"),
  restarted: (server) => server.restart("fast"),
  cut: async (server) => {
    const client = new pg.Client(server.url());
    await client.connect();
    await client.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()",
    );
    await client.end();
  },
};

export async function outages(bench: Bench): Promise<Row> {
  const row = newRow(bench.store, "PostgreSQL crashed, killed, restarted, cut off");
  const server = await bench.places.postgres();
  const place = await bench.places.make("postgres");
  const writers = await bench.crew.hireAll(WRITERS, place);
  const kinds = Object.values(OUTAGES);
  while (row.trials < bench.count) {
    for (const writer of writers)
      await writer.ask("load", { label: `${row.trials}-${writer.pid}`, width: WIDTH });
    const since = writers.map((writer) => writer.acks.length);
    await Promise.all(writers.map((writer, i) => writer.until(() => writer.acks.length > since[i]!)));
    await pause(bench.random() * 20);
    await kinds[row.trials % kinds.length]!(server);
    const back = performance.now();
    const reached = writers.map((writer) => writer.acks.length);
    await Promise.all(writers.map((writer, i) => writer.until(() => writer.acks.length > reached[i]!)));
    if (performance.now() - back > HEAL_MS) row.problems.push("it took more than ten seconds to go on");
    await Promise.all(writers.map((writer) => writer.ask("rest")));
    row.trials++;
    const acks = writers.flatMap((writer) => writer.acks);
    addFindings(row, (await audit(place, acks)).findings);
  }
  row.answers = writers.reduce((sum, writer) => sum + writer.acks.length, 0);
  await bench.crew.dismiss(...writers);
  await place.dispose();
  return row;
}

/**
 * Runs once, in vitest's main process: a folder for the run's temporary files, and what the tests share when the
 * first of them asks for it: a PostgreSQL (or the server that SVC_TEST_DATABASE_URL names), programs of the machine,
 * agent frameworks.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensureFrameworks } from "../../scripts/frameworks.mjs";
import { ensureProgram, type Program } from "../../scripts/programs.mjs";
import { serveBroker } from "./broker.ts";
import { ensurePageBrowser } from "./page-browser.ts";
import { PgServer } from "./pg-server.ts";
import { dropLeftovers } from "./postgres.ts";
import { watchOver } from "./watchdog.ts";

export default async function setup(): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), "svc-test-"));
  const keep = Boolean(process.env.SVC_TEST_KEEP);
  const callOff = keep ? () => {} : watchOver(folder);
  process.env.SVC_TEST_TMP = folder;
  process.env.SVC_TEST_RUN = randomBytes(4).toString("hex");

  const given = process.env.SVC_TEST_DATABASE_URL;
  if (given) process.env.SVC_TEST_PG_URL = given;
  let server: PgServer | undefined;
  const broker = await serveBroker(join(folder, "broker.sock"), async (name) => {
    if (name === "frameworks") return ensureFrameworks();
    if (name === "page-browser") return ensurePageBrowser();
    if (name !== "postgres") return ensureProgram(name as Program);
    server = await PgServer.create();
    return server.url();
  });

  return async () => {
    await broker.close();
    await server?.dispose();
    if (given) await dropLeftovers(given);
    if (keep) console.error(`kept the tests' files in ${folder}`);
    else rmSync(folder, { recursive: true, force: true });
    callOff();
  };
}

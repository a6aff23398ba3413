/**
 * Loads slow libraries (about 100 ms each) as soon as a server listens, so that no request waits for them. Commands
 * that never use them start without them.
 */
import type { FastifyInstance } from "fastify";
import { nextEventLoopTurn } from "../../child-process/event-loop-slices.ts";
import { loadPdfLibrary } from "../../evidence/report/pdf-page.ts";
import { loadPhoneTables } from "../../rules/detect/phone.ts";

export function loadAhead(server: FastifyInstance): void {
  server.addHook("onListen", (done) => {
    // If loading fails, the first request that needs the library reports it.
    load().catch(() => {});
    done();
  });
}

async function load(): Promise<void> {
  await nextEventLoopTurn();
  loadPhoneTables();
  await nextEventLoopTurn();
  await loadPdfLibrary();
}

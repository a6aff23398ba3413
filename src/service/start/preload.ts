/** Loads a slow library as soon as a server listens, so that no request waits for it. Other commands start without it. */
import type { FastifyInstance } from "fastify";
import { nextEventLoopTurn } from "../../child-process/event-loop-slices.ts";
import { loadPhoneTables } from "../../rules/detect/phone.ts";

export function loadAhead(server: FastifyInstance): void {
  server.addHook("onListen", (done) => {
    // If loading fails, the first request that needs the library reports it.
    nextEventLoopTurn()
      .then(loadPhoneTables)
      .catch(() => {});
    done();
  });
}

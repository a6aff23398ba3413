/**
 * Containments under load. While four processes make calls for one agent as fast as they can, a server contains it
 * over HTTP. After the answer no process gets an allow for the agent until a person lifts the halt, and every
 * containment ends with one record.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LightMyRequestResponse } from "fastify";
import { loadSettings } from "../../src/config/load.ts";
import type { ContainmentDoc } from "../../src/govern/port/docs.ts";
import type { StateStore } from "../../src/govern/port/store.ts";
import { createHttpServer } from "../../src/http/server.ts";
import { systemEnv } from "../../src/kernel/env.ts";
import { SvcError } from "../../src/kernel/errors.ts";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { openService } from "../../src/service/service.ts";
import { openStore } from "../../src/store/open.ts";
import { type Bench, pause } from "./bench.ts";
import { clock } from "./clock.ts";
import { AGENT } from "./engine.ts";
import { type Means, stopsUnderLoad } from "./halts.ts";
import type { Place } from "./protocol.ts";
import type { Row } from "./row.ts";

const KEY = "admin";

export function containments(bench: Bench): Promise<Row> {
  return stopsUnderLoad(bench, "containments under load", containing);
}

/** A server on the place's store, in this process, and who may contain there. */
export async function serverAt(place: Place, env: Record<string, string> = {}) {
  const folder = mkdtempSync(join(tmpdir(), "svc-proof-"));
  const admin = { name: "admin", role: "admin", key_sha256: sha256Hex(KEY) };
  writeFileSync(join(folder, "keys.json"), JSON.stringify([admin]), { mode: 0o600 });
  const settings = loadSettings({ flags: {}, env: { SVC_KEYS: "keys.json", ...env }, cwd: folder });
  const store = await openStore({ ...place, warn: () => {} });
  const app = await openService(settings, systemEnv, { store });
  const { auth, metrics } = app;
  const http = createHttpServer({ app, metrics, authenticate: (header) => auth.authenticate(header) });
  const call = (method: "GET" | "POST", url: string, payload?: object): Promise<LightMyRequestResponse> =>
    http.inject({ method, url, headers: { authorization: `Bearer ${KEY}` }, ...(payload && { payload }) });
  const close = async (): Promise<void> => {
    await http.close();
    await app.close();
    rmSync(folder, { recursive: true, force: true });
  };
  return { app, store, call, close };
}

/** The job as it ended. */
/** A store that does not answer for a while doesn't end a containment: it resumes when the store is back. */
export async function ended(store: StateStore, id: string): Promise<ContainmentDoc> {
  for (;;) {
    const job = await store.get("containments", id).catch((error: unknown) => {
      if (error instanceof SvcError && error.code === "unavailable") return undefined;
      throw error;
    });
    if (job?.state === "done") return job;
    if (job !== undefined && job.state !== "running")
      throw new Error(`containment ${id}: ${job.state}, ${job.error}`);
    await pause(20);
  }
}

async function containing(place: Place): Promise<Means> {
  const { store, call, close } = await serverAt(place);
  let contained = 0;

  return {
    async stop(number) {
      const body = { actor: AGENT.name, reason: `drill ${number}`, confirm: true };
      let answer = await call("POST", "/v1/contain", body);
      // A busy store refuses and reports that nothing was recorded. After an unknown commit, the same request resumes it.
      while (answer.statusCode === 503) answer = await call("POST", "/v1/contain", body);
      const answered = clock();
      if (answer.statusCode !== 202) throw new Error(`contain: ${answer.statusCode} ${answer.body}`);
      const { id } = (answer.json() as { job: { id: string } }).job;
      const { halt_id, since_seq } = (await store.get("containments", id))!;
      const settled = async () => {
        await ended(store, id);
        contained++;
      };
      return { id: halt_id, seq: since_seq, answered, settled };
    },

    objections(records) {
      const written = records.filter(({ event }) => event === "contained").length;
      return written === contained ? [] : [`${contained} containments ended, ${written} are on record`];
    },

    close,
  };
}

/** The HTTP surface as the probe drives it: the same server over the same service, with a key that only the probe has. */
import { randomUUID } from "node:crypto";
import type { App } from "../app/app.ts";
import { SvcError } from "../kernel/errors.ts";
import { connect, type RemoteSvc } from "../library/connect.ts";
import { libraryRun } from "../library/open.ts";
import { CANARY_PERMISSION, type ProbeLine, type ProbeSurface, runProbe } from "../library/probe.ts";
import { localId, PROBE_ACTOR, type Principal } from "../model/roles.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { type Listening, listen } from "./lifecycle.ts";
import { createHttpServer } from "./server.ts";

const PRINCIPAL: Principal = {
  id: localId(PROBE_ACTOR),
  name: PROBE_ACTOR,
  roles: ["agent"],
  groups: [],
  tenant: null,
  max_permissions: [CANARY_PERMISSION],
  allow_observe: false,
};

/** Probes every surface that is configured here, over loopback where it takes a connection. */
export async function probe(app: App): Promise<ProbeLine[]> {
  const served = await serve(app);
  try {
    return await runProbe(app, surfacesOf(app, served.client));
  } finally {
    await served.close();
  }
}

function surfacesOf(app: App, client: RemoteSvc): ProbeSurface[] {
  const options = { permissions: [CANARY_PERMISSION], reason: "svc probe" };
  const surfaces: ProbeSurface[] = [
    { name: "library", open: () => libraryRun(app, { actor: PROBE_ACTOR, ...options }) },
    { name: "http", open: () => client.run(options) },
  ];
  if (app.settings.upstreams.length > 0)
    surfaces.push({ name: "gateway", open: () => "the canary is not behind the gateway's upstreams" });
  return surfaces;
}

async function serve(app: App): Promise<{ client: RemoteSvc; close(): Promise<void> }> {
  const key = randomUUID();
  const server = createHttpServer({
    app,
    // The probe's calls are left out of the metrics, and its server has none to show.
    metrics: { content_type: "text/plain", render: async () => "" } as unknown as Metrics,
    authenticate(header) {
      if (header === `Bearer ${key}`) return PRINCIPAL;
      throw new SvcError("unauthenticated", "this is the probe's own server");
    },
  });
  const listening: Listening = await listen(server, "127.0.0.1", 0);
  const client = await connect({ url: listening.url, key });
  return {
    client,
    async close() {
      await client.close();
      await listening.stop();
    },
  };
}

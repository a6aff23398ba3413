/** The HTTP surface as the probe drives it: the same server over the same service, with a key that only the probe has. */
import { randomUUID } from "node:crypto";
import type { App } from "../app/app.ts";
import { type Listening, listen } from "../http/lifecycle.ts";
import { createHttpServer } from "../http/server.ts";
import { SvcError } from "../kernel/errors.ts";
import { connect, type RemoteSvc } from "../library/connect.ts";
import { libraryRun } from "../library/open.ts";
import {
  CANARY_PERMISSION,
  canaryBehind,
  PROBE_PRINCIPAL,
  type ProbeLine,
  type ProbeSurface,
  runProbe,
} from "../library/probe.ts";
import { PROBE_ACTOR } from "../model/roles.ts";
import type { Metrics } from "../telemetry/metrics.ts";

/** Probes every surface that is configured here, over loopback where it takes a connection. */
export async function probe(
  app: App,
  gateway: readonly ProbeSurface[] = undriven(app),
): Promise<ProbeLine[]> {
  const served = await serve(app);
  try {
    return await runProbe(app, [...surfacesOf(app, served.client), ...gateway]);
  } finally {
    await served.close();
  }
}

/** A server that is no gateway does not stand in front of tools, whatever its configuration names. */
function undriven({ settings }: App): ProbeSurface[] {
  const why = "this process is no gateway; svc probe drives one, and so does svc gateway with probe.interval";
  return settings.upstreams.length === 0 ? [] : [{ name: "gateway", open: () => why }];
}

function surfacesOf(app: App, client: RemoteSvc): ProbeSurface[] {
  const options = { permissions: [CANARY_PERMISSION], reason: "svc probe" };
  return [
    {
      name: "library",
      open: async () => canaryBehind(app, await libraryRun(app, { actor: PROBE_ACTOR, ...options })),
    },
    { name: "http", open: async () => canaryBehind(app, await client.run(options)) },
  ];
}

async function serve(app: App): Promise<{ client: RemoteSvc; close(): Promise<void> }> {
  const key = randomUUID();
  const server = createHttpServer({
    app,
    // The probe's calls are left out of the metrics, and its server has none to show.
    metrics: { content_type: "text/plain", render: async () => "" } as unknown as Metrics,
    authenticate(header) {
      if (header === `Bearer ${key}`) return PROBE_PRINCIPAL;
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

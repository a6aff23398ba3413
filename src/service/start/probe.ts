/** Probe of the HTTP surface: a second server on the same service, with a key that only the probe has. */
import { randomUUID } from "node:crypto";
import { PROBE_ACTOR } from "../../govern/roles.ts";
import { type ListeningServer, startListening } from "../../http/lifecycle.ts";
import { createHttpServer } from "../../http/server.ts";
import { SvcError } from "../../kernel/errors.ts";
import { connectToServer, type RemoteSvc } from "../../library/connect.ts";
import { libraryRun } from "../../library/open.ts";
import {
  CANARY_PERMISSION,
  canaryBehind,
  PROBE_PRINCIPAL,
  type ProbeLine,
  type ProbeSurface,
  runProbe,
} from "../../library/probe.ts";
import type { ServiceApp } from "../../operations/app.ts";
import type { ServiceMetrics } from "../../telemetry/metrics.ts";

/** Probes every configured surface, over loopback if it needs a connection. */
export async function runServerProbe(
  app: ServiceApp,
  gateway: readonly ProbeSurface[] = undriven(app),
): Promise<ProbeLine[]> {
  const served = await serve(app);
  try {
    return await runProbe(app, [...surfacesOf(app, served.client), ...gateway]);
  } finally {
    await served.close();
  }
}

/**
 * Lists the gateway as not probed if this process is a plain server, which does not sit in front of tools even if its
 * configuration names upstreams.
 */
function undriven({ settings }: ServiceApp): ProbeSurface[] {
  const why =
    "this process is not a gateway; svc probe tests one, and so does svc gateway with probe.interval";
  return settings.upstreams.length === 0 ? [] : [{ name: "gateway", open: () => why }];
}

function surfacesOf(app: ServiceApp, client: RemoteSvc): ProbeSurface[] {
  const options = { permissions: [CANARY_PERMISSION], reason: "svc probe" };
  return [
    {
      name: "library",
      open: async () => canaryBehind(app, await libraryRun(app, { actor: PROBE_ACTOR, ...options })),
    },
    { name: "http", open: async () => canaryBehind(app, await client.run(options)) },
  ];
}

async function serve(app: ServiceApp): Promise<{ client: RemoteSvc; close(): Promise<void> }> {
  const key = randomUUID();
  const server = createHttpServer({
    app,
    // The probe's server counts no metrics and has none to show.
    metrics: { content_type: "text/plain", render: async () => "" } as ServiceMetrics,
    authenticate(header) {
      if (header === `Bearer ${key}`) return PROBE_PRINCIPAL;
      throw new SvcError("unauthenticated", "this is the probe's own server");
    },
  });
  const listening: ListeningServer = await startListening(server, "127.0.0.1", 0);
  const client = await connectToServer({ url: listening.url, key });
  return {
    client,
    async close() {
      await client.close();
      await listening.stop();
    },
  };
}

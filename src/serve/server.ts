/** The standalone server: the HTTP surface over a service, listening. */
import type { Service } from "../app/wiring/service.ts";
import { keyFileOf } from "../config/settings.ts";
import { type ConsoleParts, mountConsole } from "../console/mount.ts";
import { type Listening, listen } from "../http/lifecycle.ts";
import type { Answered } from "../http/parts.ts";
import { createHttpServer } from "../http/server.ts";
import { LIMITS } from "../kernel/limits.ts";
import { redactSecrets } from "../model/detect/secrets.ts";
import { createRequestLog } from "../telemetry/request-log.ts";
import { probe } from "./probe.ts";

export async function startServer(
  service: Service,
  { link }: Pick<ConsoleParts, "link"> = {},
): Promise<Listening> {
  const { settings, auth, metrics, log } = service;
  if (keyFileOf(settings) === null && settings.oidc.issuer === null)
    log.warn("no keys and no OIDC issuer are configured: every request will be refused");
  const requestLog = settings.log.requests ? createRequestLog({ redact: redactSecrets }) : null;
  const server = createHttpServer({
    app: service,
    authenticate: (header) => auth.keyHolder(header) ?? auth.authenticate(header),
    named: (name) => auth.named(name),
    metrics,
    answered(request: Answered) {
      metrics.http(request.method, request.route, request.status, request.ms);
      requestLog?.(request);
    },
  });
  try {
    mountConsole(server, { app: service, auth, link });
    const { interval_ms } = settings.probe;
    if (interval_ms > 0) service.background.every(interval_ms, "probing", () => probe(service));
    const listening = await listen(server, settings.listen.host, settings.listen.port);
    return {
      ...listening,
      async stop() {
        const until = performance.now() + LIMITS.stop_ms;
        await listening.stop();
        await service.close(until);
      },
    };
  } catch (error) {
    await service.close();
    throw error;
  }
}

/** Sets up the HTTP surface that the server and the gateway share: authentication, metrics and request log. */
import type { FastifyInstance } from "fastify";
import type { HttpDeps } from "../../http/deps.ts";
import { createHttpServer } from "../../http/server.ts";
import { redactSecrets } from "../../rules/detect/secrets.ts";
import { createRequestLog } from "../../telemetry/request-log.ts";
import type { RunningService } from "../service.ts";
import { loadAhead } from "./preload.ts";

export function httpOf(service: RunningService, more: Pick<HttpDeps, "readiness"> = {}): FastifyInstance {
  const { settings, auth, metrics } = service;
  const requestLog = settings.log.requests ? createRequestLog({ redact: redactSecrets }) : null;
  const server = createHttpServer({
    app: service,
    authenticate: (header) => auth.keyHolder(header) ?? auth.authenticate(header),
    named: (name) => auth.named(name),
    metrics,
    ...more,
    answered(request) {
      metrics.http(request.method, request.route, request.status, request.ms);
      requestLog?.(request);
    },
  });
  loadAhead(server);
  return server;
}

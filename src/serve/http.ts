/** The HTTP surface of a service, as the server and the gateway both have it: its credentials, metrics and request log. */
import type { FastifyInstance } from "fastify";
import type { Service } from "../app/wiring/service.ts";
import type { HttpParts } from "../http/parts.ts";
import { createHttpServer } from "../http/server.ts";
import { redactSecrets } from "../model/detect/secrets.ts";
import { createRequestLog } from "../telemetry/request-log.ts";

export function httpOf(service: Service, more: Pick<HttpParts, "readiness"> = {}): FastifyInstance {
  const { settings, auth, metrics } = service;
  const requestLog = settings.log.requests ? createRequestLog({ redact: redactSecrets }) : null;
  return createHttpServer({
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
}

/**
 * Push delivery of security events (RFC 8935). The transmitter's signature authenticates the request. An accepted event
 * is answered only after it is durable, so that the transmitter sends it again otherwise.
 */
import type { FastifyInstance, FastifyReply } from "fastify";
import { DeliveryError, SecurityEventReceiver } from "../../auth/security-events.ts";
import { SvcError } from "../../kernel/errors.ts";
import type { ServiceApp } from "../../operations/app.ts";
import { applySecurityEvent } from "../../operations/security-events.ts";

const MEDIA_TYPE = /^application\/secevent\+jwt\s*(?:;|$)/i;

export function securityEventRoutes(server: FastifyInstance, app: ServiceApp): void {
  const { settings, egress, core, log } = app;
  const { issuer, audience, jwks_url } = settings.caep;
  const receiver =
    issuer === null || audience === null || jwks_url === null
      ? null
      : new SecurityEventReceiver(
          { issuer, audience, jwks_url },
          { egress, env: core.env, warn: (message, fields) => log.warn(message, fields) },
        );
  server.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body));
    scope.post("/caep/events", async (request, reply) => {
      if (receiver === null)
        throw new SvcError(
          "not_enabled",
          "security events are not enabled: set caep.issuer, audience and jwks_url",
        );
      try {
        if (!MEDIA_TYPE.test(request.headers["content-type"] ?? ""))
          throw new DeliveryError("invalid_request", "send the event as application/secevent+jwt");
        const event = await receiver.receive(typeof request.body === "string" ? request.body.trim() : "");
        await applySecurityEvent(app, event, settings.oidc.issuer ?? event.issuer);
        return reply.code(202).send();
      } catch (error) {
        if (!(error instanceof DeliveryError)) throw error;
        log.warn("security event refused", { code: error.code, problem: error.message });
        return refuse(reply, error);
      }
    });
  });
}

function refuse(reply: FastifyReply, { code, message }: DeliveryError): FastifyReply {
  return reply.code(400).header("content-language", "en").send({ err: code, description: message });
}

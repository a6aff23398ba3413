/** Routes without a credential, and the metrics that may be one of them. */
import type { FastifyInstance } from "fastify";
import { requireRole, wholeService } from "../app/door/access.ts";
import { replicaState } from "../app/operations/status.ts";
import { messageOf } from "../kernel/errors.ts";
import { boundTo } from "../model/roles.ts";
import { PROBE_KEY, type ProbeState } from "../port/docs.ts";
import { openApiDocument } from "./openapi.ts";
import type { HttpParts } from "./parts.ts";

export function openRoutes(
  server: FastifyInstance,
  { app, authenticate, metrics, readiness }: HttpParts,
): void {
  server.get("/healthz", async () => ({ ok: true, version: app.version }));

  server.get("/readyz", async (_request, reply) => {
    const problems: string[] = [];
    try {
      await app.core.store.ready();
    } catch (error) {
      problems.push(messageOf(error));
    }
    const more = await readiness?.();
    problems.push(...(more?.problems ?? []));
    const probed = (await app.core.store.get("meta", PROBE_KEY).catch(() => undefined)) as
      | ProbeState
      | undefined;
    const probe =
      probed === undefined
        ? {}
        : { probe: { age_ms: Math.max(0, app.core.env.now() - probed.at_ms), broken: probed.broken } };
    const ok = problems.length === 0;
    return reply.code(ok ? 200 : 503).send({
      ok,
      store: app.core.store.kind,
      version: app.version,
      problems,
      ...probe,
      ...replicaState(app.core.store),
      ...more?.facts,
    });
  });

  server.get("/metrics", async (request, reply) => {
    if (!app.settings.metrics_public) {
      const principal = await authenticate(request.headers.authorization);
      request.principal = principal;
      requireRole(principal, "auditor");
      if (boundTo(principal) !== null) throw wholeService(principal);
    }
    return reply.header("content-type", metrics.content_type).send(await metrics.render());
  });

  let document: string | undefined;
  server.get("/openapi.json", async (_request, reply) => {
    document ??= JSON.stringify(openApiDocument(app.version));
    return reply.header("content-type", "application/json; charset=utf-8").send(document);
  });
}

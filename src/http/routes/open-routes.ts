/** Routes that need no credential, and `/metrics`, which needs one unless the settings make it public. */
import type { FastifyInstance } from "fastify";
import { tenantBinding } from "../../govern/roles.ts";
import { authzenMetadata } from "../../operations/authzen/public-url.ts";
import { requireRole, serviceWideOnly } from "../../operations/pipeline/access.ts";
import { clockState, lastProbe, replicaState, storeKind, storeProblem } from "../../operations/status.ts";
import type { HttpDeps } from "../deps.ts";
import { openApiDocument } from "./openapi.ts";
import { securityEventRoutes } from "./security-events.ts";

export function openRoutes(
  server: FastifyInstance,
  { app, authenticate, metrics, readiness }: HttpDeps,
): void {
  server.get("/healthz", async () => ({ ok: true, version: app.version }));

  server.get("/readyz", async (_request, reply) => {
    const problem = await storeProblem(app);
    const problems = problem === undefined ? [] : [problem];
    const more = await readiness?.();
    problems.push(...(more?.problems ?? []));
    const probed = await lastProbe(app);
    const probe =
      probed === undefined
        ? {}
        : { probe: { age_ms: Math.max(0, app.core.env.now() - probed.at_ms), broken: probed.broken } };
    const ok = problems.length === 0;
    return reply.code(ok ? 200 : 503).send({
      ok,
      store: storeKind(app),
      version: app.version,
      problems,
      ...probe,
      ...replicaState(app),
      ...clockState(app),
      ...more?.facts,
    });
  });

  server.get("/metrics", async (request, reply) => {
    if (!app.settings.metrics_public) {
      const principal = await authenticate(request.headers.authorization);
      request.principal = principal;
      requireRole(principal, "auditor");
      if (tenantBinding(principal) !== null) throw serviceWideOnly(principal);
    }
    return reply.header("content-type", metrics.content_type).send(await metrics.render());
  });

  server.get("/.well-known/authzen-configuration", async () => authzenMetadata(app));

  securityEventRoutes(server, app);

  let document: string | undefined;
  server.get("/openapi.json", async (_request, reply) => {
    document ??= JSON.stringify(openApiDocument(app.version));
    return reply.header("content-type", "application/json; charset=utf-8").send(document);
  });
}

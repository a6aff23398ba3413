/** Serves one route for each row of the table: authenticates, runs the operation, sends the answer. */
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { runInSlices } from "../../child-process/event-loop-slices.ts";
import type { CallerPrincipal } from "../../govern/roles.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { jsonTextInSteps } from "../../kernel/json/json-text.ts";
import { isLargeValue } from "../../kernel/json/large-value-cache.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { ServiceApp } from "../../operations/app.ts";
import { dispatchOperation } from "../../operations/pipeline/dispatch.ts";
import { DocumentContent, JsonText } from "../../operations/pipeline/operation.ts";
import type { HttpRow } from "../api/http-row.ts";
import { PROBLEM_HEADER } from "../api/http-row.ts";
import { HTTP_TABLE } from "../api/http-table.ts";
import { readRequest } from "../api/read-request.ts";
import type { HttpDeps } from "../deps.ts";
import { HttpCaller } from "../request/caller.ts";

export function operationRoutes(server: FastifyInstance, { app, authenticate }: HttpDeps): void {
  for (const row of HTTP_TABLE) {
    server.route({
      method: row.method,
      url: routeOf(row),
      exposeHeadRoute: false,
      // Runs before the body is read, so the body of an unauthenticated caller is never parsed.
      onRequest(request, _reply, done) {
        request.admitted_at = performance.now();
        const found = authenticate(request.headers.authorization);
        if (found instanceof Promise) found.then((principal) => letIn(app, request, principal, done), done);
        else letIn(app, request, found, done);
      },
      handler: (request, reply) => answer(app, authenticate, row, request, reply),
    });
  }
}

/** The path in the router's notation, which metrics and logs also use. */
export const routeOf = (row: HttpRow): string => ROUTES.get(row)!;

const ROUTES: ReadonlyMap<HttpRow, string> = new Map(
  HTTP_TABLE.map((row) => [row, row.path.replaceAll(/\{(\w+)\}/g, ":$1")]),
);

function letIn(
  { quotas }: ServiceApp,
  request: FastifyRequest,
  principal: CallerPrincipal,
  done: (error?: Error) => void,
): void {
  request.principal = principal;
  let refused: Error | undefined;
  try {
    quotas?.admit(principal);
  } catch (error) {
    refused = error as Error;
  }
  done(refused);
}

async function answer(
  app: ServiceApp,
  authenticate: HttpDeps["authenticate"],
  row: HttpRow,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const again = () => authenticate(request.headers.authorization);
  // The body arrived slowly, so the caller's authority may have changed since the first check.
  if (performance.now() - request.admitted_at > SERVICE_LIMITS.look_again_ms)
    request.principal = await again();
  const caller = new HttpCaller(app, request.principal!, again, request.headers, reply.raw);
  const { input, complaint } = readRequest(row, {
    params: request.params as Record<string, unknown>,
    query: request.query as Record<string, unknown>,
    headers: request.headers,
    body: request.body,
  });
  const answer = (await dispatchOperation(row.op, caller, input, complaint)) as object;
  // A cache must not show one role's data to the next caller.
  if (row.method === "GET") reply.header("cache-control", "no-store");
  reply.code(row.also.find(({ is }) => is(answer))?.status ?? row.status);
  if (answer instanceof DocumentContent) return sendContent(reply, answer);
  if (answer instanceof JsonText) return reply.type("application/json; charset=utf-8").send(answer.body);
  if (!isLargeValue(answer as JsonValue)) return reply.send(answer);
  const text = await runInSlices(jsonTextInSteps(answer as JsonValue));
  return reply.type("application/json; charset=utf-8").send(text);
}

function sendContent(reply: FastifyReply, content: DocumentContent): FastifyReply {
  reply.header("content-type", content.type);
  reply.header("x-content-type-options", "nosniff");
  if (content.filename !== undefined)
    reply.header("content-disposition", `attachment; filename="${content.filename}"`);
  if (content.problem !== undefined) reply.header(PROBLEM_HEADER, encodeURIComponent(content.problem));
  const { body } = content;
  return reply.send(typeof body === "string" || body instanceof Uint8Array ? body : Readable.from(body));
}

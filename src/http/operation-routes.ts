/** One route per row of the table: authenticate, perform, send. */
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { readRequest } from "../api/read-request.ts";
import type { Row } from "../api/row.ts";
import { PROBLEM_HEADER } from "../api/row.ts";
import { HTTP_TABLE } from "../api/table.ts";
import type { App } from "../app/app.ts";
import { Content, JsonText } from "../app/door/operation.ts";
import { perform } from "../app/door/perform.ts";
import type { Json } from "../kernel/json.ts";
import { writingJson } from "../kernel/json-text.ts";
import { isLargeValue } from "../kernel/large-values.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { Principal } from "../model/roles.ts";
import { doInTurns } from "../process/turns.ts";
import { HttpCaller } from "./caller.ts";
import type { HttpParts } from "./parts.ts";

export function operationRoutes(server: FastifyInstance, { app, authenticate }: HttpParts): void {
  for (const row of HTTP_TABLE) {
    server.route({
      method: row.method,
      url: routeOf(row),
      exposeHeadRoute: false,
      // Before the body is read: a stranger's megabyte is not parsed.
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

/** As the router writes it, and metrics and logs name it. */
export const routeOf = ({ path }: Row): string => path.replaceAll(/\{(\w+)\}/g, ":$1");

function letIn(
  { quotas }: App,
  request: FastifyRequest,
  principal: Principal,
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
  app: App,
  authenticate: HttpParts["authenticate"],
  row: Row,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const again = () => authenticate(request.headers.authorization);
  // A body that took its time: authority may have changed since it was asked for.
  if (performance.now() - request.admitted_at > LIMITS.look_again_ms) request.principal = await again();
  const caller = new HttpCaller(app, request.principal!, again, request.headers, reply.raw);
  const { input, complaint } = readRequest(row, {
    params: request.params as Record<string, unknown>,
    query: request.query as Record<string, unknown>,
    headers: request.headers,
    body: request.body,
  });
  const answer = (await perform(row.op, caller, input, complaint)) as object;
  // What a role may read, a cache must not show to the next one.
  if (row.method === "GET") reply.header("cache-control", "no-store");
  reply.code(row.also.find(({ is }) => is(answer))?.status ?? row.status);
  if (answer instanceof Content) return sendContent(reply, answer);
  if (answer instanceof JsonText) return reply.type("application/json; charset=utf-8").send(answer.text);
  if (!isLargeValue(answer as Json)) return reply.send(answer);
  const text = await doInTurns(writingJson(answer as Json));
  return reply.type("application/json; charset=utf-8").send(text);
}

function sendContent(reply: FastifyReply, content: Content): FastifyReply {
  reply.header("content-type", content.type);
  reply.header("x-content-type-options", "nosniff");
  if (content.filename !== undefined)
    reply.header("content-disposition", `attachment; filename="${content.filename}"`);
  if (content.problem !== undefined) reply.header(PROBLEM_HEADER, encodeURIComponent(content.problem));
  const { body } = content;
  return reply.send(typeof body === "string" || body instanceof Uint8Array ? body : Readable.from(body));
}

/** One route per row of the table: authenticate, perform, send. */
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { readRequest } from "../api/read-request.ts";
import type { Row } from "../api/row.ts";
import { PROBLEM_HEADER } from "../api/row.ts";
import { HTTP_TABLE } from "../api/table.ts";
import type { App } from "../app/app.ts";
import { type Caller, Content, JsonText } from "../app/operation.ts";
import { perform } from "../app/perform.ts";
import type { Principal } from "../model/roles.ts";
import type { HttpParts } from "./parts.ts";

export function operationRoutes(server: FastifyInstance, { app, authenticate }: HttpParts): void {
  for (const row of HTTP_TABLE) {
    server.route({
      method: row.method,
      url: row.path.replaceAll(/\{(\w+)\}/g, ":$1"),
      exposeHeadRoute: false,
      // Before the body is read: a stranger's megabyte is not parsed.
      onRequest(request, _reply, done) {
        const found = authenticate(request.headers.authorization);
        if (found instanceof Promise) void letIn(request, found, done);
        else {
          request.principal = found;
          done();
        }
      },
      handler: (request, reply) => answer(app, row, request, reply),
    });
  }
}

function letIn(
  request: FastifyRequest,
  found: Promise<Principal>,
  done: (error?: Error) => void,
): Promise<void> {
  return found.then((principal) => {
    request.principal = principal;
    done();
  }, done);
}

async function answer(app: App, row: Row, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  const caller: Caller = { app, principal: request.principal!, signal: goneSignal(request, row) };
  const { input, complaint } = readRequest(row, {
    params: request.params as Record<string, unknown>,
    query: request.query as Record<string, unknown>,
    headers: request.headers,
    body: request.body,
  });
  const answer = (await perform(row.op, caller, input, complaint)) as object;
  reply.code(row.also.find(({ is }) => is(answer))?.status ?? row.status);
  if (answer instanceof Content) return sendContent(reply, answer);
  if (answer instanceof JsonText) return reply.type("application/json; charset=utf-8").send(answer.text);
  return reply.send(answer);
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

const NEVER = new AbortController().signal;

/** Only a call that waits listens for the client's departure; the others pay nothing for it. */
function goneSignal(request: FastifyRequest, row: Row): AbortSignal {
  if (row.op.waits !== true) return NEVER;
  const gone = new AbortController();
  request.raw.socket.once("close", () => gone.abort());
  return gone.signal;
}

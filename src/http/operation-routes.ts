/** One route per operation: authenticate, perform, send. */
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { App } from "../app/app.ts";
import { type Call, Content, type Operation } from "../app/operation.ts";
import { OPERATIONS } from "../app/operations/index.ts";
import { perform } from "../app/perform.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { Principal } from "../model/roles.ts";
import type { HttpParts } from "./parts.ts";

export function operationRoutes(server: FastifyInstance, { app, authenticate }: HttpParts): void {
  for (const op of OPERATIONS) {
    server.route({
      method: op.method,
      url: op.path.replaceAll(/\{(\w+)\}/g, ":$1"),
      exposeHeadRoute: false,
      // Before the body is read: a stranger's megabyte is not parsed.
      onRequest(request, _reply, done) {
        request.admitted_at = performance.now();
        const found = authenticate(request.headers.authorization);
        if (found instanceof Promise) void letIn(request, found, done);
        else {
          request.principal = found;
          done();
        }
      },
      handler: (request, reply) => answer(app, authenticate, op, request, reply),
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

async function answer(
  app: App,
  authenticate: HttpParts["authenticate"],
  op: Operation,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const again = () => authenticate(request.headers.authorization);
  // A body that took its time: authority may have changed since it was asked for.
  if (performance.now() - request.admitted_at > LIMITS.look_again_ms) request.principal = await again();
  const call = new HttpCall(app, request, reply, again);
  const body = await perform(op, call, {
    params: request.params as Record<string, unknown>,
    query: request.query as Record<string, unknown>,
    body: request.body,
  });
  reply.code(call.status ?? op.status);
  return body instanceof Content ? sendContent(reply, body) : reply.send(body);
}

function sendContent(reply: FastifyReply, content: Content): FastifyReply {
  reply.header("content-type", content.type);
  reply.header("x-content-type-options", "nosniff");
  if (content.filename !== undefined)
    reply.header("content-disposition", `attachment; filename="${content.filename}"`);
  const { body } = content;
  return reply.send(typeof body === "string" || body instanceof Uint8Array ? body : Readable.from(body));
}

const single = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value[0] : value;

class HttpCall implements Call {
  readonly app: App;
  readonly principal: Principal;
  readonly again: () => Principal | Promise<Principal>;
  readonly headers: Call["headers"];
  status?: number;
  private readonly response: FastifyReply["raw"];
  private gone: AbortSignal | undefined;

  constructor(app: App, request: FastifyRequest, reply: FastifyReply, again: HttpCall["again"]) {
    const { headers } = request;
    this.app = app;
    this.principal = request.principal!;
    this.again = again;
    this.headers = {
      idempotency_key: single(headers["idempotency-key"]),
      if_match: headers["if-match"],
      accept: headers.accept,
    };
    this.response = reply.raw;
  }

  /** Made when it is asked for: an operation that is over at once pays nothing for it. */
  get signal(): AbortSignal {
    this.gone ??= goneSignal(this.response);
    return this.gone;
  }
}

/** Aborts when the client leaves. It hangs on the answer, not on a connection that carries many of them. */
function goneSignal(response: FastifyReply["raw"]): AbortSignal {
  const gone = new AbortController();
  if (response.destroyed) gone.abort();
  else response.once("close", () => gone.abort());
  return gone.signal;
}

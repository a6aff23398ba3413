/** HTTP surface of a witness: the two routes of C2SP tlog-witness, and no routes of the service. */
import fastify, { type FastifyInstance } from "fastify";
import type { LogWitness } from "../../evidence/witness/witness.ts";
import { NO_SCHEMAS } from "../no-schemas.ts";

const MAX_BODY = 131_072;

export function createWitnessServer(witness: LogWitness, failed: (error: Error) => void): FastifyInstance {
  const server = fastify({ ...NO_SCHEMAS, bodyLimit: MAX_BODY, logger: false });
  server.removeAllContentTypeParsers();
  server.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  server.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) => {
    const status = error.statusCode ?? 500;
    // A witness signs nothing that it could not store first, so nothing was cosigned here.
    if (status >= 500) failed(error);
    const text =
      status >= 500 ? "this witness cannot store its state now; nothing was signed" : error.message;
    return reply.code(status).type("text/plain; charset=utf-8").send(`${text}\n`);
  });
  server.setNotFoundHandler((_request, reply) =>
    reply.code(404).type("text/plain; charset=utf-8").send("not found\n"),
  );
  server.post("/add-checkpoint", (request, reply) => {
    const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
    const { status, type, text } = witness.addCheckpoint(body);
    return reply.code(status).header("content-type", type).send(text);
  });
  server.get<{ Params: { hash: string } }>("/:hash/checkpoint", (request, reply) => {
    const note = witness.checkpointOf(request.params.hash);
    reply.type("text/plain; charset=utf-8");
    return note === undefined
      ? reply.code(404).send("this witness has not cosigned a checkpoint of that log\n")
      : reply.send(note);
  });
  return server;
}

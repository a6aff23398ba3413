/** A server that is stopping answers requests that still arrive on an open connection, and closes the connection. */
import { once } from "node:events";
import { connect } from "node:net";
import { expect, it } from "vitest";
import { startListening } from "../../src/http/lifecycle.ts";
import { testServer } from "../support/server.ts";
import { aMoment, until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

it("a request on an open connection of a stopping server is answered and recorded", async () => {
  verifies("beyond.cluster.stopping");
  const { http, app } = await testServer();
  const { port } = await startListening(http, "127.0.0.1", 0);
  const body = JSON.stringify({ run_id: "late", permissions: ["crm.read"] });
  const request = `POST /v1/runs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer agent\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
  });
  // A connection with half a request is not idle, so it stays.
  socket.write(request.slice(0, 20));
  await until(async () => (await connections(http.server)) === 1, "the connection");
  await aMoment();
  const ended = once(socket, "end");
  const closed = http.close();
  await until(() => !http.server.listening, "the server to stop listening");
  socket.write(request.slice(20));
  await ended;
  await closed;
  expect(text).toMatch(/^HTTP\/1\.1 201 /);
  expect(text).toMatch(/\r\nconnection: close\r\n/i);
  expect(await app.core.store.get("runs", "late")).toMatchObject({ run_id: "late" });
});

function connections(server: import("node:http").Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
  });
}

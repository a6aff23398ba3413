/** Receivers on loopback that store every received byte for the test. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";

export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string;
}

export interface Receiver {
  readonly port: number;
  readonly received: Received[];
  /** How many sockets were opened to it: none, where a destination was refused. */
  connections(): number;
  url(path?: string, host?: string): string;
  close(): Promise<void>;
}

export type Answer = (request: Received, response: ServerResponse, count: number) => void;

const ok: Answer = (_request, response) => response.end("ok");

export async function startReceiver(answer: Answer = ok, tls?: { key: string; cert: string }): Promise<Receiver> {
  const received: Received[] = [];
  let connections = 0;
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString("utf8");
      const headers = request.headers as Record<string, string>;
      const got = { method: request.method ?? "", path: request.url ?? "", headers, body };
      received.push(got);
      answer(got, response, received.length);
    });
  };
  const server: Server = tls === undefined ? createServer(handle) : createTlsServer(tls, handle);
  server.on("connection", () => connections++);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const scheme = tls === undefined ? "http" : "https";
  return {
    port,
    received,
    connections: () => connections,
    url: (path = "/", host = "127.0.0.1") => `${scheme}://${host}:${port}${path}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

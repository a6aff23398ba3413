/** Starts and stops a listener. Stopping lets the requests in progress finish. */
import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { SERVICE_LIMITS } from "../kernel/limits.ts";

export interface ListeningServer {
  url: string;
  port: number;
  /** Accepts no new requests, gives those in progress limited time to finish, then closes. */
  stop(): Promise<void>;
}

export async function startListening(
  server: FastifyInstance,
  host: string,
  port: number,
): Promise<ListeningServer> {
  await server.listen({ host, port, backlog: SERVICE_LIMITS.connection_backlog });
  const address = server.server.address() as AddressInfo;
  const shown = address.family === "IPv6" ? `[${address.address}]` : address.address;
  return {
    url: `http://${shown}:${address.port}`,
    port: address.port,
    async stop() {
      const forced = setTimeout(() => server.server.closeAllConnections(), SERVICE_LIMITS.drain_ms);
      try {
        await server.close();
      } finally {
        clearTimeout(forced);
      }
    },
  };
}

/** Starting and stopping a listener: what was answered is recorded, and what is under way may finish. */
import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { LIMITS } from "../kernel/limits.ts";

export interface Listening {
  url: string;
  port: number;
  /** Takes no new requests, lets those under way finish for a while, then closes. */
  stop(): Promise<void>;
}

export async function listen(server: FastifyInstance, host: string, port: number): Promise<Listening> {
  await server.listen({ host, port, backlog: LIMITS.connection_backlog });
  const address = server.server.address() as AddressInfo;
  const shown = address.family === "IPv6" ? `[${address.address}]` : address.address;
  return {
    url: `http://${shown}:${address.port}`,
    port: address.port,
    async stop() {
      const forced = setTimeout(() => server.server.closeAllConnections(), LIMITS.drain_ms);
      try {
        await server.close();
      } finally {
        clearTimeout(forced);
      }
    },
  };
}

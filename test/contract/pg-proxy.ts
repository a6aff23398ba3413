/**
 * A wire between the store and PostgreSQL that can lose what goes over it, at the one moment that
 * matters: a COMMIT is on its way, or its answer is.
 */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/** A simple-query message `COMMIT`, and the server's answer to one. */
const COMMIT = Buffer.from("Q\0\0\0\x0bCOMMIT\0", "latin1");
const COMMITTED = Buffer.from("C\0\0\0\x0bCOMMIT\0", "latin1");

/**
 * answer: the server commits and the connection dies before it can say so.
 * question: the connection dies before the COMMIT arrives, and the server notices.
 * half-open: the same, and the server does not notice.
 * late: the connection dies for the client, and the COMMIT arrives a while later.
 */
export type Loss = "answer" | "question" | "half-open" | "late";

export class PgProxy {
  readonly url: string;
  /** What to lose next; happens once. */
  lose: Loss | undefined;
  /** How long each message of the client is on its way: a slow link. */
  lag_ms = 0;
  private readonly sockets = new Set<Socket>();
  private readonly close: () => void;

  private constructor(url: string, close: () => void) {
    this.url = url;
    this.close = close;
  }

  static async start(target: string): Promise<PgProxy> {
    const { hostname, port } = new URL(target);
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const own = new URL(target);
    own.port = String((server.address() as { port: number }).port);
    const proxy = new PgProxy(own.href, () => server.close());
    server.on("connection", (client) => proxy.join(client, connect(Number(port), hostname)));
    return proxy;
  }

  stop(): void {
    this.close();
    for (const socket of this.sockets) socket.destroy();
  }

  /** Hands the chunks over in their order, each as late as the link is slow. */
  private lagging(client: Socket, take: (chunk: Buffer) => void): void {
    let before = Promise.resolve();
    client.on("data", (chunk) => {
      if (this.lag_ms === 0) return take(chunk);
      const arrived = new Promise<void>((resolve) => setTimeout(resolve, this.lag_ms));
      before = Promise.all([before, arrived]).then(() => take(chunk));
    });
  }

  private join(client: Socket, server: Socket): void {
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        this.sockets.delete(socket);
        if (!held.has(other)) other.destroy();
      });
    }
    const held = new Set<Socket>();
    let losing: Loss | undefined;
    this.lagging(client, (chunk) => {
      const at = chunk.indexOf(COMMIT);
      if (this.lose === undefined || at === -1) return void server.write(chunk);
      losing = this.lose;
      this.lose = undefined;
      if (losing === "answer") return void server.write(chunk);
      // All but the COMMIT arrives: the server has everything it would need.
      server.write(chunk.subarray(0, at));
      if (losing === "question") return client.destroy();
      held.add(server);
      client.destroy();
      if (losing === "late") setTimeout(() => server.end(chunk.subarray(at)), 300);
    });
    server.on("data", (chunk) => {
      if (losing === undefined) client.write(chunk);
      else if (losing === "answer" && chunk.includes(COMMITTED)) client.destroy();
    });
  }
}

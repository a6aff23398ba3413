/**
 * A pooler in transaction mode between the store and PostgreSQL: many clients share few server connections, each for one
 * transaction. State of a session reaches another client, or nobody.
 */
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import pg from "pg";

/** AuthenticationOk, and a key to cancel with that no server has given out. */
const greeting = (): Buffer => {
  const key = Buffer.from("R\0\0\0\x08\0\0\0\0K\0\0\0\x0c________", "latin1");
  key.writeInt32BE(randomInt(1, 2 ** 31), 14);
  key.writeInt32BE(randomInt(1, 2 ** 31), 18);
  return Buffer.concat([key, Buffer.from("Z\0\0\0\x05I", "latin1")]);
};
/** Messages of the client that the server answers with "ready": a simple query, and the end of an extended one. */
const ASKS = new Set(["Q".charCodeAt(0), "S".charCodeAt(0)]);
const READY = "Z".charCodeAt(0);
const IDLE = "I".charCodeAt(0);
const GOODBYE = "X".charCodeAt(0);

/** Cuts a stream into messages: a type, and a length that counts itself. */
function messages(take: (message: Buffer) => void): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0);
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 5 && rest.length > rest.readInt32BE(1)) {
      const length = 1 + rest.readInt32BE(1);
      take(rest.subarray(0, length));
      rest = rest.subarray(length);
    }
  };
}

interface Backend {
  socket: Socket;
  client: PooledClient | undefined;
}

export class PgPooler {
  readonly url: string;
  private readonly target: string;
  private readonly listening: Server;
  private readonly clients = new Set<PooledClient>();
  private readonly backends = new Set<Backend>();
  private readonly idle: Backend[] = [];
  private readonly queue: PooledClient[] = [];
  private places: number;

  private constructor(target: string, places: number, listening: Server) {
    this.target = target;
    this.places = places;
    this.listening = listening;
    const own = new URL(target);
    own.port = String((listening.address() as { port: number }).port);
    this.url = own.href;
  }

  static async start(target: string, places: number): Promise<PgPooler> {
    const listening = createServer();
    listening.listen(0, "127.0.0.1");
    await once(listening, "listening");
    const pooler = new PgPooler(target, places, listening);
    listening.on("connection", (socket) => void pooler.clients.add(new PooledClient(socket, pooler)));
    return pooler;
  }

  stop(): void {
    this.listening.close();
    for (const { socket } of [...this.clients, ...this.backends]) socket.destroy();
  }

  /** Hands out a server connection, the last used first, as soon as one is free. */
  lend(client: PooledClient): void {
    this.queue.push(client);
    if (this.idle.length === 0 && this.places > 0) {
      this.places--;
      void this.connect();
    }
    this.serve();
  }

  giveBack(backend: Backend): void {
    backend.client = undefined;
    if (!this.backends.has(backend)) return;
    this.idle.push(backend);
    this.serve();
  }

  /** A transaction that nobody ends is ended with its connection. */
  leave(client: PooledClient, backend: Backend | undefined): void {
    this.clients.delete(client);
    const at = this.queue.indexOf(client);
    if (at !== -1) this.queue.splice(at, 1);
    backend?.socket.destroy();
  }

  private serve(): void {
    while (this.idle.length > 0 && this.queue.length > 0) {
      const backend = this.idle.pop()!;
      backend.client = this.queue.shift()!;
      backend.client.use(backend);
    }
  }

  private async connect(): Promise<void> {
    const driver = new pg.Client(this.target);
    driver.on("error", () => {});
    await driver.connect();
    // The driver has done the handshake; from here on the connection is ours.
    const { stream } = (driver as unknown as { connection: { stream: Socket } }).connection;
    const socket = stream.removeAllListeners("data").removeAllListeners("end").removeAllListeners("close");
    const backend: Backend = { socket: socket.setNoDelay(), client: undefined };
    this.backends.add(backend);
    socket.on("error", () => {});
    socket.on("close", () => {
      this.backends.delete(backend);
      const at = this.idle.indexOf(backend);
      if (at !== -1) this.idle.splice(at, 1);
      backend.client?.socket.destroy();
      this.places++;
      if (this.queue.length > 0) this.lend(this.queue.shift()!);
    });
    socket.on(
      "data",
      messages((message) => backend.client?.hear(message)),
    );
    this.giveBack(backend);
  }
}

class PooledClient {
  readonly socket: Socket;
  private readonly pooler: PgPooler;
  private backend: Backend | undefined;
  private isWaiting = false;
  private held: Buffer[] = [];
  /** Questions that the server has not answered yet. */
  private open = 0;

  constructor(socket: Socket, pooler: PgPooler) {
    this.socket = socket.setNoDelay();
    this.pooler = pooler;
    socket.on("error", () => {});
    socket.on("close", () => pooler.leave(this, this.backend));
    // The first message is the greeting, which has no type and fits into one packet.
    socket.once("data", () => {
      socket.write(greeting());
      socket.on(
        "data",
        messages((message) => this.say(message)),
      );
    });
  }

  use(backend: Backend): void {
    this.isWaiting = false;
    this.backend = backend;
    for (const message of this.held.splice(0)) this.say(message);
  }

  hear(message: Buffer): void {
    this.socket.write(message);
    if (message[0] !== READY) return;
    this.open--;
    if (this.open > 0 || message[5] !== IDLE) return;
    const backend = this.backend!;
    this.backend = undefined;
    this.pooler.giveBack(backend);
  }

  private say(message: Buffer): void {
    if (message[0] === GOODBYE) return void this.socket.end();
    if (this.backend === undefined) {
      this.held.push(message);
      if (!this.isWaiting) {
        this.isWaiting = true;
        this.pooler.lend(this);
      }
      return;
    }
    if (ASKS.has(message[0]!)) this.open++;
    this.backend.socket.write(message);
  }
}

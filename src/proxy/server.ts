/**
 * The HTTP/1.1 proxy. A tunnel to a named host is opened with the run's own authority, and its requests are governed; a
 * tunnel to another host is one call of `net.connect`, passed on unread.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { isIP, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { startTimer } from "../kernel/env.ts";
import { messageOf, SvcError } from "../kernel/errors.ts";
import { type HttpOrigin, splitHost } from "../rules/http/routes.ts";
import { readClientHello } from "./client-hello.ts";
import { isNamedHost, type ProxyDeps } from "./deps.ts";
import type { ProxyCaller } from "./governed.ts";
import {
  handleGovernedRequest,
  handleUpgrade,
  joinSockets,
  type ReceivedRequest,
} from "./governed-request.ts";
import { connectThrough, passRequest } from "./net-connect.ts";
import { answerError, credentialRefusal, ProxyRefusal, responseOn } from "./wire.ts";

/** The tunnel that a decrypted connection came through. */
interface OpenTunnel {
  readonly origin: HttpOrigin;
  readonly caller: ProxyCaller;
}

const SERVER_OPTIONS = {
  requestTimeout: 0,
  headersTimeout: 30_000,
  keepAliveTimeout: 60_000,
  maxHeaderSize: 65_536,
};

/** How long a client may take to read why it is refused. */
const REFUSAL_MS = 5_000;

export class GoverningProxy {
  /** Also serves the connections in opened tunnels, so that its time limits hold there. */
  readonly server: Server;
  private readonly deps: ProxyDeps;
  private readonly tunnels = new WeakMap<Duplex, OpenTunnel>();
  private readonly sockets = new Set<Duplex>();
  private readonly underway = new Set<Promise<void>>();

  constructor(deps: ProxyDeps) {
    this.deps = deps;
    this.server = createServer(SERVER_OPTIONS);
    this.server.on("request", (request, response) =>
      this.answer(request, response, this.handle(request, response)),
    );
    this.server.on("connect", (request, socket, head) => this.onConnect(request, socket as Socket, head));
    this.server.on("upgrade", (request, socket, head) => this.onUpgrade(request, socket as Socket, head));
    this.server.on("clientError", (error, socket) => refuseUnreadable(error, socket));
    this.server.on("connection", (socket) => this.keep(socket));
  }

  /** Ends all connections, after the calls under way have recorded their outcomes. */
  async close(): Promise<void> {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
    await Promise.allSettled([...this.underway]);
    this.deps.exchange.close();
  }

  private keep(socket: Duplex): void {
    this.sockets.add(socket);
    socket.once("close", () => this.sockets.delete(socket));
    socket.on("error", () => socket.destroy());
  }

  private answer(request: IncomingMessage, response: ServerResponse, work: Promise<void>): void {
    const done = work
      .catch((error: unknown) => answerError(this.deps.log, request, response, error))
      .finally(() => this.underway.delete(done));
    this.underway.add(done);
  }

  private async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const received = await this.receive(request, response);
    if (this.tunnels.has(request.socket) || isNamedHost(this.deps, received.origin))
      await handleGovernedRequest(this.deps, received);
    else await passRequest(this.deps, received);
  }

  private async receive(request: IncomingMessage, response: ServerResponse): Promise<ReceivedRequest> {
    const opened = this.tunnels.get(request.socket);
    return opened === undefined
      ? this.receivePlain(request, response)
      : receiveOpened(opened, request, response);
  }

  /** A request to the proxy itself, with the whole address in its request line. */
  private async receivePlain(request: IncomingMessage, response: ServerResponse): Promise<ReceivedRequest> {
    const caller = await this.deps.identify(request.headers["proxy-authorization"]);
    const match = /^http:\/\/([^/?#@\s]+)(\/[^\s]*)?$/i.exec(request.url ?? "");
    if (match === null)
      throw new ProxyRefusal("invalid", "this is a proxy: send the whole address, or CONNECT for https");
    const { name, port = 80 } = splitHost(match[1]!);
    if (name === "" || port > 65_535) throw new ProxyRefusal("invalid", "the address holds no valid host");
    return {
      origin: { scheme: "http", host: name, port },
      target: match[2] ?? "/",
      caller,
      request,
      response,
    };
  }

  private onUpgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const response = responseOn(request, socket);
    this.answer(
      request,
      response,
      this.receive(request, response).then(async (received) => {
        if (!isNamedHost(this.deps, received.origin))
          throw new ProxyRefusal("forbidden", "upgrades to a host without a manifest go through CONNECT");
        await handleUpgrade(this.deps, received, socket, head);
      }),
    );
  }

  private onConnect(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const response = responseOn(request, socket);
    this.answer(request, response, this.tunnel(request, response, socket, head));
  }

  private async tunnel(request: IncomingMessage, response: ServerResponse, socket: Socket, head: Buffer) {
    if (this.tunnels.has(socket))
      throw new ProxyRefusal("invalid", "a tunnel leads to one host; open another one for another host");
    const caller = await this.deps.identify(request.headers["proxy-authorization"]);
    const { name, port } = splitHost(request.url ?? "");
    if (name === "" || port === undefined || port < 1 || port > 65_535)
      throw new ProxyRefusal("invalid", "CONNECT needs a host and a port, such as api.example.com:443");
    const origin: HttpOrigin = { scheme: "https", host: name, port };
    const isNamed = isNamedHost(this.deps, origin);
    if (isNamed && !this.deps.authority.covers(name, this.deps.now()))
      throw new ProxyRefusal(
        "unavailable",
        `${name} was named after the proxy started, or its authority has expired; restart the proxy`,
      );
    const upstream = isNamed ? undefined : await connectThrough(this.deps, caller, origin, socket);
    response.detachSocket(socket);
    socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
    const hello = await readClientHello(socket, head);
    const problem = "problem" in hello ? hello.problem : nameProblem(name, hello.server_name);
    if (problem !== null || "problem" in hello) {
      this.deps.log.warn("tunnel refused", { host: name, problem });
      upstream?.destroy();
      socket.end(refusalText(problem!));
      return;
    }
    if (upstream === undefined) return this.open({ origin, caller }, socket, hello.bytes);
    upstream.write(hello.bytes);
    this.keep(upstream);
    joinSockets(socket, upstream);
  }

  /** Ends TLS here, with a certificate of the run's authority. */
  private open(tunnel: OpenTunnel, socket: Socket, hello: Buffer): void {
    socket.unshift(hello);
    const secureContext = this.deps.authority.contextFor(tunnel.origin.host, this.deps.now());
    const opened = new TLSSocket(socket, { isServer: true, secureContext, ALPNProtocols: ["http/1.1"] });
    this.tunnels.set(opened, tunnel);
    this.server.emit("connection", opened);
  }
}

/** A request that came through an opened tunnel. */
function receiveOpened(
  { origin, caller }: OpenTunnel,
  request: IncomingMessage,
  response: ServerResponse,
): ReceivedRequest {
  if (!caller.isCurrent()) throw credentialRefusal("the proxy credential has expired or was disabled");
  return { origin, target: request.url ?? "", caller, request, response };
}

/** The greeting must name the host that was asked for. An address needs no name. */
function nameProblem(host: string, greeted: string | null): string | null {
  if (greeted === host || (greeted === null && isIP(host) !== 0)) return null;
  return greeted === null
    ? "the TLS greeting names no server; it must name the host of the tunnel"
    : "the TLS greeting names another server than the host of the tunnel";
}

const refusalText = (problem: string): string => {
  const body = `${JSON.stringify({ error: problem })}\n`;
  return `HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`;
};

/** Handles requests that the parser rejects, such as two lengths of one body. */
function refuseUnreadable(error: Error, socket: Duplex): void {
  const code = (error as NodeJS.ErrnoException).code ?? "";
  if (!socket.writable || code === "ECONNRESET" || error instanceof SvcError) {
    socket.destroy();
    return;
  }
  const isParser = code.startsWith("HPE_");
  // A client that reads nothing, or never ends its TLS handshake, is not waited for.
  const stopTimer = startTimer(REFUSAL_MS, () => socket.destroy());
  socket.once("close", stopTimer);
  socket.end(
    refusalText(
      isParser ? `the request cannot be read: ${messageOf(error)}` : "the request did not arrive in time",
    ),
  );
}

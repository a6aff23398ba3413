/**
 * A model on loopback that follows a script. It speaks the interfaces of the three clients: Anthropic Messages, OpenAI
 * Responses and Gemini `generateContent`. It keeps every request, with the tools that the client offers.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { ANTHROPIC } from "./protocol-anthropic.ts";
import { GEMINI } from "./protocol-gemini.ts";
import { RESPONSES } from "./protocol-responses.ts";

export interface ScriptedCall {
  tool: string;
  input: Record<string, unknown> | string;
}

/** One answer of the model: tool calls, or a last text. */
export interface ScriptedTurn {
  calls?: readonly ScriptedCall[];
  say?: string;
}

export interface OfferedTool {
  name: string;
  /** Names of the input's fields. Null for a tool that takes plain text. */
  fields: string[] | null;
}

/** A client's request in a common form. */
export interface ModelRequest {
  tools: OfferedTool[];
  /** Number of answers of the model that the conversation already holds. */
  answered: number;
  /** The texts of the conversation, first to last. */
  texts: string[];
  /** Results of the tool calls, first to last. */
  results: string[];
  stream: boolean;
  /** Milliseconds since the model's answer before. */
  after_ms?: number;
}

export interface ModelProtocol {
  /** Whether this path asks for an answer of the model. */
  asks(path: string): boolean;
  read(body: Record<string, unknown>, path: string): ModelRequest;
  /** Answers with this turn. */
  answer(turn: ScriptedTurn, request: ModelRequest, response: ServerResponse): void;
  /** Answers every other request. */
  other(path: string): unknown;
}

/** Turns by a word of the conversation's first texts. Each conversation takes its turns in order. */
export type ModelScript = Readonly<Record<string, readonly ScriptedTurnOrder[]>>;
/** A turn, or a function that acts before it answers with one. */
export type ScriptedTurnOrder = ScriptedTurn | (() => ScriptedTurn | Promise<ScriptedTurn>);

export interface ModelServer {
  url: string;
  /** Requests that took a turn of the script. */
  requests: ModelRequest[];
  close(): Promise<void>;
}

const PROTOCOLS: readonly ModelProtocol[] = [ANTHROPIC, RESPONSES, GEMINI];

export async function startModelServer(script: ModelScript): Promise<ModelServer> {
  const requests: ModelRequest[] = [];
  let answered_at: number | null = null;
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await bodyOf(request);
    const path = request.url ?? "/";
    const protocol = PROTOCOLS.find((one) => one.asks(path));
    if (protocol === undefined || body === null) return sendJson(response, otherAnswer(path));
    const asked = protocol.read(body, path);
    const turns = scriptOf(script, asked);
    if (turns === undefined) return protocol.answer({ say: "ok" }, asked, response);
    if (answered_at !== null) asked.after_ms = performance.now() - answered_at;
    requests.push(asked);
    const turn = turns[asked.answered] ?? { say: "done" };
    protocol.answer(typeof turn === "function" ? await turn() : turn, asked, response);
    answered_at = performance.now();
  };
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      response.writeHead(500).end(String(error));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

/** A conversation without tools is one of the client's own, such as for its title. */
function scriptOf(script: ModelScript, { tools, texts }: ModelRequest): ModelScript[string] | undefined {
  if (tools.length === 0) return undefined;
  for (const text of texts)
    for (const [word, turns] of Object.entries(script)) if (text.includes(word)) return turns;
  return undefined;
}

const otherAnswer = (path: string): unknown =>
  PROTOCOLS.map((one) => one.other(path)).find((found) => found !== undefined) ?? {};

export function sendJson(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/** Sends server-sent events, with their names where the protocol has some. */
export function sendEvents(response: ServerResponse, events: readonly object[], named: boolean): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of events) {
    const name = named ? `event: ${(event as { type: string }).type}\n` : "";
    response.write(`${name}data: ${JSON.stringify(event)}\n\n`);
  }
  response.end();
}

async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown> | null> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  try {
    return JSON.parse(Buffer.concat(parts).toString()) as Record<string, unknown>;
  } catch {
    return null;
  }
}

/**
 * Replaces the model of the Claude Agent SDK: a server with the part of the Messages API that its executable uses. It answers
 * as its script says. Each script is its own model.
 */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text as textOf } from "node:stream/consumers";
import { tempDir } from "../../support/tmp.ts";
import type { Call } from "./model.ts";

interface Asked {
  model: string;
  messages: { role: string; content: unknown }[];
}
interface Script {
  left: Call[][];
  text: string;
  told: string[];
}

export class MessagesApi {
  private readonly scripts = new Map<string, Script>();
  private readonly server = createServer(async (request, response) => {
    const asked = JSON.parse((await textOf(request)) || "{}") as Asked;
    const script = this.scripts.get(asked.model);
    if (script === undefined || !request.url!.startsWith("/v1/messages?")) response.writeHead(404).end();
    else say(response, script, asked);
  });
  private ids = 0;

  async start(): Promise<this> {
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
    return this;
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  /** A model that makes each turn's calls at once and ends with the text. `told` has the prompts, turn by turn. */
  saying(text: string, turns: Call[][]): { model: string; told: string[] } {
    const model = `scripted-${++this.ids}`;
    const told: string[] = [];
    this.scripts.set(model, { left: [...turns], text, told });
    return { model, told };
  }

  /** The executable's environment: this model, no account, nothing of the machine's own settings. */
  env(home = tempDir("claude")): Record<string, string> {
    return {
      PATH: process.env["PATH"] ?? "",
      HOME: home,
      CLAUDE_CONFIG_DIR: home,
      ANTHROPIC_BASE_URL: `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`,
      ANTHROPIC_API_KEY: "none",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    };
  }
}

let ids = 0;
function say(response: ServerResponse, { left, text, told }: Script, { model, messages }: Asked): void {
  told.push(JSON.stringify(messages));
  const calls = left.shift();
  const send = (type: string, more: object) =>
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`);
  const part = (index: number, content_block: object, delta: object) => {
    send("content_block_start", { index, content_block });
    send("content_block_delta", { index, delta });
    send("content_block_stop", { index });
  };
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { id: `msg_${++ids}`, type: "message", role: "assistant", model, content: [], usage };
  response.writeHead(200, { "content-type": "text/event-stream" });
  send("message_start", { message });
  if (calls === undefined) part(0, { type: "text", text: "" }, { type: "text_delta", text });
  for (const [index, [name, args]] of (calls ?? []).entries())
    part(
      index,
      { type: "tool_use", id: `toolu_${++ids}`, name, input: {} },
      { type: "input_json_delta", partial_json: JSON.stringify(args) },
    );
  send("message_delta", { delta: { stop_reason: calls === undefined ? "end_turn" : "tool_use" }, usage });
  send("message_stop", {});
  response.end();
}

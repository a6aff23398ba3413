/** The Anthropic Messages interface, as Claude Code uses it. */
import { type ModelProtocol, type ScriptedTurn, sendEvents, sendJson } from "./model-server.ts";

interface Block {
  type: string;
  text?: string;
  content?: unknown;
}
interface Message {
  role: string;
  content: string | Block[];
}

const blocksOf = ({ content }: Message): Block[] =>
  typeof content === "string" ? [{ type: "text", text: content }] : content;

const textOf = (content: unknown): string =>
  typeof content === "string" ? content : JSON.stringify(content);

let calls = 0;

function blocks({ calls: wanted = [], say }: ScriptedTurn): Record<string, unknown>[] {
  if (wanted.length === 0) return [{ type: "text", text: say ?? "done" }];
  return wanted.map(({ tool, input }) => ({ type: "tool_use", id: `toolu_${++calls}`, name: tool, input }));
}

const events = (block: Record<string, unknown>, index: number): object[] => {
  const isText = block["type"] === "text";
  const start = isText ? { type: "text", text: "" } : { ...block, input: {} };
  const delta = isText
    ? { type: "text_delta", text: block["text"] }
    : { type: "input_json_delta", partial_json: JSON.stringify(block["input"]) };
  return [
    { type: "content_block_start", index, content_block: start },
    { type: "content_block_delta", index, delta },
    { type: "content_block_stop", index },
  ];
};

export const ANTHROPIC: ModelProtocol = {
  asks: (path) => /^\/v1\/messages(?:\?|$)/.test(path),
  read(body) {
    const messages = body["messages"] as Message[];
    const all = messages.flatMap((message) => (message.role === "user" ? blocksOf(message) : []));
    const tools = (body["tools"] ?? []) as { name: string; input_schema?: { properties?: object } }[];
    return {
      tools: tools.map(({ name, input_schema }) => ({
        name,
        fields: Object.keys(input_schema?.properties ?? {}),
      })),
      answered: messages.filter(({ role }) => role === "assistant").length,
      texts: all.flatMap((block) => (block.type === "text" ? [block.text ?? ""] : [])),
      results: all.flatMap((block) => (block.type === "tool_result" ? [textOf(block.content)] : [])),
      stream: body["stream"] === true,
    };
  },
  answer(turn, { stream }, response) {
    const content = blocks(turn);
    const stop_reason = content[0]!["type"] === "text" ? "end_turn" : "tool_use";
    const usage = { input_tokens: 1, output_tokens: 1 };
    const message = { id: `msg_${++calls}`, type: "message", role: "assistant", model: "scripted", usage };
    if (!stream) return sendJson(response, { ...message, content, stop_reason });
    const begun = { ...message, content: [], stop_reason: null, stop_sequence: null };
    sendEvents(
      response,
      [
        { type: "message_start", message: begun },
        ...content.flatMap(events),
        { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage },
        { type: "message_stop" },
      ],
      true,
    );
  },
  other: (path) => (path.startsWith("/v1/messages/count_tokens") ? { input_tokens: 1 } : undefined),
};

/** The OpenAI Responses interface, as Codex uses it. */
import {
  type ModelProtocol,
  type OfferedTool,
  type ScriptedTurn,
  sendEvents,
  sendJson,
} from "./model-server.ts";

interface Item {
  type: string;
  role?: string;
  content?: { text?: string; encrypted_content?: string }[] | string;
  output?: unknown;
  /** Newer models get their tools in the conversation. */
  tools?: Tool[];
}
interface Tool {
  type: string;
  name?: string;
  description?: string;
  parameters?: { properties?: object };
  tools?: Tool[];
}

let calls = 0;

const isCall = ({ type }: Item): boolean => /_call$/.test(type);

/** Calls next to one another are one answer. */
const answers = (items: readonly Item[]): number =>
  items.filter((item, at) => (isCall(item) && !isCall(items[at - 1] ?? item)) || (isCall(item) && at === 0))
    .length;

const textsOf = ({ content }: Item): string[] =>
  typeof content === "string"
    ? [content]
    : (content ?? []).map(({ text, encrypted_content }) => text ?? encrypted_content ?? "");

/** Tools that a script of the model calls are declared in the description of the tool that runs it. */
const DECLARED = /declare const tools: \{ (\w+)\(\w+: (?:\{([\s\S]*?)\n?\}|string)\): Promise/g;
const FIELD = /^\s*(\w+)\??:/gm;

function offered(tool: Tool, prefix = ""): OfferedTool[] {
  if (tool.tools !== undefined)
    return tool.tools.flatMap((one) => offered(one, tool.name === "functions" ? "" : `${tool.name}.`));
  const fields = tool.type === "function" ? Object.keys(tool.parameters?.properties ?? {}) : null;
  const nested = [...(tool.description ?? "").matchAll(DECLARED)].map(([, name, inside]) => ({
    name: name!,
    fields: inside === undefined ? null : [...inside.matchAll(FIELD)].map(([, field]) => field!),
  }));
  return [{ name: prefix + (tool.name ?? tool.type), fields }, ...nested];
}

function output({ calls: wanted = [], say }: ScriptedTurn): Record<string, unknown>[] {
  if (wanted.length === 0)
    return [
      {
        type: "message",
        role: "assistant",
        id: `msg_${++calls}`,
        content: [{ type: "output_text", text: say ?? "done", annotations: [] }],
      },
    ];
  return wanted.map(({ tool, input }) => {
    const call_id = `call_${++calls}`;
    const [name, namespace] = tool.split(".").reverse();
    const own = { id: `fc_${calls}`, call_id, name, ...(namespace === undefined ? {} : { namespace }) };
    return typeof input === "string"
      ? { ...own, type: "custom_tool_call", input }
      : { ...own, type: "function_call", arguments: JSON.stringify(input) };
  });
}

export const RESPONSES: ModelProtocol = {
  asks: (path) => /^(?:\/v1)?\/responses(?:\?|$)/.test(path),
  read(body) {
    const items = (body["input"] ?? []) as Item[];
    return {
      tools: [...((body["tools"] ?? []) as Tool[]), ...items.flatMap(({ tools = [] }) => tools)].flatMap(
        (tool) => offered(tool),
      ),
      answered: answers(items),
      texts: items.filter(({ role, type }) => role === "user" || type === "agent_message").flatMap(textsOf),
      results: items.flatMap((item) =>
        /_call_output$/.test(item.type)
          ? [typeof item.output === "string" ? item.output : JSON.stringify(item.output)]
          : [],
      ),
      stream: body["stream"] === true,
    };
  },
  answer(turn, { stream }, response) {
    const items = output(turn);
    const usage = {
      input_tokens: 1,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 1,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 2,
    };
    const whole = { id: `resp_${++calls}`, object: "response", status: "completed", output: items, usage };
    if (!stream) return sendJson(response, whole);
    sendEvents(
      response,
      [
        { type: "response.created", response: { id: whole.id } },
        ...items.flatMap((item, output_index) => [
          { type: "response.output_item.added", output_index, item },
          { type: "response.output_item.done", output_index, item },
        ]),
        { type: "response.completed", response: whole },
      ],
      true,
    );
  },
  other: () => undefined,
};

/** The Gemini `generateContent` interface, as Gemini CLI uses it. */
import { type ModelProtocol, type ScriptedTurn, sendEvents, sendJson } from "./model-server.ts";

interface Part {
  text?: string;
  functionResponse?: { response?: unknown };
}
interface Content {
  role?: string;
  parts: Part[];
}
interface Declared {
  name: string;
  parametersJsonSchema?: { properties?: object };
  parameters?: { properties?: object };
}

const partsOf = ({ calls = [], say }: ScriptedTurn): object[] =>
  calls.length === 0
    ? [{ text: say ?? "done" }]
    : calls.map(({ tool, input }) => ({ functionCall: { name: tool, args: input } }));

export const GEMINI: ModelProtocol = {
  asks: (path) => /:(?:streamGenerateContent|generateContent)/.test(path),
  read(body, path) {
    const contents = body["contents"] as Content[];
    const theirs = contents.filter(({ role }) => role !== "model").flatMap(({ parts }) => parts);
    const tools = (body["tools"] ?? []) as { functionDeclarations?: Declared[] }[];
    return {
      tools: tools.flatMap(({ functionDeclarations = [] }) =>
        functionDeclarations.map(({ name, parametersJsonSchema, parameters }) => ({
          name,
          fields: Object.keys((parametersJsonSchema ?? parameters)?.properties ?? {}),
        })),
      ),
      answered: contents.filter(({ role }) => role === "model").length,
      texts: theirs.flatMap(({ text }) => (text === undefined ? [] : [text])),
      results: theirs.flatMap(({ functionResponse }) =>
        functionResponse === undefined ? [] : [JSON.stringify(functionResponse.response)],
      ),
      stream: path.includes(":stream"),
    };
  },
  answer(turn, { stream }, response) {
    const content = { role: "model", parts: partsOf(turn) };
    const whole = {
      candidates: [{ content, finishReason: "STOP", index: 0 }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    };
    if (stream) sendEvents(response, [whole], false);
    else sendJson(response, whole);
  },
  other: (path) => (path.includes(":countTokens") ? { totalTokens: 1 } : undefined),
};

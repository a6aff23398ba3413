/** A scripted model with the providers' interface (version 3) that the AI SDK and Mastra take. */
import { ReadableStream } from "node:stream/web";
import type { LanguageModel } from "ai";

export type Call = [tool: string, args: object];
/** `told` has the prompts, turn by turn. */
export type Scripted = Extract<LanguageModel, { specificationVersion: "v3" }> & { told: string[] };
type Made = Awaited<ReturnType<Scripted["doGenerate"]>>;
type Part = Made["content"][number];
type Streamed = Awaited<ReturnType<Scripted["doStream"]>>["stream"];
type StreamPart = Streamed extends { values(): AsyncIterable<infer P> } ? P : never;

let ids = 0;
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** Calls what each turn says, all at once, and ends with the text. */
export function saying(text: string, turns: Call[][]): Scripted {
  const left = [...turns];
  const told: string[] = [];
  const answer = ({ prompt }: { prompt: unknown }): Made => {
    told.push(JSON.stringify(prompt));
    const calls = left.shift();
    const unified = calls === undefined ? "stop" : "tool-calls";
    const content = calls?.map(called) ?? [{ type: "text", text }];
    return { content, finishReason: { unified, raw: unified }, usage, warnings: [] };
  };
  return {
    specificationVersion: "v3",
    provider: "scripted",
    modelId: "scripted",
    supportedUrls: {},
    told,
    doGenerate: async (options) => answer(options),
    doStream: async (options) => {
      const { content, warnings, finishReason } = answer(options);
      const parts: StreamPart[] = [
        { type: "stream-start", warnings },
        ...content.flatMap(streamed),
        { type: "finish", finishReason, usage },
      ];
      return { stream: ReadableStream.from(parts) as Streamed };
    },
  };
}

const called = ([toolName, args]: Call): Part => ({
  type: "tool-call",
  toolCallId: `call-${++ids}`,
  toolName,
  input: JSON.stringify(args),
});

function streamed(part: Part): StreamPart[] {
  if (part.type !== "text") return [part as StreamPart];
  const text = { type: "text-delta", id: "t", delta: part.text } as const;
  return [{ type: "text-start", id: "t" }, text, { type: "text-end", id: "t" }];
}

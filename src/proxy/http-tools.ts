/** Calls `http` tools with arguments: undos, read-backs and reads before a call, through the same egress guard. */
import { sha256Hex } from "../kernel/hash.ts";
import type { JsonValue } from "../kernel/json/json.ts";
import type { BeforeReader } from "../operations/runs/before-reads.ts";
import type { CompensatorFn, ReaderFn } from "../rollback/ports.ts";
import { answerOutcome } from "../rules/http/answer-outcome.ts";
import { buildRequest, type HttpToolSet, httpRoutes } from "../rules/http/routes.ts";
import { AnswerRecord, carryRequest, type RequestCarrier } from "./carry.ts";
import type { HeaderLine } from "./wire.ts";

export interface HttpTools extends BeforeReader {
  compensator: CompensatorFn;
  /** The reason why an undo with this tool would not run, or null. */
  unavailable(tool: string): Promise<string | null>;
}

export function httpTools(carrier: RequestCarrier, manifests: () => HttpToolSet): HttpTools {
  const missing = (tool: string): string | null =>
    httpRoutes(manifests()).ofTool(tool) === undefined ? `${tool} has no http manifest` : null;
  const call = async (tool: string, args: JsonValue, signal: AbortSignal, headers: HeaderLine[]) => {
    const route = httpRoutes(manifests()).ofTool(tool);
    if (route === undefined) throw new Error(missing(tool)!);
    const built = buildRequest(route, args);
    if ("problem" in built) throw new Error(`${tool}: ${built.problem}`);
    const bytes = Buffer.from(built.body ?? "");
    const answer = await carryRequest(carrier, {
      origin: built.origin,
      method: built.method,
      target: built.target,
      headers: [["User-Agent", "svc"], ["Accept", "*/*"], ...Object.entries(built.headers), ...headers],
      body:
        built.body === undefined
          ? undefined
          : { bytes: bytes.length, sha256: sha256Hex(bytes), open: () => bytes },
      signal,
    });
    const record = new AnswerRecord();
    for await (const chunk of answer.body as AsyncIterable<Buffer>) record.add(chunk);
    return { result: record.result(answer, route.http), http: route.http };
  };
  const reader: ReaderFn = async ({ tool, arguments: args }, signal) => {
    const { result, http } = await call(tool, args, signal, []);
    const status = result["status"] as number;
    // That nothing is there is a state like any other, which `absent` and `expect` can name.
    if (status === 404) return { status };
    if (status >= 400) throw new Error(`${tool} answered with status ${status}`);
    // Errors of a GraphQL API do not answer the question. Of other APIs a check can expect an answer that says failed.
    const outcome = http.graphql === undefined ? null : answerOutcome(result, http);
    if (outcome !== null && outcome.status !== "succeeded")
      throw new Error(`${tool} answered with ${outcome.error}`);
    return result;
  };
  return {
    reader,
    objection: async (tools) => {
      for (const tool of tools) {
        const problem = missing(tool);
        if (problem !== null) return `not tried: ${problem}`;
      }
      return null;
    },
    unavailable: async (tool) => missing(tool),
    async compensator({ tool, args, idempotency_key }, signal) {
      const { result, http } = await call(tool, args, signal, [["Idempotency-Key", idempotency_key]]);
      const { status, error } = answerOutcome(result, http);
      if (status !== "succeeded") throw new Error(`${tool} answered with ${error}`);
    },
  };
}

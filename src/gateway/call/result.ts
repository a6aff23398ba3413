/** Shapes of results: the values that a rollback can refer to, and the results that the gateway writes. */
import { pendingApprovalId } from "../../govern/approvals/approval.ts";
import {
  assertJson,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseJson,
} from "../../kernel/json/json.ts";

/**
 * The value of `$result` for a call: its structured content, else the JSON of its only text part, else its content.
 * Undefined if that value cannot be stored exactly, because an undo must never use a rounded id.
 */
export function resultValue(result: JsonObject): JsonValue | undefined {
  const structured = result["structuredContent"];
  const value =
    structured !== undefined ? structured : (soleText(result) ?? { content: result["content"] ?? [] });
  try {
    assertJson(value, "result");
    return value;
  } catch {
    return undefined;
  }
}

function soleText(result: JsonObject): JsonValue | undefined {
  const { content } = result;
  if (!Array.isArray(content) || content.length !== 1) return undefined;
  const [part] = content;
  if (!isJsonObject(part) || part["type"] !== "text" || typeof part["text"] !== "string") return undefined;
  try {
    return parseJson(part["text"]);
  } catch {
    return undefined;
  }
}

/** The text of a result that reports an error. */
export function errorText(result: JsonObject): string {
  const { content } = result;
  const texts = (Array.isArray(content) ? content : []).flatMap((part) =>
    isJsonObject(part) && typeof part["text"] === "string" ? [part["text"]] : [],
  );
  const text = texts.join("\n").trim();
  return text === "" ? "the tool answered with an error and no text" : text;
}

export function textResult(text: string, structured: JsonObject, isError = false): JsonObject {
  return {
    content: [{ type: "text", text }],
    structuredContent: structured,
    ...(isError ? { isError: true } : {}),
  };
}

/** Result of a blocked call. The hints are also in the text, because models read the text. */
export function blockedResult(reasons: readonly string[], hints: readonly string[] = []): JsonObject {
  const structured = {
    decision: "block",
    reasons: [...reasons],
    ...(hints.length === 0 ? {} : { hints: [...hints] }),
    approval_id: pendingApprovalId(reasons),
  };
  return textResult([...reasons, ...hints.map((hint) => `hint: ${hint}`)].join("\n"), structured, true);
}

/** Adds the gateway's facts to the upstream's own `_meta`. */
export function withMeta(result: JsonObject, facts: JsonObject): JsonObject {
  const meta = result["_meta"];
  return { ...result, _meta: { ...(isJsonObject(meta) ? meta : {}), ...facts } };
}

export function withoutStructured(result: JsonObject): JsonObject {
  const { structuredContent: _, ...rest } = result;
  return rest;
}

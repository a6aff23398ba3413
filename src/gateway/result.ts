/** The shapes of results: what a rollback may refer to in them, and what the gateway itself answers. */
import { assertJson, isJsonObject, type Json, type JsonObject, parseJson } from "../kernel/json.ts";
import { approvalIn } from "../model/approval.ts";

/**
 * What `$result` means for a call: its structured content, else the JSON of its only text part, else its
 * content as it is. Undefined where that cannot be kept exactly; an undo must never use a rounded id.
 */
export function resultValue(result: JsonObject): Json | undefined {
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

function soleText(result: JsonObject): Json | undefined {
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

/** The text of a result that says it failed. */
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

/** A model reads the text, so the hints stand there, too. */
export function blockedResult(reasons: readonly string[], hints: readonly string[] = []): JsonObject {
  const structured = {
    decision: "block",
    reasons: [...reasons],
    ...(hints.length === 0 ? {} : { hints: [...hints] }),
    approval_id: approvalIn(reasons),
  };
  return textResult([...reasons, ...hints.map((hint) => `hint: ${hint}`)].join("\n"), structured, true);
}

/** The upstream's own `_meta` with what the gateway has to say beside it. */
export function withMeta(result: JsonObject, facts: JsonObject): JsonObject {
  const meta = result["_meta"];
  return { ...result, _meta: { ...(isJsonObject(meta) ? meta : {}), ...facts } };
}

export function withoutStructured(result: JsonObject): JsonObject {
  const { structuredContent: _, ...rest } = result;
  return rest;
}

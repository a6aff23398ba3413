/**
 * Implements `ask_reason: true`, which adds an argument to each upstream tool for the agent's reason. The gateway
 * removes this argument from the call: the upstream never sees it, and it is not evaluated, hashed or shown as an
 * argument.
 */
import { isJsonObject, type JsonObject } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";

const REASON_ARGUMENT = "svc_reason";
const DESCRIPTION =
  "Why you make this call, in one sentence: its purpose and what led to it. Approvers and reviewers read it; the tool does not receive it.";

/** The definition with the reason argument. A tool with its own argument of this name stays unchanged. */
export function askingReason(definition: JsonObject): JsonObject {
  if (hasOwn(definition)) return definition;
  const { inputSchema } = definition;
  const schema = isJsonObject(inputSchema) ? inputSchema : { type: "object" };
  const properties = isJsonObject(schema["properties"]) ? schema["properties"] : {};
  const argument = { type: "string", description: DESCRIPTION, maxLength: SERVICE_LIMITS.reason_chars };
  return {
    ...definition,
    inputSchema: { ...schema, properties: { ...properties, [REASON_ARGUMENT]: argument } },
  };
}

/** Removes the reason argument from a call. `definition` is undefined if no upstream offers the tool. */
export function takeReason(
  args: JsonObject,
  definition: JsonObject | undefined,
): { args: JsonObject; reason: string | undefined } {
  if (!Object.hasOwn(args, REASON_ARGUMENT)) return { args, reason: undefined };
  if (definition !== undefined && hasOwn(definition)) return { args, reason: undefined };
  const { [REASON_ARGUMENT]: given, ...rest } = args;
  return { args: rest, reason: typeof given === "string" ? given : undefined };
}

function hasOwn({ inputSchema }: JsonObject): boolean {
  if (!isJsonObject(inputSchema) || !isJsonObject(inputSchema["properties"])) return false;
  return Object.hasOwn(inputSchema["properties"], REASON_ARGUMENT);
}

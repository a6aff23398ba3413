/**
 * `ask_reason: true`: each tool of an upstream gets one more argument, in which the agent says why it makes the
 * call. It is ours: the upstream never sees it, and nothing judges, hashes or shows it as an argument.
 */
import { isJsonObject, type JsonObject } from "../kernel/json.ts";
import { LIMITS } from "../kernel/limits.ts";

const REASON_ARGUMENT = "svc_reason";
const DESCRIPTION =
  "Why this call is made, in a sentence: what it is for and what led to it. People who approve or review the call read it; the tool does not get it.";

/** The definition as it is listed. A tool that has an argument of this name keeps it, and gets no other. */
export function askingReason(definition: JsonObject): JsonObject {
  if (hasOwn(definition)) return definition;
  const { inputSchema } = definition;
  const schema = isJsonObject(inputSchema) ? inputSchema : { type: "object" };
  const properties = isJsonObject(schema["properties"]) ? schema["properties"] : {};
  const argument = { type: "string", description: DESCRIPTION, maxLength: LIMITS.reason_chars };
  return {
    ...definition,
    inputSchema: { ...schema, properties: { ...properties, [REASON_ARGUMENT]: argument } },
  };
}

/** Takes our argument out of a call; `definition` is undefined where no upstream offers the tool. */
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

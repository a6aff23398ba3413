/**
 * Replaces `${NAME}` in config strings with environment variables. An unset variable is a problem and never an empty
 * string, because a partial secret is worse than none.
 */
import { isJsonObject, type JsonValue } from "../kernel/json/json.ts";
import type { FieldPath } from "../rules/schema-problems.ts";
import type { ReportProblem } from "../rules/yaml.ts";

export type EnvVariables = Readonly<Record<string, string | undefined>>;

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Expands all strings in the value. `$${` is a literal `${`. Mapping keys are left unchanged. */
export function expandVariables(
  value: JsonValue,
  env: EnvVariables,
  report: ReportProblem,
  path: FieldPath = [],
): JsonValue {
  if (typeof value === "string") return expandText(value, env, (message) => report(path, message));
  if (Array.isArray(value)) return value.map((item, i) => expandVariables(item, env, report, [...path, i]));
  if (!isJsonObject(value)) return value;
  const out: { [name: string]: JsonValue } = {};
  for (const [name, member] of Object.entries(value))
    out[name] = expandVariables(member, env, report, [...path, name]);
  return out;
}

function expandText(text: string, env: EnvVariables, fail: (message: string) => void): string {
  let out = "";
  let from = 0;
  for (let at = text.indexOf("${"); at >= 0; at = text.indexOf("${", from)) {
    if (text[at - 1] === "$" && at - 1 >= from) {
      out += `${text.slice(from, at - 1)}\${`;
      from = at + 2;
      continue;
    }
    const end = text.indexOf("}", at);
    const name = end < 0 ? "" : text.slice(at + 2, end);
    if (!NAME.test(name)) {
      fail(`holds a \${ that is not \${NAME}; write $\${ for a plain one`);
      return text;
    }
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    if (value === undefined) fail(`the environment variable ${name} is not set`);
    out += text.slice(from, at) + (value ?? "");
    from = end + 1;
  }
  return out + text.slice(from);
}

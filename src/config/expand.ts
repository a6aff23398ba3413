/**
 * Replaces `${NAME}` in the strings of a config by what the environment holds. A name that is not set is
 * a problem and never an empty string: half a secret is worse than none.
 */
import { isJsonObject, type Json } from "../kernel/json.ts";
import type { FieldPath } from "../model/problems.ts";
import type { Report } from "../model/yaml.ts";

export type Variables = Readonly<Record<string, string | undefined>>;

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** `$${` stands for a literal `${`. Names of mappings are left as they are. */
export function expand(value: Json, env: Variables, report: Report, path: FieldPath = []): Json {
  if (typeof value === "string") return expandText(value, env, (message) => report(path, message));
  if (Array.isArray(value)) return value.map((item, i) => expand(item, env, report, [...path, i]));
  if (!isJsonObject(value)) return value;
  const out: { [name: string]: Json } = {};
  for (const [name, member] of Object.entries(value))
    out[name] = expand(member, env, report, [...path, name]);
  return out;
}

function expandText(text: string, env: Variables, fail: (message: string) => void): string {
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

/** Putting one server into a client's configuration as text, leaving the rest of it alone. */
import { invalid } from "../../kernel/errors.ts";

export interface Edit {
  format: "json" | "toml";
  member: string;
  name: string;
  entry: Record<string, unknown>;
}

export function withServer(text: string, edit: Edit): string {
  return edit.format === "json" ? inJson(text, edit) : inToml(text, edit);
}

/** The entry alone, for pasting. */
export function snippet({ format, member, name, entry }: Edit): string {
  if (format === "toml") return table(member, name, entry);
  return JSON.stringify({ [member]: { [name]: entry } }, null, 2);
}

function inJson(text: string, { member, name, entry }: Edit): string {
  let config: unknown;
  try {
    config = text.trim() === "" ? {} : JSON.parse(text);
  } catch {
    throw invalid(
      "the file is not plain JSON (it may hold comments); use --print and paste the entry by hand",
    );
  }
  if (typeof config !== "object" || config === null || Array.isArray(config))
    throw invalid("the file does not hold a JSON object");
  const servers = (config as Record<string, unknown>)[member] ?? {};
  if (typeof servers !== "object" || servers === null || Array.isArray(servers))
    throw invalid(`${member} in the file is not an object`);
  const next = { ...config, [member]: { ...servers, [name]: entry } };
  return `${JSON.stringify(next, null, indentOf(text))}\n`;
}

function indentOf(text: string): string | number {
  return /\n([ \t]+)"/.exec(text)?.[1] ?? 2;
}

/** Replaces the server's table, or adds it at the end. */
function inToml(text: string, { member, name, entry }: Edit): string {
  const lines = text.split("\n");
  const header = new RegExp(
    `^\\s*\\[\\s*${member}\\s*\\.\\s*"?${literal(name)}"?\\s*(?:\\.[^\\]]*)?\\]\\s*(?:#.*)?$`,
  );
  const kept: string[] = [];
  let inside = false;
  for (const line of lines) {
    if (/^\s*\[/.test(line)) inside = header.test(line);
    if (!inside) kept.push(line);
  }
  const rest = kept.join("\n").trimEnd();
  return `${rest === "" ? "" : `${rest}\n\n`}${table(member, name, entry)}\n`;
}

function table(member: string, name: string, entry: Record<string, unknown>): string {
  // JSON's strings and lists of strings are TOML's too.
  const lines = Object.entries(entry).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
  return [`[${member}.${name}]`, ...lines].join("\n");
}

function literal(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** Adds one server to the text of a client's configuration and keeps the rest unchanged. */
import { invalidError } from "../../kernel/errors.ts";

export interface ConfigEdit {
  format: "json" | "toml";
  member: string;
  name: string;
  entry: Record<string, unknown>;
}

export function withServer(text: string, edit: ConfigEdit): string {
  return edit.format === "json" ? inJson(text, edit) : inToml(text, edit);
}

/** Only the entry, for pasting. */
export function entrySnippet({ format, member, name, entry }: ConfigEdit): string {
  if (format === "toml") return table(member, name, entry);
  return JSON.stringify({ [member]: { [name]: entry } }, null, 2);
}

function inJson(text: string, { member, name, entry }: ConfigEdit): string {
  let config: unknown;
  try {
    config = text.trim() === "" ? {} : JSON.parse(text);
  } catch {
    throw invalidError(
      "the file is not plain JSON (it may contain comments); use --print and paste the entry by hand",
    );
  }
  if (typeof config !== "object" || config === null || Array.isArray(config))
    throw invalidError("the file does not contain a JSON object");
  const servers = (config as Record<string, unknown>)[member] ?? {};
  if (typeof servers !== "object" || servers === null || Array.isArray(servers))
    throw invalidError(`${member} in the file is not an object`);
  const next = { ...config, [member]: { ...servers, [name]: entry } };
  return `${JSON.stringify(next, null, indentOf(text))}\n`;
}

function indentOf(text: string): string | number {
  return /\n([ \t]+)"/.exec(text)?.[1] ?? 2;
}

/** Replaces the server's table, or appends one. */
function inToml(text: string, { member, name, entry }: ConfigEdit): string {
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
  // JSON strings, and lists of them, are valid TOML.
  const lines = Object.entries(entry).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
  return [`[${member}.${name}]`, ...lines].join("\n");
}

function literal(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/**
 * Recognizes states of files, as the coding agents' hook reads them, so that plans show them as text: `files` has the
 * state of each path, `content` has the compressed bytes of edited ones.
 */
import { isUtf8 } from "node:buffer";
import { gunzipSync } from "node:zlib";
import { isJsonObject, type JsonObject, type JsonValue } from "../../kernel/json/json.ts";
import { formatCountOf } from "../../kernel/text/phrases.ts";

interface ShownFile {
  path: string;
  /** Content of a text file. */
  text?: string;
  /** Description of a file without a text to show. */
  what: string;
}

/** Larger contents are not unpacked. */
const MAX_BYTES = 1_048_576;

/** Null if the value is not a state of files. */
export function fileStates(value: JsonValue): ShownFile[] | null {
  const record = isJsonObject(value) ? value["record"] : null;
  if (!isJsonObject(record) || !isJsonObject(record["files"])) return null;
  const content = record["content"] ?? {};
  if (!isJsonObject(content)) return null;
  const files: ShownFile[] = [];
  for (const [path, state] of Object.entries(record["files"])) {
    if (state !== null && (!isJsonObject(state) || typeof state["kind"] !== "string")) return null;
    files.push({ path, ...shownFile(state, content[path]) });
  }
  return files.length === 0 ? null : files;
}

/** One line on a file: its path, and its text or what it is. */
export const describeFile = ({ path, text, what }: ShownFile): string => `${path}: ${text ?? what}`;

/** All files of the value as one text. Null if the value is not a state of files. */
export function filesAsText(value: JsonValue): string | null {
  const files = fileStates(value);
  if (files === null) return null;
  return files
    .map((file) => (file.text === undefined ? describeFile(file) : `${file.path}:\n${file.text}`))
    .join("\n");
}

function shownFile(state: JsonObject | null, content: JsonValue | undefined): Omit<ShownFile, "path"> {
  if (state === null) return { what: "no file" };
  if (state["kind"] === "link") return { what: `a link to ${String(state["target"])}` };
  if (state["kind"] !== "file") return { what: String(state["kind"]) };
  const bytes = typeof content === "string" ? unpacked(content) : null;
  if (bytes === null)
    return { what: `a file of ${formatCountOf(Number(state["size"]), "byte")}, mode ${state["mode"]}` };
  if (!isUtf8(bytes) || bytes.includes(0)) return { what: `binary, ${formatCountOf(bytes.length, "byte")}` };
  return { text: bytes.toString("utf8"), what: "text" };
}

function unpacked(content: string): Buffer | null {
  try {
    return gunzipSync(Buffer.from(content, "base64"), { maxOutputLength: MAX_BYTES });
  } catch {
    return null;
  }
}

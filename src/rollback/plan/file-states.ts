/**
 * Recognizes states of files, as the coding agents' hook reads them, so that plans show them as text: `state` says what
 * is at each path, `content` has the compressed bytes.
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
  if (!isJsonObject(value) || !isJsonObject(value["state"])) return null;
  const content = value["content"] ?? {};
  if (!isJsonObject(content)) return null;
  const files: ShownFile[] = [];
  for (const [path, state] of Object.entries(value["state"])) {
    if (!isJsonObject(state) || typeof state["exists"] !== "boolean") return null;
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

function shownFile(state: JsonObject, content: JsonValue | undefined): Omit<ShownFile, "path"> {
  if (state["exists"] === false) return { what: "no file" };
  if (state["folder"] === true) return { what: "directory" };
  const bytes = typeof content === "string" ? unpacked(content) : null;
  if (bytes === null) return { what: `a file with sha256 ${String(state["sha256"]).slice(0, 12)}` };
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

/** A registry file: the author's YAML below one comment line that records who published it and when. */
import { readTextFile, writeFileAtomic } from "../config/files.ts";
import { sha256Hex } from "../kernel/hash.ts";
import { isJsonObject, type JsonObject, parseJson } from "../kernel/json/json.ts";

const MARK = "# svc-registry ";

interface RegistryFile {
  meta: JsonObject;
  yaml: string;
}

export async function readRegistryFile(path: string): Promise<RegistryFile> {
  const text = await readTextFile(path);
  const end = text.indexOf("\n");
  if (!text.startsWith(MARK) || end < 0) return { meta: {}, yaml: text };
  try {
    const meta = parseJson(text.slice(MARK.length, end));
    return { meta: isJsonObject(meta) ? meta : {}, yaml: text.slice(end + 1) };
  } catch {
    // An author edited the comment by hand. The YAML below it still counts.
    return { meta: {}, yaml: text };
  }
}

export async function writeRegistryFile(path: string, { meta, yaml }: RegistryFile): Promise<void> {
  await writeFileAtomic(path, `${MARK}${JSON.stringify(meta)}\n${endedLine(yaml)}`, 0o644);
}

const endedLine = (yaml: string): string => (yaml.endsWith("\n") ? yaml : `${yaml}\n`);

/** Digest of the YAML, to detect whether the comment line still describes it. */
export const yamlDigest = (yaml: string): string => sha256Hex(endedLine(yaml));

export const metaText = (meta: JsonObject, field: string): string | null => {
  const value = meta[field];
  return typeof value === "string" ? value : null;
};

export const metaNumber = (meta: JsonObject, field: string): number | null => {
  const value = meta[field];
  return typeof value === "number" ? value : null;
};

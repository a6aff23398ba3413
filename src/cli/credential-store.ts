/** Server keys stored by `svc login`, in one file that only its owner can read. */
import { chmodSync, existsSync, mkdirSync, renameSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { readTextFileSync } from "../config/files.ts";
import { invalidError } from "../kernel/errors.ts";
import { isJsonObject, parseJson } from "../kernel/json/json.ts";

type Variables = Readonly<Record<string, string | undefined>>;

export function storedKeysFile(env: Variables): string {
  return join(env["XDG_CONFIG_HOME"] || join(env["HOME"] || homedir(), ".config"), "svc", "keys.json");
}

export function storedKey(env: Variables, url: string): string | undefined {
  const key = readKept(env)[new URL(url).origin];
  return typeof key === "string" ? key : undefined;
}

export function storeKeyFor(env: Variables, url: string, key: string): void {
  const path = storedKeysFile(env);
  const kept = { ...readKept(env), [new URL(url).origin]: key };
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  // Replace the file atomically, so that no other key is lost.
  const fresh = `${path}.new`;
  writeFileSync(fresh, `${JSON.stringify(kept, null, 2)}\n`, { mode: 0o600 });
  chmodSync(fresh, 0o600);
  renameSync(fresh, path);
}

function readKept(env: Variables): Record<string, unknown> {
  const path = storedKeysFile(env);
  if (!existsSync(path)) return {};
  assertPrivateFile(path);
  const kept = parseJson(readTextFileSync(path));
  if (!isJsonObject(kept))
    throw invalidError(`${path}: must be a JSON object; delete the file and log in again`);
  return kept;
}

/** Throws if other accounts on the machine can read the file. */
export function assertPrivateFile(path: string): void {
  if (process.platform !== "win32" && (statSync(path).mode & 0o077) !== 0)
    throw invalidError(`${path}: other accounts can read this key; run chmod 600 on it`);
}

/** Keys for servers, kept by `svc login`: one file of the user's own, unreadable to others. */
import { chmodSync, existsSync, mkdirSync, renameSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { readTextFileSync } from "../config/files.ts";
import { invalid } from "../kernel/errors.ts";
import { isJsonObject, parseJson } from "../kernel/json.ts";

type Variables = Readonly<Record<string, string | undefined>>;

export function keptKeysFile(env: Variables): string {
  return join(env["XDG_CONFIG_HOME"] || join(env["HOME"] || homedir(), ".config"), "svc", "keys.json");
}

export function keptKey(env: Variables, url: string): string | undefined {
  const key = readKept(env)[new URL(url).origin];
  return typeof key === "string" ? key : undefined;
}

export function keepKey(env: Variables, url: string, key: string): void {
  const path = keptKeysFile(env);
  const kept = { ...readKept(env), [new URL(url).origin]: key };
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  // Whole or not at all: another key must not be lost on the way.
  const fresh = `${path}.new`;
  writeFileSync(fresh, `${JSON.stringify(kept, null, 2)}\n`, { mode: 0o600 });
  chmodSync(fresh, 0o600);
  renameSync(fresh, path);
}

function readKept(env: Variables): Record<string, unknown> {
  const path = keptKeysFile(env);
  if (!existsSync(path)) return {};
  assertOwn(path);
  const kept = parseJson(readTextFileSync(path));
  if (!isJsonObject(kept)) throw invalid(`${path}: must be an object; delete it and log in again`);
  return kept;
}

/** A key that others on the machine can read is everybody's. */
export function assertOwn(path: string): void {
  if (process.platform !== "win32" && (statSync(path).mode & 0o077) !== 0)
    throw invalid(`${path}: others can read this key; chmod 600 it`);
}

/**
 * What the hook needs to know: where the service is, with which key, and what is protected. Written by `svc connect`.
 * The file alone says it: a variable that a project sets must not send calls and key to another server.
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { isRecord, textOrNull } from "./clients.ts";

export interface HookSettings {
  server: string;
  key: string;
  mode: "enforce" | "observe";
  /** Where calls under way are noted. */
  notes: string;
  protect: string[];
  home: string;
  /** For commands that the person is told to use; empty where the service is not the one beside these settings. */
  config_option: string;
}

export const hooksFolder = (env: NodeJS.ProcessEnv): string =>
  join(env["XDG_CONFIG_HOME"] || join(env["HOME"] || homedir(), ".config"), "svc", "hooks");

/** Throws with a sentence where something is missing; the hook then refuses. */
export function readSettings(file: string, env: NodeJS.ProcessEnv): HookSettings {
  const given: unknown = JSON.parse(readFileSync(file, "utf8"));
  if (!isRecord(given)) throw new Error(`${file}: must be a JSON object`);
  const folder = dirname(resolve(file));
  const server = textOrNull(given["server"]);
  if (server === null || !/^https?:\/\/[^/]/.test(server)) throw new Error(`${file}: server: must be a URL`);
  const { mode = "enforce", protect = [] } = given;
  if (mode !== "enforce" && mode !== "observe") throw new Error(`${file}: mode: enforce or observe`);
  if (!Array.isArray(protect) || !protect.every((path) => typeof path === "string"))
    throw new Error(`${file}: protect: must be a list of paths`);
  return {
    server: server.replace(/\/+$/, ""),
    key: readKey(resolve(folder, textOrNull(given["key_file"]) ?? "agent.key")),
    mode,
    notes: join(folder, "under-way"),
    protect: [folder, ...protect.map((path: string) => resolve(folder, path))],
    home: env["HOME"] || homedir(),
    config_option: existsSync(join(folder, "svc.config.yaml"))
      ? ` --config ${join(folder, "svc.config.yaml")}`
      : "",
  };
}

function readKey(path: string): string {
  if (process.platform !== "win32" && (statSync(path).mode & 0o077) !== 0)
    throw new Error(`${path}: others can read this key; chmod 600 it`);
  const key = readFileSync(path, "utf8").trim();
  if (!/^\S+$/.test(key)) throw new Error(`${path}: holds no key`);
  return key;
}

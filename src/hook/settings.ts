/**
 * Settings of the hook: server, key and protected paths. `svc connect` writes them. They come only from this file: an
 * environment variable of a project must not send calls and the key to another server.
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { isRecord, nonEmptyString } from "./clients/clients.ts";
import type { SnapshotSettings } from "./record/record-scope.ts";
import { readSnapshotSettings } from "./record/snapshot-settings.ts";
import type { ServiceStream } from "./service.ts";
import type { RegisteredWorkspaces } from "./workspace/registered.ts";

export interface HookSettings {
  server: string;
  key: string;
  /** The resident process's connection to the service. */
  stream?: ServiceStream;
  mode: "enforce" | "observe";
  /** Directory of the settings and of the hook's own state. */
  folder: string;
  /** Workspaces whose sessions are governed. Absent in older settings, which govern every session. */
  workspaces?: RegisteredWorkspaces;
  /** How long a call that waits for a person is held. 0 or absent: it is refused at once. */
  hold_s?: number;
  /** The client's settings file with the hook, where its limit is found. */
  hooks_file?: string;
  /** Whether the run gets what the user writes, so that its values do not count as foreign. */
  give_prompts?: boolean;
  /** Directory for the state of calls in progress. */
  notes: string;
  protect: string[];
  home: string;
  /**
   * Option for commands that messages suggest to the user. Empty if the service does not share these settings'
   * directory.
   */
  config_option: string;
  /** Approvers file. Without one, the service's word counts. */
  approvers?: string;
  /** What a record of the workspace holds before a command. */
  snapshot: SnapshotSettings;
}

export const hooksFolder = (env: NodeJS.ProcessEnv): string =>
  join(env["XDG_CONFIG_HOME"] || join(env["HOME"] || homedir(), ".config"), "svc", "hooks");

/** Throws with an explanation if a setting is missing or invalid. The hook then refuses the call. */
export function readSettings(file: string, env: NodeJS.ProcessEnv): HookSettings {
  const given: unknown = JSON.parse(readFileSync(file, "utf8"));
  if (!isRecord(given)) throw new Error(`${file}: must be a JSON object`);
  const folder = dirname(resolve(file));
  const server = nonEmptyString(given["server"]);
  if (server === null || !/^https?:\/\/[^/]/.test(server)) throw new Error(`${file}: server: must be a URL`);
  const { mode = "enforce", protect = [], hold_s = 0 } = given;
  const hooks_file = nonEmptyString(given["hooks_file"]);
  if (typeof hold_s !== "number" || !(hold_s >= 0))
    throw new Error(`${file}: hold_s: must be seconds, 0 or more`);
  if (mode !== "enforce" && mode !== "observe") throw new Error(`${file}: mode: enforce or observe`);
  if (!Array.isArray(protect) || !protect.every((path) => typeof path === "string"))
    throw new Error(`${file}: protect: must be a list of paths`);
  const workspaces = readWorkspaces(file, given["workspaces"]);
  const approvers = approversFile(file, given["approvers"]);
  return {
    folder,
    ...(workspaces === undefined ? {} : { workspaces }),
    hold_s,
    ...(given["give_prompts"] === true ? { give_prompts: true } : {}),
    ...(hooks_file === null ? {} : { hooks_file }),
    server: server.replace(/(?<!\/)\/+$/, ""),
    key: readKey(resolve(folder, nonEmptyString(given["key_file"]) ?? "agent.key")),
    mode,
    notes: join(folder, "under-way"),
    protect: [
      folder,
      ...protect.map((path: string) => resolve(folder, path)),
      ...(approvers === undefined ? [] : [approvers]),
    ],
    ...(approvers === undefined ? {} : { approvers }),
    home: env["HOME"] || homedir(),
    config_option: existsSync(join(folder, "svc.config.yaml"))
      ? ` --config ${join(folder, "svc.config.yaml")}`
      : "",
    snapshot: readSnapshotSettings(given["snapshot"], file),
  };
}

/** Any other value than a path is an error, because ignoring it would switch the check off. */
function approversFile(file: string, given: unknown): string | undefined {
  if (given === undefined) return undefined;
  const path = nonEmptyString(given);
  if (path === null) throw new Error(`${file}: approvers: must be a path`);
  return resolve(dirname(resolve(file)), path);
}

function readWorkspaces(file: string, given: unknown): RegisteredWorkspaces | undefined {
  if (given === undefined || given === "all") return given;
  if (Array.isArray(given) && given.every((path) => typeof path === "string" && isAbsolute(path)))
    return given as string[];
  throw new Error(`${file}: workspaces: must be "all" or a list of absolute paths`);
}

function readKey(path: string): string {
  if (process.platform !== "win32" && (statSync(path).mode & 0o077) !== 0)
    throw new Error(`${path}: others can read this key; chmod 600 it`);
  const key = readFileSync(path, "utf8").trim();
  if (!/^\S+$/.test(key)) throw new Error(`${path}: contains no key`);
  return key;
}

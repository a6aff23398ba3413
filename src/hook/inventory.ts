/**
 * Lists the coding agents of this account and the workspaces that they were seen in: governed, partly, or not, and what
 * is missing. It only reads files, and starts no program.
 */
import { existsSync, realpathSync } from "node:fs";
import { delimiter, dirname, isAbsolute, join } from "node:path";
import { eventsOf, HOOK_CLIENTS, type HookClient, isRecord, nonEmptyString } from "./clients/clients.ts";
import { holdsHook, hooksFile, managedHooksFile, userHooksFile } from "./clients/install.ts";
import { listSessions } from "./sessions.ts";
import { readTextOrNull } from "./workspace/read-text.ts";
import { isRegistered, type RegisteredWorkspaces, workspaceOf } from "./workspace/registered.ts";

export interface AgentEntry {
  client: string;
  /** Installed version; null if no installation was found or it names none. */
  version: string | null;
  /** Null for every workspace without a row. */
  workspace: string | null;
  governed: "yes" | "partly" | "no";
  /** Missing parts, and limits of the installed version. */
  missing: string[];
  last_seen_ms: number | null;
}

export interface MachinePlaces {
  home: string;
  env: NodeJS.ProcessEnv;
  /** Directory of the hooks' settings. */
  folder: string;
}

const PROGRAMS: Record<HookClient, string> = {
  "claude-code": "claude",
  cursor: "cursor-agent",
  codex: "codex",
  gemini: "gemini",
};

export function listAgents(places: MachinePlaces): AgentEntry[] {
  return HOOK_CLIENTS.flatMap((client) => agentRows(client, places));
}

function agentRows(client: HookClient, places: MachinePlaces): AgentEntry[] {
  const { home, env, folder } = places;
  const program = programOf(client, env);
  const settings = jsonIn(join(folder, `${client}.json`));
  const file = nonEmptyString(settings?.["hooks_file"]) ?? userHooksFile(client, env, home);
  const registered = registeredOf(settings);
  const seen = new Map<string, number>();
  for (const session of listSessions(folder))
    if (session.client === client) seen.set(workspaceOf(session.began), Math.floor(session.seen_ms));
  const listed = Array.isArray(registered) ? (registered as readonly string[]) : [];
  const workspaces = new Set<string>([...listed, ...seen.keys()]);
  if (program === null && workspaces.size === 0 && registered === null && !existsSync(dirname(file)))
    return [];
  const version = program === null ? null : versionOf(program);
  const row = (workspace: string | null): AgentEntry => {
    const missing = missingFor(client, { places, file, registered, workspace });
    const weak = missing.length === 0 ? limitsOf(client, version, places) : [];
    return {
      client,
      version,
      workspace,
      governed: missing.length > 0 ? "no" : weak.length > 0 ? "partly" : "yes",
      missing: [...missing, ...weak],
      last_seen_ms: workspace === null ? null : (seen.get(workspace) ?? null),
    };
  };
  return [...[...workspaces].sort().map(row), row(null)];
}

/** Null without settings. Older settings without a list govern every session that starts the hook. */
function registeredOf(given: Record<string, unknown> | null): RegisteredWorkspaces | null {
  if (given === null) return null;
  const { workspaces = "all" } = given;
  return workspaces === "all" || Array.isArray(workspaces) ? (workspaces as RegisteredWorkspaces) : [];
}

interface Asked {
  places: MachinePlaces;
  file: string;
  registered: RegisteredWorkspaces | null;
  workspace: string | null;
}

function missingFor(client: HookClient, { places, file, registered, workspace }: Asked): string[] {
  if (registered === null) return ["it is not connected: svc connect --hooks"];
  const project = workspace === null ? null : join(workspace, hooksFile(client));
  const managed = managedHooksFile(client);
  const own = userHooksFile(client, places.env, places.home);
  const files = [
    ...new Set([file, own]),
    ...(managed === undefined ? [] : [managed]),
    ...(project === null ? [] : [project]),
  ];
  const missing: string[] = [];
  if (!files.some((one) => startsHook(client, one)))
    missing.push(`${file} does not start the hook for every event`);
  for (const one of files)
    if (jsonIn(one)?.["disableAllHooks"] === true) missing.push(`${one} switches all hooks off`);
  if (client === "codex" && /^[ \t]*(?:codex_)?hooks[ \t]*=[ \t]*false/m.test(textIn(codexConfig(file))))
    missing.push(`${codexConfig(file)} switches hooks off`);
  const inProject = project !== null && startsHook(client, project);
  const known = workspace === null ? registered === "all" : isRegistered(workspace, registered);
  if (!known && !inProject) missing.push("the workspace is not registered");
  const key = jsonIn(join(places.folder, `${client}.json`))?.["key_file"];
  const keyFile = join(places.folder, nonEmptyString(key) ?? `${client}.key`);
  if (!(nonEmptyString(key) !== null && isAbsolute(key as string)) && !existsSync(keyFile))
    missing.push(`${keyFile} is missing`);
  return missing;
}

/** Whether every event of the client starts the hook in this file. */
function startsHook(client: HookClient, file: string): boolean {
  const hooks = jsonIn(file)?.["hooks"];
  return (
    isRecord(hooks) &&
    eventsOf(client).every((event) => holdsHook(client, JSON.stringify(hooks[event] ?? "")))
  );
}

/** Clients whose hook starts Node for every event, because the machine had no program to forward it. */
export function slowHooks({ home, env, folder }: MachinePlaces): HookClient[] {
  return HOOK_CLIENTS.filter((client) => {
    const settings = jsonIn(join(folder, `${client}.json`));
    const file = nonEmptyString(settings?.["hooks_file"]) ?? userHooksFile(client, env, home);
    const text = textIn(file);
    return settings !== null && holdsHook(client, text) && !/\bcarrier\.(?:pl|sh)\b/.test(text);
  });
}

/** What a governed client cannot enforce. */
function limitsOf(client: HookClient, version: string | null, { home, env }: MachinePlaces): string[] {
  if (client === "claude-code" && version !== null && isBefore(version, "2.1.295"))
    return ["a hook that fails to start lets the call through before 2.1.295"];
  const file = userHooksFile(client, env, home);
  const managed = managedHooksFile(client);
  const trusted = managed !== undefined && startsHook(client, managed);
  if (client === "codex" && !trusted && !textIn(codexConfig(file)).includes("trusted_hash"))
    return ["Codex ignores the hook until you trust it under /hooks"];
  return client === "gemini" ? ["a hook that fails to start lets the call through"] : [];
}

const codexConfig = (hooks: string): string => join(dirname(hooks), "config.toml");

function isBefore(version: string, limit: string): boolean {
  const [a, b] = [version, limit].map((text) => text.split(".").map((part) => Number.parseInt(part, 10)));
  for (let i = 0; i < b!.length; i++) if ((a![i] ?? 0) !== b![i]) return (a![i] ?? 0) < b![i]!;
  return false;
}

function programOf(client: HookClient, env: NodeJS.ProcessEnv): string | null {
  for (const folder of (env["PATH"] ?? "").split(delimiter)) {
    const path = join(folder, PROGRAMS[client]);
    if (isAbsolute(folder) && existsSync(path)) return realpathSync(path);
  }
  return null;
}

/** From the package around the program, or from its path. The program itself is not started. */
function versionOf(program: string): string | null {
  for (let at = dirname(program); dirname(at) !== at; at = dirname(at)) {
    const version = jsonIn(join(at, "package.json"))?.["version"];
    if (typeof version === "string") return version;
  }
  return /\/(\d+\.\d+\.\d+)(?:\/|$)/.exec(program)?.[1] ?? null;
}

function jsonIn(path: string): Record<string, unknown> | null {
  try {
    const given: unknown = JSON.parse(readTextOrNull(path) ?? "");
    return isRecord(given) ? given : null;
  } catch {
    return null;
  }
}

const textIn = (path: string): string => readTextOrNull(path) ?? "";

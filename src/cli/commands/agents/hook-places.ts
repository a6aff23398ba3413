/**
 * Where `svc connect <client> --hooks` puts the hook: the user's settings of the client, which no branch of a project
 * replaces, or with options the machine's or the project's. Takes it out again as well.
 */
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join, relative, resolve } from "node:path";
import { readIfThere, replaceWithoutBackup, undoWrite } from "../../../gateway/connect/backup.ts";
import type { HookClient } from "../../../hook/clients/clients.ts";
import {
  HOOK_INSTALLS,
  holdsHook,
  hooksFile,
  managedHooksFile,
  userHooksFile,
  withoutHooks,
} from "../../../hook/clients/install.ts";
import { resolvedDirectory, workspaceOf } from "../../../hook/workspace/registered.ts";
import { runGit, workTreeTop } from "../../../hook/workspace/safe-git.ts";
import { forbiddenError, invalidError } from "../../../kernel/errors.ts";
import { type CommandIo, escapeControls } from "../../io.ts";

type Flags = Record<string, unknown>;

const SCOPES = ["user", "managed", "project", "file"] as const;

export const homeOf = (io: CommandIo): string => io.env["HOME"] || homedir();

/** The client's settings file that the options name. */
export function settingsFile(io: CommandIo, client: HookClient, flags: Flags): string {
  const chosen = SCOPES.filter((name) => flags[name] !== undefined && flags[name] !== false);
  if (chosen.length > 1) throw invalidError(`choose one of ${chosen.map((name) => `--${name}`).join(", ")}`);
  if (flags["file"] !== undefined) return resolve(io.cwd, flags["file"] as string);
  if (flags["project"] === true) return join(io.cwd, hooksFile(client));
  return flags["managed"] === true ? managedFile(client) : userHooksFile(client, io.env, homeOf(io));
}

function managedFile(client: HookClient): string {
  const file = managedHooksFile(client);
  const { title } = HOOK_INSTALLS[client];
  if (file === undefined)
    throw invalidError(`--managed: ${title} has no settings of the machine on this platform`);
  if (process.getuid?.() !== 0)
    throw forbiddenError(`--managed: only root can write ${file}; run the command with sudo`);
  return file;
}

/** Whether the machine's settings start the hook, so that the user's must not start it again. */
export function isManaged(client: HookClient): boolean {
  const file = managedHooksFile(client);
  try {
    return file !== undefined && holdsHook(client, readFileSync(file, "utf8"));
  } catch {
    return false;
  }
}

/** Project files around the working directory that start the hook. */
export async function hookedProjectFiles(io: CommandIo, client: HookClient): Promise<string[]> {
  const user = resolvedDirectory(userHooksFile(client, io.env, homeOf(io)));
  const places = new Set(
    [resolvedDirectory(io.cwd), workspaceOf(io.cwd)].map((at) => join(at, hooksFile(client))),
  );
  const found: string[] = [];
  for (const file of places)
    if (resolvedDirectory(file) !== user && holdsHook(client, (await readIfThere(file)) ?? ""))
      found.push(file);
  return found;
}

/** Whether git has the file in its index, so that a checkout can replace it. */
export function isTracked(file: string): boolean {
  const top = workTreeTop(file);
  if (top === null) return false;
  const name = relative(resolvedDirectory(top), resolvedDirectory(file));
  return (runGit(top, ["ls-files", "-z", "--", name]) ?? "") !== "";
}

/** Restores the file from its backup, or takes the hook out of a file that has changed since. */
export async function takeHookOut(io: CommandIo, client: HookClient, file: string): Promise<boolean> {
  const held = async () => {
    const text = await readIfThere(file);
    return text !== null && holdsHook(client, text) ? text : null;
  };
  if ((await held()) === null) return false;
  await undoWrite(file).catch(() => {});
  // The backup of a file that a team shares may hold the hook of another person.
  const text = await held();
  if (text !== null) await replaceWithoutBackup(file, withoutHooks(client, text));
  io.out(`took the hook out of ${escapeControls(file)}`);
  if (isTracked(file)) io.out("git tracks this file: commit the change");
  return true;
}

/** Variables that coding agents set for the commands that they run. */
const AGENT_VARIABLES = [
  "CLAUDECODE",
  "GEMINI_CLI",
  "CODEX_SANDBOX",
  "CODEX_THREAD_ID",
  "CODEX_CI",
  "CURSOR_AGENT",
];

/** The hook refuses the command to an agent too. This also refuses it where the hook was not asked. */
export function refuseAgents(env: CommandIo["env"]): void {
  const found = AGENT_VARIABLES.find((name) => env[name]);
  if (found !== undefined)
    throw forbiddenError(
      `--undo: a coding agent runs this command (${found} is set); run it in your own terminal`,
    );
}

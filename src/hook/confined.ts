/**
 * Events from inside `svc run`. The confined side can invent any event, and its files outside of the workspace are not
 * those of this machine. So an event is held to the workspace and to sessions that began inside.
 */
import { realpathSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import type { HookEvent } from "./clients/clients.ts";
import type { SnapshotSettings } from "./record/record-scope.ts";
import type { ConfinedCaller } from "./resident/services.ts";

/** Ids that cannot be those of another session's child run. */
const SESSION_ID = /^[A-Za-z0-9-]{1,100}$/;
/** Directories in the home directory where clients keep transcripts. */
const CLIENT_FOLDERS = [".claude", ".codex", ".gemini"];

/** Throws for an event that no client in this confinement has. */
export function confineEvent(event: HookEvent, { workspace }: ConfinedCaller, home: string): HookEvent {
  if (!SESSION_ID.test(event.session)) throw new Error("the session of a confined client needs a plain id");
  const isHere = isInside(event.cwd, workspace);
  if (!isHere && event.moment === "before")
    throw new Error(`inside svc run, calls are made in ${workspace}; change to that directory`);
  const isKnown = CLIENT_FOLDERS.some((name) => isBelow(event.transcript ?? "", join(home, name)));
  return {
    ...event,
    cwd: isHere ? event.cwd : workspace,
    transcript: isKnown ? event.transcript : null,
  };
}

/** Files of this machine that a confined call can change. Others end with the run. */
export const confinedFiles = (files: readonly string[], { workspace }: ConfinedCaller): string[] =>
  files.filter((path) => isInside(path, workspace));

/** An unknown command needs no approval because it can be undone, so it must be recorded. */
export const confinedSnapshot = (
  settings: SnapshotSettings,
  tool: string,
  confined: ConfinedCaller | undefined,
): SnapshotSettings =>
  confined !== undefined && tool === "code.shell_unknown" ? { ...settings, required: true } : settings;

function isInside(path: string, workspace: string): boolean {
  return isBelow(path, workspace) && isBelow(resolvedExisting(path), workspace);
}

function isBelow(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return path !== "" && !way.startsWith("..") && !way.startsWith("/");
}

/** Where the longest existing part of the path is. Links of the confined side must not lead outside. */
function resolvedExisting(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : resolvedExisting(parent);
  }
}

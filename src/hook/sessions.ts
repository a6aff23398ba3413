/**
 * Where each session of a coding agent began, and whether it is governed. A session that began governed stays governed
 * in every directory. Nothing here reaches the ledger.
 */
import { readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stateFileName } from "./call-state.ts";
import { type HookClient, type HookEvent, isRecord } from "./clients/clients.ts";
import { holdsHook, hooksFile } from "./clients/install.ts";
import { makeOwnFolder } from "./own-folder.ts";
import type { SeenFiles } from "./transcripts/transcripts.ts";
import { readTextOrNull } from "./workspace/read-text.ts";
import {
  isRegistered,
  type RegisteredWorkspaces,
  resolvedDirectory,
  workspaceOf,
} from "./workspace/registered.ts";

export interface SessionState {
  client: string;
  /** Resolved directory in which the session began. */
  began: string;
  governed: boolean;
  /** The client's own id of the session. */
  session: string;
  /** The launcher's run, if the session began inside `svc run`. */
  confined_run?: string;
  /** Transcripts that its events named. */
  transcripts?: string[];
  /** What the transcripts were when they were last read. */
  seen?: SeenFiles;
}

/** Clients delete their own sessions sooner, so an older one is never resumed. */
const KEPT_MS = 90 * 24 * 60 * 60 * 1_000;

const sessionsFolder = (folder: string): string => join(folder, "sessions");

interface GoverningSettings {
  folder: string;
  home: string;
  workspaces?: RegisteredWorkspaces;
  /** The launcher's run, for an event from inside `svc run`. */
  confined_run?: string | undefined;
}

/**
 * Whether this session is governed. Throws if its state cannot be kept, and if the confined side names a session that
 * began elsewhere; the call is then refused.
 */
export function isGovernedSession(
  client: HookClient,
  event: HookEvent,
  { folder, home, workspaces, confined_run }: GoverningSettings,
): boolean {
  // Settings from before workspaces were registered govern every session that starts the hook.
  if (workspaces === undefined && confined_run === undefined) return true;
  const path = sessionPath(folder, client, event.session);
  const kept = readState(path);
  if (kept !== null && confined_run !== undefined && kept.confined_run !== confined_run)
    throw new Error("the session began outside of this svc run");
  if (event.moment === "ended") touch(path);
  if (kept?.governed === true) {
    addTranscript(folder, path, kept, event.transcript);
    return true;
  }
  const began = kept?.began ?? resolvedDirectory(event.cwd);
  const governed =
    workspaces === undefined || isRegistered(began, workspaces) || isProjectHooked(client, began, home);
  if (kept === null || governed) {
    const transcripts = event.transcript === null ? [] : [event.transcript];
    const place = { client, session: event.session, began, governed, transcripts };
    keep(folder, path, confined_run === undefined ? place : { ...place, confined_run });
  }
  return governed;
}

/** A project whose own settings start the hook is governed, as its team decided. The user's settings are not a project's. */
function isProjectHooked(client: HookClient, began: string, home: string): boolean {
  return [began, workspaceOf(began)].some((at) => {
    if (at === resolvedDirectory(home)) return false;
    const settings = readTextOrNull(join(at, hooksFile(client)));
    return settings !== null && holdsHook(client, settings);
  });
}

/** Null for a new session. A state that cannot be read counts as governed. */
function readState(path: string): SessionState | null {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
  try {
    const given: unknown = JSON.parse(text);
    if (isRecord(given) && typeof given["began"] === "string" && typeof given["governed"] === "boolean")
      // Written by this program, and marked by the two fields above.
      return given as unknown as SessionState;
  } catch {}
  return { client: "", session: "", began: "", governed: true };
}

const sessionPath = (folder: string, client: HookClient, session: string): string =>
  join(sessionsFolder(folder), `${client}-${stateFileName(session)}.json`);

/** The state of a session. Null if the hook never saw it. */
export const readSession = (folder: string, client: HookClient, session: string): SessionState | null =>
  readState(sessionPath(folder, client, session));

/** Every session that the hook saw, newest last. */
export const listSessions = (folder: string): (SessionState & { seen_ms: number })[] =>
  sessionFiles(folder)
    .sort((a, b) => a.seen_ms - b.seen_ms)
    .flatMap(({ path, seen_ms }) => {
      const state = readState(path);
      return state === null || state.session === "" ? [] : [{ ...state, seen_ms }];
    });

export function keepSeen(folder: string, client: HookClient, session: string, seen: SeenFiles): void {
  const path = sessionPath(folder, client, session);
  const state = readState(path);
  if (state !== null) keep(folder, path, { ...state, seen });
}

function addTranscript(folder: string, path: string, state: SessionState, transcript: string | null): void {
  const known = state.transcripts ?? [];
  if (transcript === null || known.includes(transcript) || state.session === "") return;
  keep(folder, path, { ...state, transcripts: [...known, transcript] });
}

function keep(folder: string, path: string, state: SessionState): void {
  const own = sessionsFolder(folder);
  makeOwnFolder(own);
  for (const { path: old, seen_ms } of sessionFiles(folder))
    if (Date.now() - seen_ms > KEPT_MS) rmSync(old, { force: true });
  // Whole or not at all: another event of the session may read it now.
  const fresh = `${path}.${process.pid}.new`;
  writeFileSync(fresh, JSON.stringify(state), { mode: 0o600 });
  renameSync(fresh, path);
}

function touch(path: string): void {
  try {
    const now = new Date();
    utimesSync(path, now, now);
  } catch {}
}

function sessionFiles(folder: string): { path: string; seen_ms: number }[] {
  const own = sessionsFolder(folder);
  let names: string[] = [];
  try {
    names = readdirSync(own);
  } catch {}
  return names.flatMap((name) => {
    if (!name.endsWith(".json")) return [];
    const path = join(own, name);
    const found = statSync(path, { throwIfNoEntry: false });
    return found === undefined ? [] : [{ path, seen_ms: found.mtimeMs }];
  });
}

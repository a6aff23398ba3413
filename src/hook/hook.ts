/**
 * Handles one event of a coding agent's hook: requests a decision before a call and reports its outcome afterwards. The
 * hook refuses a call without a decision, and never answers more than "no objection".
 */
import { join } from "node:path";
import { cutText } from "../kernel/text/truncate.ts";
import { backgroundId, type EndedTask, endedTask } from "./background-commands.ts";
import { type CallState, CallStateStore } from "./call-state.ts";
import {
  type HookAnswer,
  type HookClient,
  type HookEvent,
  passAnswer,
  readEvent,
  refuseAnswer,
} from "./clients/clients.ts";
import { decideCall } from "./hold.ts";
import { createPathGuard } from "./path-guard.ts";
import { type CallContext, singleCall } from "./resident/services.ts";
import { reportOutcome, ServiceUnreachable } from "./service.ts";
import { isGovernedSession } from "./sessions.ts";
import type { HookSettings } from "./settings.ts";
import { decisiveFiles } from "./shell/rules/decisive-files.ts";
import { classifyWithTimeout } from "./time-limit.ts";
import { packCall } from "./tool-calls.ts";
import { type FileSnapshot, snapshotFiles } from "./workspace/file-snapshot.ts";
import { hexHash } from "./workspace/hash.ts";
import { changedSince } from "./workspace/work-tree.ts";

/** Permissions in the hook's manifests. The key's `max_permissions` may allow fewer. */
const HOOK_PERMISSIONS = ["code.read", "code.edit", "code.run", "code.reach", "code.destroy"] as const;

const MAX_RUN_ID = 128;

/** How many changed files a report names. */
const MAX_NAMED = 20;

export async function handleEvent(
  client: HookClient,
  text: string,
  settings: () => HookSettings,
  context: CallContext = singleCall(""),
): Promise<HookAnswer> {
  let event: HookEvent | string | null;
  try {
    event = readEvent(client, JSON.parse(text));
  } catch {
    event = "the hook's input is not JSON";
  }
  if (event === null) return passAnswer(client);
  if (typeof event === "string") return refuseAnswer(`svc: ${event}`);
  try {
    const given = settings();
    if (!isGovernedSession(client, event, given)) return passAnswer(client);
    if (event.moment === "before") return await before(client, event, given, context);
    return passAnswer(client, await after(event, given));
  } catch (error) {
    const why = explain(error, settings);
    return event.moment === "before" ? refuseAnswer(why) : { ...passAnswer(client), err: why };
  }
}

function explain(error: unknown, settings: () => HookSettings): string {
  const said = cutText(error instanceof Error ? error.message : String(error), 1_000);
  return error instanceof ServiceUnreachable
    ? `svc: the service cannot be reached (${said}), so the call is refused; start it with svc server${settings().config_option}`
    : `svc: ${said}`;
}

async function before(
  client: HookClient,
  event: HookEvent,
  settings: HookSettings,
  context: CallContext,
): Promise<HookAnswer> {
  const guard = createPathGuard({
    home: settings.home,
    protect: settings.protect,
    authority: new URL(settings.server).host,
  });
  const notes = new CallStateStore(settings.notes, event.session);
  const changed = notes.changed();
  const call = classifyWithTimeout(() =>
    packCall(client, event, guard, { home: settings.home, changed, edits: notes.edits() }),
  );
  const opening = {
    ...runOf(client, event),
    mode: settings.mode,
    permissions: HOOK_PERMISSIONS,
    reason: cutText(`${client} in ${event.cwd}`, 1_000),
  };
  const intent = { tool: call.tool, args: call.args, reason: call.reason };
  const holdable = call.touches.length === 0;
  const decided = await decideCall(settings, { client, cwd: event.cwd, opening, intent, holdable }, context);
  const { run_id } = decided;
  if (decided.decision === "block" || decided.step === undefined)
    return refuseAnswer(
      refusal(settings, [...(decided.reasons ?? []), ...call.touches], decided.hints ?? []),
    );
  const { step } = decided;
  if (context.signal.aborted) {
    await reportOutcome(settings, run_id, step, {
      status: "failed",
      error: "the client no longer waited for the answer",
    });
    return refuseAnswer("svc: the answer came too late");
  }
  // Protected paths stay blocked in every mode and under every policy.
  if (call.touches.length > 0) {
    await reportOutcome(settings, run_id, step, { status: "failed", error: "refused by the hook" });
    return refuseAnswer(refusal(settings, call.touches, []));
  }
  // Files that cannot be saved may still be changed. Their step is then recorded as impossible to undo.
  const before = decided.before === undefined ? null : seen(call.files, true);
  try {
    const { tool, files, command, started_only } = call;
    const note = { run: run_id, step, tool, files, command, before, agent: event.agent, started_only };
    notes.keep(event.call, note);
    notes.keepChanged(call.writes);
  } catch (error) {
    await reportOutcome(settings, run_id, step, {
      status: "failed",
      error: "the hook could not save the call's state",
    });
    throw error;
  }
  const would = decided.decision === "would_block";
  return passAnswer(client, would ? `svc would have blocked this: ${decided.reasons?.join("; ")}` : null);
}

function refusal(
  { config_option }: HookSettings,
  reasons: readonly string[],
  hints: readonly string[],
): string {
  const waits = reasons.some((reason) => reason.startsWith("approval required"));
  return [
    `svc: ${reasons.join("; ")}`,
    ...hints.map((hint) => `hint: ${hint}`),
    ...(waits
      ? [`a person must decide it (svc approvals list${config_option}); then make the same call again`]
      : []),
  ].join("\n");
}

/** The run of a session, or of a sub-agent under it. Ids of the client are limited to the characters of run ids. */
function runOf(client: HookClient, { session, agent }: HookEvent): { run_id: string; parent?: string } {
  const clean = (id: string) => id.replace(/[^A-Za-z0-9._-]/g, "_");
  const run_id = `${client}-${clean(session)}`.slice(0, MAX_RUN_ID);
  if (agent === null) return { run_id };
  const own = `${run_id}.${clean(agent)}`;
  return { run_id: own.length <= MAX_RUN_ID ? own : `${client}-${hexHash(own)}`, parent: run_id };
}

/** Reports the outcome. Returns a remark for the session, or null. */
async function after(event: HookEvent, settings: HookSettings): Promise<string | null> {
  const notes = new CallStateStore(settings.notes, event.session);
  if (event.moment === "ended") {
    for (const { note, forget } of notes.left()) {
      const runs_on = note.agent !== null || note.background !== undefined;
      if (runs_on && !event.session_over) continue;
      await reportOutcome(settings, note.run, note.step, unreported(note));
      forget();
    }
    return null;
  }
  await settleBackground(event, settings, notes);
  const kept = notes.find(event.call);
  if (kept === null) return null;
  const running = event.moment === "after" ? backgroundId(kept.note, event.response) : null;
  if (running !== null) {
    kept.keepRunning(running);
    return null;
  }
  const { note, kept_ms, forget } = kept;
  const outcome = event.moment === "failed" ? failure(note, event) : success(note);
  notes.keepEdits(note, outcome as { after?: FileSnapshot });
  const { command } = note;
  const missed = notes.gone();
  const changes = command && changedSince(command.cwd, Math.min(command.began_ms, kept_ms), missed);
  const changed = changes?.changed ?? null;
  if (command !== null && changed !== null)
    notes.keepChanged(decisiveFiles(changed.map((path) => join(command.cwd, path))));
  await reportOutcome(
    settings,
    note.run,
    note.step,
    changed === null ? outcome : { ...outcome, result: { changed: changed.slice(0, MAX_NAMED) } },
  );
  // Reports each missing file once, because a later command did not remove it.
  if (changes !== null && changes.gone.length + missed.size > 0) notes.keepGone(changes.gone);
  forget();
  if (changed !== null) return beyondUndo("command", changed);
  return beyondUndo("edit", note.before === null && event.moment !== "failed" ? note.files : []);
}

/** Reports the outcome of a background command after the client reported its end. */
async function settleBackground(
  event: HookEvent,
  settings: HookSettings,
  notes: CallStateStore,
): Promise<void> {
  const ended = event.moment === "after" ? endedTask(event) : null;
  if (ended === null) return;
  for (const { note, forget } of notes.left()) {
    if (note.background !== ended.id) continue;
    await reportOutcome(settings, note.run, note.step, taskOutcome(note, ended));
    forget();
  }
}

function taskOutcome(note: CallState, { how }: EndedTask): object {
  if (how === "completed") return { status: "succeeded" };
  const known = how === "failed" && HARMLESS.test(note.tool);
  return {
    status: known ? "failed" : "uncertain",
    error: `the client reports the background command as ${how}`,
  };
}

function beyondUndo(by: "command" | "edit", files: readonly string[]): string | null {
  if (files.length === 0) return null;
  const more = files.length > MAX_NAMED ? `, and ${files.length - MAX_NAMED} more` : "";
  return `svc: beyond undo, changed by this ${by}: ${files.slice(0, MAX_NAMED).join(", ")}${more}`;
}

function success({ before, files }: CallState): object {
  if (before === null) return { status: "succeeded" };
  const now = seen(files);
  return { status: "succeeded", before, ...(now === null ? {} : { after: now }) };
}

/** State of the files. Null if one cannot be read or saved, or is not a plain file now. */
function seen(files: readonly string[], keep = false): FileSnapshot | null {
  try {
    return snapshotFiles(files, keep);
  } catch {
    return null;
  }
}

/** Calls without side effects count as failed after an error. The effect of any other failed call is uncertain. */
const HARMLESS = /^code\.(?:read|web|client|shell_read|shell_build)$/;

function failure(note: CallState, { error, interrupted, declined }: HookEvent): object {
  const said = cutText(error ?? "the client reports a failure", 4_000);
  if (note.before !== null) return settled(note, said);
  const known = declined || (HARMLESS.test(note.tool) && !interrupted);
  return { status: known ? "failed" : "uncertain", error: said };
}

/**
 * Outcome of a call without a later event: its user refused it, it was interrupted, or the client reports no failures.
 */
function unreported(note: CallState): object {
  if (note.background !== undefined)
    return { status: "uncertain", error: "the session ended before the background command did" };
  const said = "the client reported no outcome";
  if (note.before !== null) return settled(note, said);
  return { status: HARMLESS.test(note.tool) ? "failed" : "uncertain", error: said };
}

/** Decides by the files themselves whether an edit took place. */
function settled(note: CallState, error: string): object {
  if (JSON.stringify(seen(note.files)?.state) === JSON.stringify(note.before?.state))
    return { status: "failed", error };
  return success(note);
}

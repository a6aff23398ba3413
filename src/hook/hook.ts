/**
 * One event of a coding agent's hook: a call is asked for before it is made and its outcome reported after it. The
 * hook refuses whatever it cannot get an answer for, and never says more than "no objection".
 */
import { cutText } from "../kernel/cut.ts";
import { backgroundId, type EndedTask, endedTask } from "./background.ts";
import { packCall } from "./calls.ts";
import {
  denyAnswer,
  type HookAnswer,
  type HookClient,
  type HookEvent,
  passAnswer,
  readEvent,
  refuseAnswer,
} from "./clients.ts";
import { type FileLook, lookAt } from "./files.ts";
import { createGuard } from "./guard.ts";
import { judgeInTime } from "./judge-in-time.ts";
import { type Note, Notes } from "./notes.ts";
import { askFor, report, Unreachable } from "./service.ts";
import type { HookSettings } from "./settings.ts";
import { changedSince } from "./work-tree.ts";

/** What the pack's manifests ask for; the key's `max_permissions` may hold less. */
export const PERMISSIONS = ["code.read", "code.edit", "code.run", "code.reach", "code.destroy"] as const;

/** Changed files that are told by name. */
const MOST_NAMED = 20;

export async function handleEvent(
  client: HookClient,
  text: string,
  settings: () => HookSettings,
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
    if (event.moment === "before") return await before(client, event, settings());
    return passAnswer(client, await after(event, settings()));
  } catch (error) {
    const why = explain(error, settings);
    return event.moment === "before" ? denyAnswer(client, why) : { ...passAnswer(client), err: why };
  }
}

function explain(error: unknown, settings: () => HookSettings): string {
  const said = cutText(error instanceof Error ? error.message : String(error), 1_000);
  return error instanceof Unreachable
    ? `svc: the service cannot be reached (${said}), so the call is refused; start it with svc server${settings().config_option}`
    : `svc: ${said}`;
}

async function before(client: HookClient, event: HookEvent, settings: HookSettings): Promise<HookAnswer> {
  const guard = createGuard({
    home: settings.home,
    protect: settings.protect,
    authority: new URL(settings.server).host,
  });
  const call = judgeInTime(() => packCall(client, event, guard, settings.home));
  const run_id = runOf(client, event.session);
  const decided = await askFor(
    settings,
    {
      run_id,
      mode: settings.mode,
      permissions: PERMISSIONS,
      reason: cutText(`${client} in ${event.cwd}`, 1_000),
    },
    { tool: call.tool, args: call.args, reason: call.reason },
  );
  if (decided.decision === "block" || decided.step === undefined)
    return denyAnswer(
      client,
      refusal(settings, [...(decided.reasons ?? []), ...call.touches], decided.hints ?? []),
    );
  const { step } = decided;
  // Whatever the mode and the policy: what is protected stays out of reach.
  if (call.touches.length > 0) {
    await report(settings, run_id, step, { status: "failed", error: "refused by the hook" });
    return denyAnswer(client, refusal(settings, call.touches, []));
  }
  // What cannot be kept may be changed all the same; its step then says that it cannot be undone.
  const before = decided.before === undefined ? null : seen(call.files, true);
  try {
    const { tool, files, command, started_only } = call;
    const note = { run: run_id, step, tool, files, command, before, agent: event.agent, started_only };
    new Notes(settings.notes, event.session).keep(event.call, note);
  } catch (error) {
    await report(settings, run_id, step, { status: "failed", error: "the hook could not note the call" });
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
      ? [`a person decides it (svc approvals list${config_option}); make the same call again afterwards`]
      : []),
  ].join("\n");
}

/** Ids of sessions are the client's; a run's id has its own letters. */
function runOf(client: HookClient, session: string): string {
  return `${client}-${session.replace(/[^A-Za-z0-9._-]/g, "_")}`.slice(0, 128);
}

/** What the session should know of it, or null. */
async function after(event: HookEvent, settings: HookSettings): Promise<string | null> {
  const notes = new Notes(settings.notes, event.session);
  if (event.moment === "ended") {
    for (const { note, forget } of notes.left()) {
      const runs_on = note.agent !== null || note.background !== undefined;
      if (runs_on && !event.session_over) continue;
      await report(settings, note.run, note.step, unreported(note));
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
  const { command } = note;
  const missed = notes.gone();
  const changes = command && changedSince(command.cwd, Math.min(command.began_ms, kept_ms), missed);
  const changed = changes?.changed ?? null;
  await report(
    settings,
    note.run,
    note.step,
    changed === null ? outcome : { ...outcome, result: { changed: changed.slice(0, MOST_NAMED) } },
  );
  // Told once, when they went: a later command did not remove them.
  if (changes !== null && changes.gone.length + missed.size > 0) notes.keepGone(changes.gone);
  forget();
  if (changed !== null) return beyondUndo("command", changed);
  return beyondUndo("edit", note.before === null && event.moment !== "failed" ? note.files : []);
}

/** A call by which the client reports that a command in the background has ended. */
async function settleBackground(event: HookEvent, settings: HookSettings, notes: Notes): Promise<void> {
  const ended = event.moment === "after" ? endedTask(event) : null;
  if (ended === null) return;
  for (const { note, forget } of notes.left()) {
    if (note.background !== ended.id) continue;
    await report(settings, note.run, note.step, taskOutcome(note, ended));
    forget();
  }
}

function taskOutcome(note: Note, { how }: EndedTask): object {
  if (how === "completed") return { status: "succeeded" };
  const known = how === "failed" && HARMLESS.test(note.tool);
  return {
    status: known ? "failed" : "uncertain",
    error: `the client reports the background command as ${how}`,
  };
}

function beyondUndo(by: "command" | "edit", files: readonly string[]): string | null {
  if (files.length === 0) return null;
  const more = files.length > MOST_NAMED ? `, and ${files.length - MOST_NAMED} more` : "";
  return `svc: beyond undo, changed by this ${by}: ${files.slice(0, MOST_NAMED).join(", ")}${more}`;
}

function success({ before, files }: Note): object {
  if (before === null) return { status: "succeeded" };
  const now = seen(files);
  return { status: "succeeded", before, ...(now === null ? {} : { after: now }) };
}

/** Null where the files cannot be read or kept, or something else lies there by now. */
function seen(files: readonly string[], keep = false): FileLook | null {
  try {
    return lookAt(files, keep);
  } catch {
    return null;
  }
}

/** A call that changes nothing has failed; of another that ended with an error it is not known how far it got. */
const HARMLESS = /^code\.(?:read|web|client|shell_read|shell_build)$/;

function failure(note: Note, { error, interrupted, declined }: HookEvent): object {
  const said = cutText(error ?? "the client reports a failure", 4_000);
  if (note.before !== null) return settled(note, said);
  const known = declined || (HARMLESS.test(note.tool) && !interrupted);
  return { status: known ? "failed" : "uncertain", error: said };
}

/** No event came after it: refused by the client's user, interrupted, or failed in a client that does not tell. */
function unreported(note: Note): object {
  if (note.background !== undefined)
    return { status: "uncertain", error: "the session ended before the background command did" };
  const said = "the client reported no outcome";
  if (note.before !== null) return settled(note, said);
  return { status: HARMLESS.test(note.tool) ? "failed" : "uncertain", error: said };
}

/** The files themselves say whether an edit took place. */
function settled(note: Note, error: string): object {
  if (JSON.stringify(seen(note.files)?.state) === JSON.stringify(note.before?.state))
    return { status: "failed", error };
  return success(note);
}

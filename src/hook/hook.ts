/**
 * Handles one event of a coding agent's hook: requests a decision before a call and reports its outcome afterwards. The
 * hook refuses a call without a decision, and never answers more than "no objection".
 */
import { join } from "node:path";
import { cutText } from "../kernel/text/truncate.ts";
import { signatureObjection } from "./approvers.ts";
import { backgroundId, endedTask } from "./background-commands.ts";
import {
  editOutcome,
  failureOf,
  MAX_NAMED,
  recordedOutcome,
  taskOutcome,
  unreportedOutcome,
} from "./call-outcome.ts";
import { CallStateStore, type KeptNote } from "./call-state.ts";
import {
  type HookAnswer,
  type HookClient,
  type HookEvent,
  isRecord,
  nonEmptyString,
  passAnswer,
  readEvent,
  refuseAnswer,
  runOfSession,
} from "./clients/clients.ts";
import { confinedFiles, confinedSnapshot, confineEvent } from "./confined.ts";
import { clientLimit, decideCall } from "./hold.ts";
import { createPathGuard } from "./path-guard.ts";
import { EarlyRecord } from "./record/early-record.ts";
import {
  type CallToOpen,
  changedFiles,
  closeCall,
  inFull,
  openCall,
  type RecordPlace,
  recordedStates,
} from "./record/recorded-call.ts";
import { type CallContext, singleCall } from "./resident/services.ts";
import {
  giveTexts,
  type HookDecision,
  type RunOpening,
  reportOutcome,
  ServiceUnreachable,
} from "./service.ts";
import { lookAtTranscripts } from "./session-end.ts";
import { isGovernedSession, readSession } from "./sessions.ts";
import type { HookSettings } from "./settings.ts";
import { decisiveFiles } from "./shell/rules/decisive-files.ts";
import { classifyWithTimeout } from "./time-limit.ts";
import { type PackCall, packCall } from "./tool-calls.ts";
import { judgeUse } from "./unseen-use.ts";
import { hexHash } from "./workspace/hash.ts";
import { changedSince } from "./workspace/work-tree.ts";

/** Permissions in the hook's manifests. The key's `max_permissions` may allow fewer. */
const HOOK_PERMISSIONS = ["code.read", "code.edit", "code.run", "code.reach", "code.destroy"] as const;

const MAX_RUN_ID = 128;

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
    if (context.confined !== undefined) event = confineEvent(event, context.confined, given.home);
    if (!isGovernedSession(client, event, { ...given, confined_run: context.confined?.run_id }))
      return passAnswer(client);
    if (event.moment === "before") return await before(client, event, given, context);
    if (event.moment === "prompt") await givePrompt(client, event, given);
    if (event.moment === "ended") lookAtTranscripts(client, event, given, context);
    if (event.moment === "prompt") return passAnswer(client);
    return passAnswer(client, await after(event, given, context));
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
  const arrived_ms = Date.now();
  const notes = new CallStateStore(settings.notes, event.session);
  const changed = notes.changed();
  context.records?.meet(event.session, event.cwd, settings.snapshot);
  const { call, keepSeen } = classifyWithTimeout(() => {
    const began = readSession(settings.folder, client, event.session)?.began || event.cwd;
    const around = { home: settings.home, changed, edits: notes.edits(), began };
    const packed = packCall(client, event, guard, around);
    return judgeUse(client, event, settings, packed, changed);
  });
  const { confined } = context;
  if (confined !== undefined) call.files = confinedFiles(call.files, confined);
  const opening = openingOf(client, event, settings);
  const intent = {
    tool: call.tool,
    args: call.args,
    reason: call.reason,
    ref: refOf(event.call),
    ...(confined === undefined ? {} : { sandboxed: { run_id: confined.run_id, secret: confined.secret } }),
  };
  const work = { client, event, settings, context };
  const early = openEarly(work, call, arrived_ms);
  const onHold = () => early?.giveBack();
  try {
    const held = { client, cwd: event.cwd, opening, intent, holdable: call.touches.length === 0, onHold };
    const decided = await decideCall(settings, held, context);
    const { decision, run_id, step, reasons = [], hints = [] } = decided;
    if (decision === "block" || step === undefined)
      return refuseAnswer(refusal(settings, [...reasons, ...call.touches], hints));
    if (decision === "allow") keepSeen();
    return await letPass(work, { run_id, call, arrived_ms, decided, step, early });
  } finally {
    early?.giveBack();
  }
}

/** A client reports its own messages as prompts too, such as the end of a background command. */
const CLIENTS_OWN = /^\s*<[a-z]/i;

/** Gives the run what its user wrote. */
async function givePrompt(client: HookClient, event: HookEvent, settings: HookSettings): Promise<void> {
  const { prompt } = event;
  if (!settings.give_prompts || prompt === null || event.agent !== null || CLIENTS_OWN.test(prompt)) return;
  await giveTexts(settings, openingOf(client, event, settings), [prompt]);
}

const openingOf = (client: HookClient, event: HookEvent, { mode }: HookSettings): RunOpening => ({
  ...runOf(client, event),
  mode,
  permissions: HOOK_PERMISSIONS,
  reason: cutText(`${client} in ${event.cwd}`, 1_000),
});

interface BeforeWork {
  client: HookClient;
  event: HookEvent;
  settings: HookSettings;
  context: CallContext;
}

/** A call that the service allowed, and when its event arrived. */
interface AllowedCall {
  run_id: string;
  step: number;
  call: PackCall;
  decided: HookDecision;
  arrived_ms: number;
  early: EarlyRecord | null;
}

/** Commands that run unasked in most workspaces. The record of any other one waits for the decision. */
const USUALLY_ALLOWED: readonly string[] = ["code.shell_write", "code.shell_build"];

function openEarly(work: BeforeWork, call: PackCall, arrived_ms: number): EarlyRecord | null {
  const { records } = work.context;
  if (records === null || call.touches.length > 0 || !USUALLY_ALLOWED.includes(call.tool)) return null;
  return new EarlyRecord(work.context, ...recordOf(work, call, arrived_ms));
}

/** Where and how the call is recorded. */
function recordOf(
  { client, event, settings, context }: BeforeWork,
  { tool, command, files }: PackCall,
  arrived_ms: number,
): [RecordPlace, CallToOpen] {
  const { cwd, session } = event;
  const snapshot = confinedSnapshot(settings.snapshot, tool, context.confined);
  const limit_ms = command === null ? 0 : clientLimit(settings, client, cwd);
  return [
    { ...settings, snapshot },
    { session, cwd, tool, command, files, arrived_ms, limit_ms },
  ];
}

/** Records what the call may change. Refuses it if that must not fail and did. */
async function letPass(
  work: BeforeWork,
  { run_id, step, call, decided, arrived_ms, early }: AllowedCall,
): Promise<HookAnswer> {
  const { client, event, settings, context } = work;
  const notes = new CallStateStore(settings.notes, event.session);
  const refuse = async (error: string, answer: HookAnswer): Promise<HookAnswer> => {
    await reportOutcome(settings, run_id, step, { status: "failed", error });
    return answer;
  };
  // Protected paths stay blocked in every mode and under every policy.
  if (call.touches.length > 0)
    return refuse("refused by the hook", refuseAnswer(refusal(settings, call.touches, [])));
  const unsigned = await signatureObjection(context.services, settings, decided, call);
  if (unsigned !== null) return refuse("refused by the approvers file", refuseAnswer(`svc: ${unsigned}`));
  const { tool, files, command, started_only } = call;
  const [place, toOpen] = recordOf(work, call, arrived_ms);
  const { window, edit, problem } = (await early?.take()) ?? (await openCall(context, place, toOpen));
  const forget = () => (window === null ? undefined : context.records?.withdraw(window));
  if (context.signal.aborted) {
    forget();
    return refuse(
      "the client no longer waited for the answer",
      refuseAnswer("svc: the answer came too late"),
    );
  }
  if (problem !== null && place.snapshot.required) {
    forget();
    return refuse(
      "the workspace could not be recorded",
      refuseAnswer(`svc: the workspace could not be recorded (${problem}), so the call is refused`),
    );
  }
  try {
    const note = { run: run_id, step, tool, files, command, edit, agent: event.agent, started_only };
    notes.keep(event.call, { ...note, ...(window === null ? {} : { window }) });
    notes.keepChanged(call.writes);
  } catch (error) {
    forget();
    await reportOutcome(settings, run_id, step, {
      status: "failed",
      error: "the hook could not save the call's state",
    });
    throw error;
  }
  const would = decided.decision === "would_block" ? (decided.reasons ?? []) : null;
  // Files that cannot be recorded may still be changed. The session gets this message after the edit.
  const unrecorded = context.records === null || command === null ? null : problem;
  return passAnswer(client, remarksOf(would, unrecorded));
}

/** `would`: the reasons that would have blocked the call. `problem`: why the command cannot be undone. */
function remarksOf(would: readonly string[] | null, problem: string | null): string | null {
  const remarks = [
    ...(would === null ? [] : [`svc would have blocked this: ${would.join("; ")}`]),
    ...(problem === null
      ? []
      : [`svc: this command cannot be undone, because the workspace could not be recorded: ${problem}`]),
  ];
  return remarks.length === 0 ? null : remarks.join("\n");
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

/** The client's id of the call, as the intent carries it and the transcript names it. */
const refOf = (call: string): string => (call.length <= MAX_REF ? call : hexHash(call));

const MAX_REF = 128;

/** The run of a session, or of a sub-agent under it. Ids of the client are limited to the characters of run ids. */
function runOf(client: HookClient, { session, agent }: HookEvent): { run_id: string; parent?: string } {
  const clean = (id: string) => id.replace(/[^A-Za-z0-9._-]/g, "_");
  const run_id = runOfSession(client, session);
  if (agent === null) return { run_id };
  const own = `${run_id}.${clean(agent)}`;
  return { run_id: own.length <= MAX_RUN_ID ? own : `${client}-${hexHash(own)}`, parent: run_id };
}

/** Reports the outcome. Returns a remark for the session, or null. */
async function after(event: HookEvent, settings: HookSettings, context: CallContext): Promise<string | null> {
  const notes = new CallStateStore(settings.notes, event.session);
  const work = { event, settings, context, notes };
  if (event.moment === "ended") {
    for (const { note, forget } of notes.left()) {
      const runs_on = note.agent !== null || note.background !== undefined;
      if (runs_on && !event.session_over) continue;
      const end = await closeCall(context, settings, note);
      await reportOutcome(settings, note.run, note.step, unreportedOutcome(note, end));
      forget();
    }
    return null;
  }
  await settleBackground(work);
  const kept = notes.find(event.call);
  if (kept === null) return null;
  const { note, forget } = kept;
  const running = event.moment === "after" ? backgroundId(note, event.response) : null;
  if (running !== null) {
    kept.keepRunning(running);
    return null;
  }
  if (note.command !== null) return endCommand(work, kept);
  const end = await closeCall(context, settings, note, writtenTexts(event.input));
  if (end !== null && "own" in end) notes.keepEdits(end.own);
  await reportOutcome(settings, note.run, note.step, editOutcome(event, note, end));
  forget();
  const missed = event.moment === "failed" ? [] : note.files;
  return beyondUndo(
    note.edit === null ? "command" : "edit",
    end === null ? missed : inFull(end, [...end.lost, ...end.contested]),
  );
}

const WRITTEN = ["content", "contents", "new_string", "new_source"];

/** Texts that an edit says to write. */
function writtenTexts(input: Record<string, unknown>): string[] {
  const edits = Array.isArray(input["edits"]) ? input["edits"].filter(isRecord) : [];
  const texts = [input, ...edits].flatMap((one) => WRITTEN.map((name) => nonEmptyString(one[name])));
  return texts.filter((text) => text !== null);
}

interface AfterWork {
  event: HookEvent;
  settings: HookSettings;
  context: CallContext;
  notes: CallStateStore;
}

/** Reports a command and its changes. Without a record, git names the files that cannot be undone. */
async function endCommand(
  { event, settings, context, notes }: AfterWork,
  { note, kept_ms, forget }: KeptNote,
): Promise<string | null> {
  const command = note.command!;
  const outcome = event.moment === "failed" ? failureOf(note, event) : { status: "succeeded" };
  const end = await closeCall(context, settings, note);
  if (end !== null) {
    notes.keepChanged(decisiveFiles(changedFiles(end)));
    await reportOutcome(settings, note.run, note.step, recordedOutcome(event, outcome, end));
    forget();
    return beyondUndo("command", [...end.lost, ...end.contested]);
  }
  const missed = notes.gone();
  const changes = changedSince(command.cwd, Math.min(command.began_ms, kept_ms), missed);
  const changed = changes?.changed ?? null;
  if (changed !== null) notes.keepChanged(decisiveFiles(changed.map((path) => join(command.cwd, path))));
  await reportOutcome(
    settings,
    note.run,
    note.step,
    changed === null ? outcome : { ...outcome, result: { changed: changed.slice(0, MAX_NAMED) } },
  );
  // Reports each missing file once, because a later command did not remove it.
  if (changes !== null && changes.gone.length + missed.size > 0) notes.keepGone(changes.gone);
  forget();
  return beyondUndo("command", changed ?? []);
}

/** Reports the outcome of a background command after the client reported its end. */
async function settleBackground({ event, settings, context, notes }: AfterWork): Promise<void> {
  const ended = event.moment === "after" ? endedTask(event) : null;
  if (ended === null) return;
  for (const { note, forget } of notes.left()) {
    if (note.background !== ended.id) continue;
    const end = await closeCall(context, settings, note);
    await reportOutcome(settings, note.run, note.step, {
      ...taskOutcome(note, ended),
      ...recordedStates(end),
    });
    forget();
  }
}

function beyondUndo(by: "command" | "edit", files: readonly string[]): string | null {
  if (files.length === 0) return null;
  const more = files.length > MAX_NAMED ? `, and ${files.length - MAX_NAMED} more` : "";
  return `svc: beyond undo, changed by this ${by}: ${files.slice(0, MAX_NAMED).join(", ")}${more}`;
}

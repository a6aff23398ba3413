/** `svc reconcile [<run>]`: compares the transcripts of coding agents on this machine with the ledger. */
import { resolve } from "node:path";
import { HOOK_CLIENTS, type HookClient, runOfSession } from "../../../hook/clients/clients.ts";
import { readSessionCalls } from "../../../hook/reconcile.ts";
import { keepSeen, listSessions, type SessionState } from "../../../hook/sessions.ts";
import { hooksFolder } from "../../../hook/settings.ts";
import { notFoundError } from "../../../kernel/errors.ts";
import type { ResponseOf } from "../../../operations/pipeline/operation.ts";
import { reconcileRun } from "../../../operations/runs/reconcile.ts";
import {
  type CommandFlags,
  EXIT_NEEDS_ATTENTION,
  globalOptions,
  type RegisterCommand,
} from "../../context.ts";
import { type CommandIo, escapeControls } from "../../io.ts";
import type { OperationClient } from "../../operation-client.ts";

type Compared = ResponseOf<typeof reconcileRun>;

/** One session's result: the answer, or why nothing was compared. */
type Result = { run_id: string } & (Compared | { not_checked: string });

export const registerReconcile: RegisterCommand = (program, context) => {
  const { io } = context;
  globalOptions(
    program
      .command("reconcile [run]")
      .description("Compare the transcripts of coding agents with the ledger"),
  )
    .option("--dir <dir>", "directory of the hooks' files (default: ~/.config/svc/hooks)")
    .option("--json", "print the results as JSON")
    .action(async (run: string | undefined, flags: CommandFlags) => {
      const folder = resolve(io.cwd, (flags["dir"] as string | undefined) ?? hooksFolder(io.env));
      const sessions = sessionsOf(folder, run);
      await context.withDoor(flags, async (door) => {
        const results: Result[] = [];
        for (const session of sessions) results.push(await compare(door, folder, session));
        if (flags["json"]) io.out(JSON.stringify({ runs: results }, null, 2));
        else for (const result of results) describe(io, result);
        if (results.length === 0) io.err("not checked: no session of a coding agent is known here");
        if (results.length === 0 || !results.every(isEqual)) context.done(EXIT_NEEDS_ATTENTION);
      });
    });
};

function sessionsOf(folder: string, run: string | undefined): SessionState[] {
  const governed = listSessions(folder).filter(
    ({ governed, client }) => governed && (HOOK_CLIENTS as readonly string[]).includes(client),
  );
  if (run === undefined) return governed;
  const found = governed.filter(({ client, session }) => runOfSession(client as HookClient, session) === run);
  if (found.length === 0)
    throw notFoundError(`no session of a coding agent on this machine has the run ${run}`);
  return found;
}

async function compare(door: OperationClient, folder: string, state: SessionState): Promise<Result> {
  const client = state.client as HookClient;
  const run_id = runOfSession(client, state.session);
  const read = readSessionCalls(client, state);
  if ("not_checked" in read) return { run_id, not_checked: read.not_checked };
  const compared = await door.perform(reconcileRun, { run_id, source: client, calls: read.calls });
  keepSeen(folder, client, state.session, read.seen);
  return { run_id, ...compared };
}

const isEqual = (result: Result): boolean =>
  !("not_checked" in result) && result.ungoverned.length === 0 && result.unused.length === 0;

function describe({ out }: CommandIo, result: Result): void {
  if ("not_checked" in result) {
    out(`${result.run_id}: not checked: ${escapeControls(result.not_checked)}`);
    return;
  }
  const { run_id, asked, ran, ungoverned, unused } = result;
  out(`${run_id}: ${isEqual(result) ? "equal" : "different"}: ${asked} asked, ${ran} ran`);
  for (const { tool, ref, at_ms } of ungoverned)
    out(
      `  ran without asking: ${escapeControls(tool)} ${escapeControls(ref ?? "")} at ${new Date(at_ms).toISOString()}`,
    );
  for (const { run_id: run, tool, step, at_ms } of unused)
    out(`  never ran: step ${step} of ${run} ${escapeControls(tool)} at ${new Date(at_ms).toISOString()}`);
}

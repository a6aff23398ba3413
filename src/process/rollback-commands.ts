/** The compensator, reader and verify commands of a rollback, as the functions that the executor calls. */
import { showDuration } from "../kernel/duration.ts";
import type { Json } from "../kernel/json.ts";
import { parseJson } from "../kernel/json.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { Compensator, Reader, UndoCheck } from "../rollback/ports.ts";
import { type CommandResult, runCommand } from "./run-command.ts";
import { splitCommand } from "./split-command.ts";

interface CommandSettings {
  timeout_ms?: number | undefined;
  env?: Record<string, string> | undefined;
  cwd?: string | undefined;
}

/** Exit 0 is success, whatever it printed within the limit: many programs say something when all is well. */
export function compensatorCommand(command: string, settings: CommandSettings = {}): Compensator {
  const run = prepared(command, "compensator command", LIMITS.compensation_timeout_ms, settings);
  return async (call, signal) => {
    await run(call as unknown as Json, signal);
  };
}

/** Exit 0 and one JSON value on stdout; anything else is a failed read. */
export function readerCommand(command: string, settings: CommandSettings = {}): Reader {
  const run = prepared(command, "reader command", LIMITS.read_timeout_ms, settings);
  return async (request, signal) => parseJson((await run(request as unknown as Json, signal)).stdout);
}

/** Exit 0 confirms the undo. */
export function verifyCommand(command: string, settings: CommandSettings = {}): UndoCheck {
  const run = prepared(command, "verify command", LIMITS.read_timeout_ms, settings);
  return async (call, signal) => {
    await run(call as unknown as Json, signal);
  };
}

/** Splits the command at once, so that a bad one is told before anything is undone. */
function prepared(command: string, what: string, default_ms: number, settings: CommandSettings) {
  const argv = splitCommand(command, what);
  const timeout_ms = settings.timeout_ms ?? default_ms;
  const { env, cwd } = settings;
  return async (input: Json, signal: AbortSignal): Promise<CommandResult> => {
    const result = await runCommand(argv, {
      input: `${JSON.stringify(input)}\n`,
      timeout_ms,
      signal,
      env,
      cwd,
    });
    const problem = problemOf(result, timeout_ms);
    if (problem !== null) throw new Error(`the ${what} ${problem}`);
    return result;
  };
}

function problemOf(result: CommandResult, timeout_ms: number): string | null {
  if (result.not_started !== null) return `could not be started (${result.not_started})`;
  if (result.cut_short === "timeout") return `did not end within ${showDuration(timeout_ms)} and was stopped`;
  if (result.cut_short === "output")
    return `printed more than ${LIMITS.child_output_bytes} bytes and was stopped`;
  if (result.cut_short === "aborted") return "was stopped";
  if (result.code === 0) return null;
  const how =
    result.code === null ? `was ended by ${result.signal ?? "a signal"}` : `exited with code ${result.code}`;
  const said = result.stderr.trim() || result.stdout.trim();
  return said === "" ? how : `${how}: ${said.slice(-2_000)}`;
}

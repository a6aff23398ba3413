/** The compensator, reader and verify commands of a rollback, as the functions that the executor calls. */

import * as z from "zod";
import { formatDuration } from "../kernel/duration.ts";
import type { JsonValue } from "../kernel/json/json.ts";
import { asJson, parseJson } from "../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import { type CompensatorFn, PartialUndoError, type ReaderFn, type UndoCheck } from "../rollback/ports.ts";
import { type CommandResult, runCommand } from "./run-command.ts";
import { splitCommand } from "./split-command.ts";

interface CommandSettings {
  timeout_ms?: number | undefined;
  env?: Record<string, string> | undefined;
  cwd?: string | undefined;
}

/** Exit code 0 means success, regardless of the output within the limit: many programs print something on success. */
export function compensatorCommand(command: string, settings: CommandSettings = {}): CompensatorFn {
  const run = prepared(command, "compensator command", SERVICE_LIMITS.compensation_timeout_ms, settings);
  return async (call, signal) => {
    await run(asJson(call), signal);
  };
}

/** Output of a compensator that exits with a code other than 0 because it left parts unchanged. */
const partialUndo = z.object({
  error: z.string().min(1),
  left: z.array(z.object({ path: z.string(), error: z.string() })).max(100_000),
});

/** Null for any other output. */
function partialOf({ code, stdout }: CommandResult): PartialUndoError | null {
  if (code === 0 || !stdout.startsWith("{")) return null;
  try {
    const { error, left } = partialUndo.parse(parseJson(stdout));
    return new PartialUndoError(error, left);
  } catch {
    return null;
  }
}

/** Requires exit code 0 and one JSON value on stdout. Anything else is a failed read. */
export function readerCommand(command: string, settings: CommandSettings = {}): ReaderFn {
  const run = prepared(command, "reader command", SERVICE_LIMITS.read_timeout_ms, settings);
  return async (request, signal) => parseJson((await run(asJson(request), signal)).stdout);
}

/** Exit code 0 confirms the undo. */
export function verifyCommand(command: string, settings: CommandSettings = {}): UndoCheck {
  const run = prepared(command, "verify command", SERVICE_LIMITS.read_timeout_ms, settings);
  return async (call, signal) => {
    await run(asJson(call), signal);
  };
}

/** Splits the command right away, to report a malformed one before the first undo. */
function prepared(command: string, what: string, default_ms: number, settings: CommandSettings) {
  const argv = splitCommand(command, what);
  const timeout_ms = settings.timeout_ms ?? default_ms;
  const { env, cwd } = settings;
  return async (input: JsonValue, signal: AbortSignal): Promise<CommandResult> => {
    const result = await runCommand(argv, {
      input: `${JSON.stringify(input)}\n`,
      timeout_ms,
      signal,
      env,
      cwd,
    });
    const partial = partialOf(result);
    if (partial !== null) throw partial;
    const problem = problemOf(result, timeout_ms);
    if (problem !== null) throw new Error(`the ${what} ${problem}`);
    return result;
  };
}

function problemOf(result: CommandResult, timeout_ms: number): string | null {
  if (result.not_started !== null) return `could not be started (${result.not_started})`;
  if (result.cut_short === "timeout")
    return `did not end within ${formatDuration(timeout_ms)} and was stopped`;
  if (result.cut_short === "output")
    return `printed more than ${SERVICE_LIMITS.child_output_bytes} bytes and was stopped`;
  if (result.cut_short === "aborted") return "was stopped";
  if (result.code === 0) return null;
  const how =
    result.code === null ? `was ended by ${result.signal ?? "a signal"}` : `exited with code ${result.code}`;
  const said = result.stderr.trim() || result.stdout.trim();
  return said === "" ? how : `${how}: ${said.slice(-2_000)}`;
}

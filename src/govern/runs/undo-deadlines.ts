/** Deadlines of undos, and their list, stored with the steps in order of expiry. */

import { tryDuration, tryTimestamp } from "../../kernel/duration.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { type CallValues, parsePath, readPath } from "../../kernel/paths.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import { stepKey } from "../document-keys.ts";
import { isExpired } from "../expiry.ts";
import type { StoreTx } from "../port/store.ts";
import type { StepDoc } from "./run.ts";

/** When an undo expires. Undefined if the manifest declares no deadline, or the call has no value at its path. */
export function undoDeadlineOf(
  { compensation }: ToolManifest,
  succeeded_ms: number,
  values: CallValues,
): number | undefined {
  const until = compensation?.until;
  if (until === undefined) return undefined;
  const lasts_ms = tryDuration(until);
  if (lasts_ms !== undefined) return succeeded_ms + lasts_ms;
  return timeOf(readPath(parsePath(until), values));
}

/** Describes the deadline for a call not yet made; null if there is none or the call does not contain it. */
export function describeUndoDeadline(
  manifest: ToolManifest | undefined,
  values: { args: JsonValue } | undefined,
): string | null {
  const until = manifest?.compensation?.until;
  if (until === undefined) return null;
  if (tryDuration(until) !== undefined) return `expires ${until} after the call succeeded`;
  const path = parsePath(until);
  if (path.root === "result") return "expires at a time in the result of the call";
  const closes_ms = timeOf(readPath(path, { args: values?.args, result: undefined }));
  return closes_ms === undefined ? null : `expires ${new Date(closes_ms).toISOString()}`;
}

/** Numbers below this are seconds: as milliseconds they would be in 1973 or earlier. */
const MIN_EPOCH_MS = 100_000_000_000;
const LATEST_MS = 8_640_000_000_000_000;

/** Parses a timestamp in any zone, or seconds or milliseconds since 1970. */
function timeOf(value: JsonValue | undefined): number | undefined {
  const ms =
    typeof value === "string"
      ? tryTimestamp(value)
      : typeof value === "number"
        ? Math.round(value < MIN_EPOCH_MS ? value * 1_000 : value)
        : undefined;
  return ms !== undefined && ms >= 0 && ms <= LATEST_MS ? ms : undefined;
}

export function isUndoExpired({ closes_ms }: Pick<StepDoc, "closes_ms">, now: number): boolean {
  return isExpired({ expires_ms: closes_ms ?? null }, now);
}

/** Adds the step's undo to the list, at its `closes_ms`. */
export function addUndoDeadline(
  tx: StoreTx,
  { run_id, step, tool, closes_ms }: StepDoc,
  succeeded_ms: number,
): void {
  if (closes_ms === undefined) return;
  tx.put("closings", stepKey(run_id, step), { run_id, step, tool, closes_ms, succeeded_ms });
}

/** Removes the undo from the list once the step is undone. */
export function removeUndoDeadline(tx: StoreTx, { run_id, step, closes_ms }: StepDoc): void {
  if (closes_ms !== undefined) tx.delete("closings", stepKey(run_id, step));
}

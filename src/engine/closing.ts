/** When an undo stops working, and the list of those that will: kept beside the steps, in the order they close. */
import { tryDuration, tryTimestamp } from "../kernel/duration.ts";
import type { Json } from "../kernel/json.ts";
import { type CallValues, parsePath, readPath } from "../kernel/paths.ts";
import type { Manifest } from "../model/manifest/types.ts";
import type { StepDoc } from "../model/run.ts";
import type { Tx } from "../port/store.ts";
import { stepKey } from "./keys.ts";

/** Undefined where the manifest sets no time, or the call holds none at the path that it names. */
export function closesAt(
  { compensation }: Manifest,
  succeeded_ms: number,
  values: CallValues,
): number | undefined {
  const until = compensation?.until;
  if (until === undefined) return undefined;
  const lasts_ms = tryDuration(until);
  if (lasts_ms !== undefined) return succeeded_ms + lasts_ms;
  return timeOf(readPath(parsePath(until), values));
}

/** The same for a call that was not made yet; null where its undo does not close, or has no time in the call. */
export function closingWords(
  manifest: Manifest | undefined,
  values: { args: Json } | undefined,
): string | null {
  const until = manifest?.compensation?.until;
  if (until === undefined) return null;
  if (tryDuration(until) !== undefined) return `closes ${until} after the call succeeded`;
  const path = parsePath(until);
  if (path.root === "result") return "closes at a time that the result of the call tells";
  const closes_ms = timeOf(readPath(path, { args: values?.args, result: undefined }));
  return closes_ms === undefined ? null : `closes ${new Date(closes_ms).toISOString()}`;
}

/** Below this a number is taken for seconds: as milliseconds it would lie in 1973. */
const FEWEST_MS = 100_000_000_000;
const LATEST_MS = 8_640_000_000_000_000;

/** A timestamp, in whatever zone it is written; or a count of seconds or milliseconds since 1970. */
function timeOf(value: Json | undefined): number | undefined {
  const ms =
    typeof value === "string"
      ? tryTimestamp(value)
      : typeof value === "number"
        ? Math.round(value < FEWEST_MS ? value * 1_000 : value)
        : undefined;
  return ms !== undefined && ms >= 0 && ms <= LATEST_MS ? ms : undefined;
}

export function isClosed({ closes_ms }: Pick<StepDoc, "closes_ms">, now: number): boolean {
  return closes_ms !== undefined && now >= closes_ms;
}

/** Lists the step's undo; `closes_ms` stands on the step. */
export function listClosing(tx: Tx, { run_id, step, tool, closes_ms }: StepDoc, succeeded_ms: number): void {
  if (closes_ms === undefined) return;
  tx.put("closings", stepKey(run_id, step), { run_id, step, tool, closes_ms, succeeded_ms });
}

/** The step is undone: nothing of it closes any more. */
export function unlistClosing(tx: Tx, { run_id, step, closes_ms }: StepDoc): void {
  if (closes_ms !== undefined) tx.delete("closings", stepKey(run_id, step));
}

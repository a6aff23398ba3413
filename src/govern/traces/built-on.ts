/**
 * Notes which calls were built on which, in all runs of a tenant: a call carried a value of another, read from a store
 * that it wrote to, or acted on a resource that it changed. A rollback finds what depends on its steps from here.
 */
import { keyedHash } from "../../kernel/hash.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import type { ManifestSet, ToolManifest } from "../../rules/manifest/types.ts";
import type { EngineCore } from "../core.ts";
import { beforeRead } from "../decide/before-state.ts";
import { stepKey } from "../document-keys.ts";
import type { FeedReason, ResourceCallDoc } from "../port/docs.ts";
import type { StoreTx } from "../port/store.ts";
import type { RunDoc, StepDoc } from "../runs/run.ts";
import { tenantKeys } from "./tenant-trace.ts";

type Core = Pick<EngineCore, "rules" | "storeKey">;
type StepPlace = Pick<StepDoc, "run_id" | "step">;

/** Maximum resources of one call that are listed. */
const MAX_RESOURCES = 1_000;

const feedKey = (from: StepPlace, to: StepPlace): string =>
  `${stepKey(from.run_id, from.step)}/${stepKey(to.run_id, to.step)}`;

/** Keys of the notes that name the step as a later call. */
export const feedKeysOf = ({ run_id, step, fed_by = [] }: StepDoc): string[] =>
  fed_by.map((from) => feedKey(from, { run_id, step }));

/** Notes an accepted call with the calls whose values it carried. */
export function noteFeeds(tx: StoreTx, { run_id, step, fed_by = [] }: StepDoc): void {
  const sources = new Map<string, { from: StepPlace; via: FeedReason[] }>();
  for (const { path, kind, ...from } of fed_by) {
    const known = sources.get(feedKey(from, from)) ?? { from, via: [] };
    known.via.push({ kind, path });
    sources.set(feedKey(from, from), known);
  }
  for (const { from, via } of sources.values()) noteFeed(tx, from, { run_id, step }, via);
}

function noteFeed(tx: StoreTx, from: StepPlace, to: StepPlace, via: FeedReason[]): void {
  tx.put("value_feeds", feedKey(from, to), { run_id: from.run_id, step: from.step, to, via });
}

/** Notes a read from a store with the calls that wrote foreign values there. */
export function noteStoreFeeds(tx: StoreTx, to: StepPlace, writes: readonly StepPlace[]): void {
  for (const from of writes) noteFeed(tx, from, { run_id: to.run_id, step: to.step }, [{ kind: "stored" }]);
}

/** Lists a call with the resource that it changed, or that it read if its values are followed. */
export function noteResourceCall(
  core: Core,
  tx: StoreTx,
  { tenant }: Pick<RunDoc, "tenant">,
  { step, manifest, args }: { step: StepDoc; manifest: ToolManifest; args: JsonValue },
): void {
  const read = manifest.before === undefined ? null : beforeRead(manifest.before, args);
  const isRead = read === null && isFollowedRead(core, manifest);
  if ((read === null && !isRead) || step.succeeded_seq === null) return;
  const call = read ?? { tool: step.tool, arguments: args };
  const { salt } = tenantKeys(core, tenant);
  // A read with a list of arguments is one read for each.
  const all = Array.isArray(call.arguments) ? call.arguments : [call.arguments];
  const items = all.slice(0, MAX_RESOURCES);
  for (const [i, one] of items.entries())
    tx.put("resource_calls", resourceCallKey(step, i), {
      run_id: step.run_id,
      step: step.step,
      thing: keyedHash(salt, [call.tool, one]),
      succeeded_seq: step.succeeded_seq,
      ...(isRead ? { read: true as const } : {}),
      ...(i === 0 && items.length > 1 ? { items: items.length } : {}),
    });
}

const resourceCallKey = ({ run_id, step }: StepPlace, item: number): string =>
  item === 0 ? stepKey(run_id, step) : `${stepKey(run_id, step)}/${item}`;

/** Keys of the documents that list the step, from the first of them. */
export function resourceCallKeys({ run_id, step, items = 1 }: ResourceCallDoc): string[] {
  return Array.from({ length: items }, (_, item) => resourceCallKey({ run_id, step }, item));
}

export function forgetResourceCall(tx: StoreTx, { run_id, step }: StepPlace): void {
  const first = tx.get("resource_calls", stepKey(run_id, step));
  if (first !== undefined) for (const key of resourceCallKeys(first)) tx.delete("resource_calls", key);
}

const read_before_calls = new WeakMap<ManifestSet, ReadonlySet<string>>();

/** Whether the call is a read whose result is followed and that other calls use to read the state before them. */
function isFollowedRead(core: Core, { tool, effect, risk }: ToolManifest): boolean {
  const { manifests, policy } = core.rules();
  if (policy.carries === null || effect !== "read") return false;
  if (risk["source"] === undefined && risk["store"] === undefined) return false;
  let tools = read_before_calls.get(manifests);
  if (tools === undefined) {
    tools = new Set(manifests.all.flatMap(({ before }) => before?.tool ?? []));
    read_before_calls.set(manifests, tools);
  }
  return tools.has(tool);
}

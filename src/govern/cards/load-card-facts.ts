/** Collects the facts for a request's card, under the active rules. */
import type { PausableWork } from "../../kernel/pausable-work.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import type { ApprovalDoc } from "../approvals/approval.ts";
import type { ActiveRules } from "../core.ts";
import type { RunDoc } from "../runs/run.ts";
import type { CardFacts } from "./card-facts.ts";
import type { ApprovalValues } from "./types.ts";
import { computingVisibleArgs, computingVisibleBefore } from "./visible-values.ts";

/** Fields of the run that a card needs. */
export type CardRun = Pick<RunDoc, "reason" | "salt" | "environment">;

export function* gatheringCardFacts(
  { manifests, policy }: ActiveRules,
  run: CardRun,
  { internal, ...call }: ApprovalDoc,
  values: ApprovalValues | undefined,
): PausableWork<CardFacts> {
  const manifest = manifests.active(call.tool) ?? null;
  const { because, undo } = internal;
  // For an undo, the manifest of the original call declares the `before` read.
  const read_for = undo === undefined ? manifest : (manifests.active(undo.of) ?? null);
  return {
    call: { ...call, because, undo },
    run,
    manifest,
    read_for,
    policy,
    values: yield* shownNow({ manifests, policy }, manifest, read_for, values),
  };
}

/** Values stored when the request was opened, masked by the current manifests. */
function* shownNow(
  { manifests, policy }: ActiveRules,
  manifest: ToolManifest | null,
  read_for: ToolManifest | null,
  values: ApprovalValues | undefined,
): PausableWork<ApprovalValues | undefined> {
  if (values === undefined || policy.approvals.show === "names") return undefined;
  const reader = read_for?.before === undefined ? null : (manifests.active(read_for.before.tool) ?? null);
  const { before, restored } = values;
  return {
    ...values,
    args: yield* computingVisibleArgs(values.args, manifest),
    ...(before === undefined ? {} : { before: yield* computingVisibleBefore(before, read_for, reader) }),
    ...(restored === undefined
      ? {}
      : { restored: yield* computingVisibleBefore(restored, read_for, reader) }),
  };
}

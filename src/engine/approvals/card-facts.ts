/** What the card of a request is made from, by the rules in force now. */
import type { Paced } from "../../kernel/turns.ts";
import type { ApprovalDoc } from "../../model/approval.ts";
import type { CardFacts } from "../../model/card/facts.ts";
import { keepingArgs, keepingBefore } from "../../model/card/kept.ts";
import type { ApprovalValues } from "../../model/card/types.ts";
import type { Manifest } from "../../model/manifest/types.ts";
import type { RunDoc } from "../../model/run.ts";
import type { Rules } from "../core.ts";

/** What a card needs to know of its run. */
export type CardRun = Pick<RunDoc, "reason" | "salt" | "environment">;

export function* gatheringCardFacts(
  { manifests, policy }: Rules,
  run: CardRun,
  { internal, ...call }: ApprovalDoc,
  values: ApprovalValues | undefined,
): Paced<CardFacts> {
  const manifest = manifests.active(call.tool) ?? null;
  const { because, undo } = internal;
  // What an undo meets was read for the call that it takes back.
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

/** What was kept when the request was opened, masked by what is to be masked today. */
function* shownNow(
  { manifests, policy }: Rules,
  manifest: Manifest | null,
  read_for: Manifest | null,
  values: ApprovalValues | undefined,
): Paced<ApprovalValues | undefined> {
  if (values === undefined || policy.approvals.show === "names") return undefined;
  const reader = read_for?.before === undefined ? null : (manifests.active(read_for.before.tool) ?? null);
  const { before, restored } = values;
  return {
    ...values,
    args: yield* keepingArgs(values.args, manifest),
    ...(before === undefined ? {} : { before: yield* keepingBefore(before, read_for, reader) }),
    ...(restored === undefined ? {} : { restored: yield* keepingBefore(restored, read_for, reader) }),
  };
}

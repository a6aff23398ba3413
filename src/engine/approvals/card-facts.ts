/** What the card of a request is made from, by the rules in force now. */
import type { ApprovalDoc } from "../../model/approval.ts";
import type { CardFacts } from "../../model/card/facts.ts";
import { keptArgs, keptBefore } from "../../model/card/kept.ts";
import type { ApprovalValues } from "../../model/card/types.ts";
import type { Manifest } from "../../model/manifest/types.ts";
import type { RunDoc } from "../../model/run.ts";
import type { Rules } from "../core.ts";

export function cardFacts(
  { manifests, policy }: Rules,
  run: Pick<RunDoc, "reason" | "salt" | "environment">,
  { internal, ...call }: ApprovalDoc,
  values: ApprovalValues | undefined,
): CardFacts {
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
    values: shownNow({ manifests, policy }, manifest, read_for, values),
  };
}

/** What was kept when the request was opened, masked by what is to be masked today. */
function shownNow(
  { manifests, policy }: Rules,
  manifest: Manifest | null,
  read_for: Manifest | null,
  values: ApprovalValues | undefined,
): ApprovalValues | undefined {
  if (values === undefined || policy.approvals.show === "names") return undefined;
  const reader = read_for?.before === undefined ? null : (manifests.active(read_for.before.tool) ?? null);
  const { before, restored } = values;
  return {
    ...values,
    args: keptArgs(values.args, manifest),
    ...(before === undefined ? {} : { before: keptBefore(before, read_for, reader) }),
    ...(restored === undefined ? {} : { restored: keptBefore(restored, read_for, reader) }),
  };
}

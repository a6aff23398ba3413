/** What the card of a request is made from, by the rules in force now. */
import type { ApprovalDoc } from "../../model/approval.ts";
import type { CardFacts } from "../../model/card/card.ts";
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
  return {
    call: { ...call, because: internal.because },
    run,
    manifest,
    policy,
    values: shownNow({ manifests, policy }, manifest, values),
  };
}

/** What was kept when the request was opened, masked by what is to be masked today. */
function shownNow(
  { manifests, policy }: Rules,
  manifest: Manifest | null,
  values: ApprovalValues | undefined,
): ApprovalValues | undefined {
  if (values === undefined || policy.approvals.show === "names") return undefined;
  const { before, ...rest } = values;
  const shown = { ...rest, args: keptArgs(values.args, manifest) };
  if (before === undefined) return shown;
  const reader = manifest?.before === undefined ? null : (manifests.active(manifest.before.tool) ?? null);
  return { ...shown, before: keptBefore(before, manifest, reader) };
}

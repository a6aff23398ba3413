/** What the card of a request is made from, by the rules in force now. */
import type { ApprovalDoc } from "../../model/approval.ts";
import type { CardFacts } from "../../model/card/card.ts";
import type { ApprovalValues } from "../../model/card/types.ts";
import type { RunDoc } from "../../model/run.ts";
import type { Rules } from "../core.ts";

export function cardFacts(
  { manifests, policy }: Rules,
  run: Pick<RunDoc, "reason" | "salt" | "environment">,
  { internal, ...call }: ApprovalDoc,
  values: ApprovalValues | undefined,
): CardFacts {
  return {
    call: { ...call, because: internal.because },
    run,
    manifest: manifests.active(call.tool) ?? null,
    policy,
    values,
  };
}

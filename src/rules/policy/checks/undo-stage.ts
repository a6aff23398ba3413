/** Undo stage: calls whose undo lacks the recent drill that the policy requires. */
import { unprovenReason } from "../../undo-proof.ts";
import type { PolicyCall } from "../call.ts";
import type { CompiledPolicy } from "../compile.ts";
import type { PolicyFinding } from "../finding.ts";

export function checkUndo(
  { undo }: CompiledPolicy,
  { tool, proof }: PolicyCall,
  now_ms: number,
): PolicyFinding[] {
  if (undo === null || proof === undefined) return [];
  const why = unprovenReason(proof, now_ms, undo.max_age_ms);
  if (why === null) return [];
  return [
    {
      stage: "undo",
      action: undo.unproven,
      reason: `the undo of ${tool} does not count: ${why}`,
      rule: null,
    },
  ];
}

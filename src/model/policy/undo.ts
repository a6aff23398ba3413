/** Calls whose undo has no fresh proof, as far as the policy asks for one. */
import { unprovenBecause } from "../proof.ts";
import type { PolicyCall } from "./call.ts";
import type { Policy } from "./compile.ts";
import type { Finding } from "./finding.ts";

export function checkUndo({ undo }: Policy, { tool, proof }: PolicyCall, now_ms: number): Finding[] {
  if (undo === null || proof === undefined) return [];
  const why = unprovenBecause(proof, now_ms, undo.max_age_ms);
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

/** Input of a policy decision. It contains all data that a policy reads; evaluation fetches nothing. */
import type { JsonValue } from "../../kernel/json/json.ts";
import type { UndoProof } from "../undo-proof.ts";

export interface PolicyCall {
  tool: string;
  args: JsonValue;
  actor: string;
  tenant: string | null;
  environment: string | null;
  /** From the tool's manifest; null if it is missing or does not declare this. */
  effect: string | null;
  data_class: string | null;
  blast_radius: string | null;
  /** Labels of the data's origin, from the manifest; `sink` has those of its destination. */
  source: readonly string[];
  sink: readonly string[];
  /** Drill result of the undo; absent if the policy does not need it or the tool has no undo. */
  proof?: UndoProof | undefined;
  run_id: string;
  /** Number of the step if the call is accepted. */
  step: number;
}

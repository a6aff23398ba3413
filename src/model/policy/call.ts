/** The call that a policy judges: everything it may look at, and nothing it would have to fetch. */
import type { Json } from "../../kernel/json.ts";
import type { Proof } from "../proof.ts";

export interface PolicyCall {
  tool: string;
  args: Json;
  actor: string;
  tenant: string | null;
  environment: string | null;
  /** From the tool's manifest; null where there is none or it does not say. */
  effect: string | null;
  data_class: string | null;
  blast_radius: string | null;
  /** Where its data comes from and where it goes, as the manifest labels it. */
  source: readonly string[];
  sink: readonly string[];
  /** Whether its undo was proven; absent where no policy asks, or there is none. */
  proof?: Proof | undefined;
  run_id: string;
  /** The number that the step will have if the call is accepted. */
  step: number;
}

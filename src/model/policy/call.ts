/** The call that a policy judges: everything it may look at, and nothing it would have to fetch. */
import type { Json } from "../../kernel/json.ts";

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
  run_id: string;
}

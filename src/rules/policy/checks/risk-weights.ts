/** Risk points of a policy: the built-in weights with the changes of the policy. */
import type { RiskDoc } from "../schema.ts";
import { DEFAULT_WEIGHTS, type RiskFactor } from "./default-weights.ts";

export interface CompiledRisk {
  weights: Record<RiskFactor, Map<string, number>>;
  require_approval_at: number | null;
  deny_at: number | null;
}

export function compileRisk(doc: RiskDoc): CompiledRisk {
  const table = (factor: RiskFactor) => {
    const own = doc.weights?.[factor] ?? {};
    return new Map(Object.entries({ ...DEFAULT_WEIGHTS[factor], ...own }) as [string, number][]);
  };
  return {
    weights: {
      effect: table("effect"),
      blast_radius: table("blast_radius"),
      data_class: table("data_class"),
      environment: table("environment"),
    },
    require_approval_at: doc.require_approval_at ?? null,
    deny_at: doc.deny_at ?? null,
  };
}

/** How many points of risk each label of a call carries: the built-in weights and a policy's own. */
import type { RiskDoc } from "./schema.ts";

export const RISK_FACTORS = ["effect", "blast_radius", "data_class", "environment"] as const;
export type RiskFactor = (typeof RISK_FACTORS)[number];

/**
 * Points a label adds. `unset` is for a call that has no such label, `*` for a label not listed. What is
 * not known weighs as much as something middling: an unclassified tool should not look harmless.
 */
export const DEFAULT_WEIGHTS: Record<RiskFactor, Record<string, number>> = {
  effect: { read: 0, idempotent: 10, reversible: 15, compensable: 25, irreversible: 50, unset: 50, "*": 50 },
  blast_radius: { none: 0, single: 5, team: 10, org: 20, external: 25, unset: 5, "*": 10 },
  data_class: {
    public: 0,
    internal: 5,
    confidential: 15,
    pii: 20,
    financial: 20,
    health: 20,
    secret: 25,
    unset: 0,
    "*": 10,
  },
  environment: { dev: 0, development: 0, test: 0, staging: 5, prod: 15, production: 15, unset: 5, "*": 5 },
};

export interface Risk {
  weights: Record<RiskFactor, Map<string, number>>;
  require_approval_at: number | null;
  deny_at: number | null;
}

export function compileRisk(doc: RiskDoc): Risk {
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

/** Built-in risk points of the labels of a call. */

export const RISK_FACTORS = ["effect", "blast_radius", "data_class", "environment"] as const;
export type RiskFactor = (typeof RISK_FACTORS)[number];

/**
 * Points per label. `unset` applies to a call without such a label, `*` to an unlisted label. Unknown labels get medium
 * weight, so that an unclassified tool does not look harmless.
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

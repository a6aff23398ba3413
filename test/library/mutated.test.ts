/** Mutated assertions against the verifier that comes before a call. */
import { expect, it } from "vitest";
import {
  MUTATION_SEED,
  MUTATION_SHARES,
  MUTATION_TIME_MS,
  MUTATIONS,
  playMutations,
  seededRandom,
} from "../support/mutations.ts";
import type { SoftAlgorithm } from "../support/passkeys.ts";
import { verifies } from "../support/verifies.ts";

it.each(["ES256", "EdDSA", "RS256"] as SoftAlgorithm[])(
  "accepts none of %s, and crashes on none",
  async (alg) => {
    verifies("beyond.approvers.mutated");
    const accepted = await playMutations(alg, MUTATIONS * MUTATION_SHARES[alg], seededRandom(MUTATION_SEED));
    expect(accepted).toEqual([]);
  },
  MUTATION_TIME_MS,
);

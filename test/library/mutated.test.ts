/** Mutated assertions against the verifier that stands before a call. */
import { expect, it } from "vitest";
import { judgeSignedCall } from "../../src/auth/approvers.ts";
import { keyedHash } from "../../src/kernel/hash.ts";
import { MUTATION_SEED, MUTATION_TIME_MS, MUTATIONS, mutated, seededRandom } from "../support/mutations.ts";
import { type SoftAlgorithm, SoftPasskey } from "../support/passkeys.ts";
import { verifies } from "../support/verifies.ts";

const AT = "https://svc.example.com";
/** Most passkeys sign with ES256, and the others take longer to sign. */
const SHARES = { ES256: 0.8, EdDSA: 0.15, RS256: 0.05 } as const;

it.each(["ES256", "EdDSA", "RS256"] as SoftAlgorithm[])(
  "accepts none of %s, and crashes on none",
  async (alg) => {
    verifies("beyond.approvers.mutated");
    const soft = new SoftPasskey(AT, { alg });
    const other = new SoftPasskey(AT, { alg });
    const doc = {
      version: 1 as const,
      ledger: "example.com/ledger",
      rp_id: "svc.example.com",
      origins: [AT],
      approvers: [{ name: "ann", groups: [], keys: [soft.entry()] }],
      require: [{ tool: "pay", groups: [], quorum: 1 }],
    };
    const call = { run_id: "r", tool: "pay", args: { amount: 1 } };
    const payload = {
      v: 1,
      ledger: doc.ledger,
      kind: "approval",
      id: "apr_1",
      decision: "approve",
      by: "ann",
      run_id: "r",
      tool: "pay",
      args_hash: keyedHash("salt", call.args),
      policy_hash: "sha256:0",
      expires_ms: 1_000_000,
      nonce: "n",
    };
    const judge = (signature: object) =>
      judgeSignedCall(doc, call, { salt: "salt", signatures: [signature] }, 500_000);
    expect(await judge(soft.sign({ payload }))).toMatchObject({ use: { id: "apr_1" } });
    const random = seededRandom(MUTATION_SEED);
    for (let i = 0; i < MUTATIONS * SHARES[alg]; i++) {
      const signature = mutated(soft, other, payload, random);
      expect(await judge(signature), JSON.stringify(signature)).toHaveProperty("problem");
    }
  },
  MUTATION_TIME_MS,
);

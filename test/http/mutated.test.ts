/** Mutated assertions and registrations against a whole server: none is accepted, and the server continues to answer. */
import { beforeAll, expect, it } from "vitest";
import { verifyAssertion } from "../../src/auth/webauthn.ts";
import {
  brokenCbor,
  MUTATION_SEED,
  MUTATION_TIME_MS,
  MUTATIONS,
  mutated,
  seededRandom,
} from "../support/mutations.ts";
import { SoftPasskey } from "../support/passkeys.ts";
import { SIGN_AT, type SigningServer, signingServer } from "../support/signing.ts";
import { verifies } from "../support/verifies.ts";

/** A request takes a hundred times as long as a verification. */
const REQUESTS = Math.min(20_000, Math.ceil(MUTATIONS / 6));
const ofApproval = (id: string) => ({ kind: "approval", id, decision: "approve" });

let s: SigningServer;
beforeAll(async () => {
  s = await signingServer();
  await s.enrol("ann");
  await s.enrol("bob");
});

it(
  "accepts no mutated assertion",
  async () => {
    verifies("beyond.signed.mutated");
    const [ann, bob] = [s.people["ann"]!, s.people["bob"]!];
    const random = seededRandom(MUTATION_SEED);
    const approve = (key: string, id: string, signature: object) =>
      s.call(key, "POST", `/v1/approvals/${id}/approve`, { signature });
    // An approval that is used and makes the counter grow.
    const first = await s.ask();
    const used = await s.signed("ann", ofApproval(first.id));
    expect((await approve("ann", first.id, used)).body.status).toBe("approved");
    const grown = ann.counter;
    const { id } = await s.ask();
    const asked = (await s.challenge("ann", ofApproval(id))).body;
    const ways: (() => [string, object])[] = [
      () => ["ann", mutated(ann, bob, asked.payload, random)],
      () => ["ann", ann.sign(asked, { counter: random(grown + 1) })],
      () => ["ann", used],
      () => ["bob", ann.sign(asked)],
      () => ["bob", bob.sign(asked)],
    ];
    for (let i = 0; i < REQUESTS; i++) {
      const [key, signature] = ways[random(3) > 0 ? 0 : random(ways.length)]!();
      const { status, text } = await approve(key, id, signature);
      expect([400, 403, 409], `${text} for ${JSON.stringify(signature)}`).toContain(status);
    }
    expect((await s.call("ann", "GET", `/v1/approvals/${id}`)).body).toMatchObject({
      ...{ status: "pending", votes: [] },
    });
    expect((await approve("ann", id, ann.sign(asked))).body.status).toBe("approved");
  },
  MUTATION_TIME_MS,
);

it(
  "accepts no registration whose CBOR is cut or broken, and fails at none",
  async () => {
    const random = seededRandom(MUTATION_SEED);
    const soft = new SoftPasskey(SIGN_AT);
    const options = (await s.call("admin", "POST", "/v1/passkeys/options", {})).body;
    for (let i = 0; i < REQUESTS; i++) {
      const response = soft.create(options, random(2) === 0 ? {} : { origin: `https://x${i}.example` });
      const good = Buffer.from(response.response.attestationObject, "base64url");
      const broken = [
        () => good.subarray(0, random(good.length)),
        () => Buffer.from(brokenCbor(random)),
        () => Buffer.concat([good.subarray(0, random(good.length)), brokenCbor(random)]),
      ][random(3)]!();
      const attestationObject = broken.toString("base64url");
      const changed = { ...response, response: { ...response.response, attestationObject } };
      const { status, text } = await s.call("admin", "POST", "/v1/passkeys", { response: changed });
      expect([400, 403, 409], text).toContain(status);
    }
    expect((await s.call("admin", "POST", "/v1/passkeys", { response: soft.create(options) })).status).toBe(
      201,
    );
  },
  MUTATION_TIME_MS,
);

it(
  "takes no counter that does not grow, unless both are 0",
  async () => {
    const random = seededRandom(MUTATION_SEED);
    const soft = new SoftPasskey(SIGN_AT);
    const payload = { v: 1, kind: "approval", decision: "approve", by: "ann", nonce: "n" } as const;
    const place = { rp_id: soft.rp_id, origins: [SIGN_AT] };
    const judge = async (counter: number, now: number) => {
      const { assertion } = soft.sign({ payload }, { counter: now });
      return verifyAssertion(payload, assertion, { place, key: soft.entry(), counter });
    };
    for (let i = 0; i < MUTATIONS / 50; i++) {
      const counter = 1 + random(2 ** 31);
      expect(await judge(counter, random(counter + 1))).toHaveProperty("problem");
      expect(await judge(counter, counter + 1)).toEqual({ counter: counter + 1 });
    }
    expect(await judge(0, 0)).toEqual({ counter: 0 });
  },
  MUTATION_TIME_MS,
);

/** Mutated assertions: each is a true signature with one lie in it. */
import { judgeSignedCall } from "../../src/auth/approvers.ts";
import { keyedHash } from "../../src/kernel/hash.ts";
import { type SoftAlgorithm, SoftPasskey } from "./passkeys.ts";

type Signed = ReturnType<SoftPasskey["sign"]>;
type Random = (below: number) => number;

const AT = "https://svc.example.com";
/** Most passkeys sign with ES256, and the others take longer to sign. */
export const MUTATION_SHARES = { ES256: 0.8, EdDSA: 0.15, RS256: 0.05 } as const;

/** How many mutations a test plays; `npm run prove -- assertions` plays a million. */
export const MUTATIONS = Number(process.env["SVC_MUTATIONS"] ?? 900);
export const MUTATION_SEED = Number(process.env["SVC_MUTATIONS_SEED"] ?? 38);
/** Time limit of a test, by its mutations. */
export const MUTATION_TIME_MS = 60_000 + 20 * MUTATIONS;

/** A small generator, so that a failure can be repeated. */
export function seededRandom(seed: number): Random {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Keys of every algorithm, for signatures that claim another one. */
const OTHERS = (["ES256", "EdDSA", "RS256"] as SoftAlgorithm[]).map((alg) => new SoftPasskey(AT, { alg }));

/** CBOR that ends early, claims more than there is, or nests without end. */
export function brokenCbor(random: Random): Uint8Array {
  const ways = [
    () => Buffer.from([0xa1]),
    () => Buffer.from([0xa1, 0x63, 0x61]),
    () => Buffer.from([0xbb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
    () => Buffer.from([0x5a, 0x7f, 0xff, 0xff, 0xff, random(256)]),
    () => Buffer.from([0x9f, 0x01]),
    () => Buffer.alloc(1 + random(5_000), 0x81),
    () => Buffer.alloc(0),
    () => Buffer.from(Array.from({ length: 1 + random(40) }, () => 0xf8 + random(8))),
  ];
  return ways[random(ways.length)]!();
}

const flip = (text: string, random: Random): string => {
  const bytes = Buffer.from(text, "base64url");
  const at = random(bytes.length);
  bytes[at] = bytes[at]! ^ (1 << random(8));
  return bytes.toString("base64url");
};
const cut = (text: string, random: Random): string =>
  Buffer.from(text, "base64url")
    .subarray(0, random(Buffer.from(text, "base64url").length))
    .toString("base64url");

const PARTS = ["clientDataJSON", "authenticatorData", "signature"] as const;
const FIELDS = [
  "ledger",
  "id",
  "by",
  "run_id",
  "tool",
  "args_hash",
  "policy_hash",
  "nonce",
  "decision",
] as const;

/** Another counter than the signed one. */
function withCounter(good: Signed, random: Random): object {
  const { assertion } = good;
  const data = Buffer.from(assertion.response.authenticatorData, "base64url");
  data.writeUInt32BE((data.readUInt32BE(33) + 1 + random(2 ** 31)) >>> 0, 33);
  const response = { ...assertion.response, authenticatorData: data.toString("base64url") };
  return { ...good, assertion: { ...assertion, response } };
}

/** Returns a signature that no verifier may accept. */
export function mutated(soft: SoftPasskey, other: SoftPasskey, payload: object, random: Random): object {
  const part = PARTS[random(3)]!;
  const withPart = (change: (text: string, random: Random) => string): object => {
    const { assertion } = soft.sign({ payload });
    const response = { ...assertion.response, [part]: change(assertion.response[part], random) };
    return { payload, assertion: { ...assertion, response } };
  };
  const field = FIELDS[random(FIELDS.length)]!;
  const ways: (() => Signed | object)[] = [
    () => withPart(flip),
    () => withPart(cut),
    () => ({ ...soft.sign({ payload }), payload: { ...payload, [field]: `x${random(1_000_000)}` } }),
    () => soft.sign({ payload }, { origin: `https://svc${random(1_000)}.example.com` }),
    () => soft.sign({ payload }, { rp_id: `example${random(1_000)}.com` }),
    () => soft.sign({ payload }, { challenge: Buffer.from(String(random(1e9))).toString("base64url") }),
    () => soft.sign({ payload }, { flags: [0x00, 0x01, 0x04, 0x40][random(4)]! }),
    () => soft.sign({ payload }, { type: "webauthn.create" }),
    () => soft.sign({ payload }, { id: other.id }),
    () => soft.sign({ payload }, { key: other.keys.privateKey }),
    () => soft.sign({ payload }, { key: OTHERS[random(OTHERS.length)]!.keys.privateKey }),
    () => soft.sign({ payload }, { flags: 0x85, extension: brokenCbor(random) }),
    () => soft.sign({ payload }, { flags: 0x45, extension: brokenCbor(random) }),
    () => soft.sign({ payload }, { extension: Buffer.alloc(1 + random(9), random(256)) }),
    () => withCounter(soft.sign({ payload }), random),
    () => other.sign({ payload }),
  ];
  return ways[random(ways.length)]!();
}

/** Plays mutations against the verifier that comes before a call. Returns those that it accepted. */
export async function playMutations(alg: SoftAlgorithm, count: number, random: Random): Promise<object[]> {
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
  const isAccepted = async (signature: object) =>
    "use" in (await judgeSignedCall(doc, call, { salt: "salt", signatures: [signature] }, 500_000));
  if (!(await isAccepted(soft.sign({ payload })))) throw new Error(`a true signature of ${alg} is refused`);
  const accepted: object[] = [];
  for (let i = 0; i < count; i++) {
    const signature = mutated(soft, other, payload, random);
    if (await isAccepted(signature)) accepted.push(signature);
  }
  return accepted;
}

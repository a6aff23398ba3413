/** Mutated assertions: each is a true signature with one lie in it. */
import type { SoftPasskey } from "./passkeys.ts";

type Signed = ReturnType<SoftPasskey["sign"]>;
type Random = (below: number) => number;

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

/** Returns a signature that no verifier may accept. */
export function mutated(soft: SoftPasskey, other: SoftPasskey, payload: object, random: Random): object {
  const part = PARTS[random(3)]!;
  const good = soft.sign({ payload });
  const withPart = (change: (text: string, random: Random) => string): object => {
    const response = { ...good.assertion.response, [part]: change(good.assertion.response[part], random) };
    return { ...good, assertion: { ...good.assertion, response } };
  };
  const field = FIELDS[random(FIELDS.length)]!;
  const ways: (() => Signed | object)[] = [
    () => withPart(flip),
    () => withPart(cut),
    () => ({ ...good, payload: { ...payload, [field]: `x${random(1_000_000)}` } }),
    () => soft.sign({ payload }, { origin: `https://svc${random(1_000)}.example.com` }),
    () => soft.sign({ payload }, { rp_id: `example${random(1_000)}.com` }),
    () => soft.sign({ payload }, { challenge: Buffer.from(String(random(1e9))).toString("base64url") }),
    () => soft.sign({ payload }, { flags: [0x00, 0x01, 0x04, 0x40][random(4)]! }),
    () => soft.sign({ payload }, { type: "webauthn.create" }),
    () => soft.sign({ payload }, { id: other.id }),
    () => soft.sign({ payload }, { key: other.keys.privateKey }),
    () => other.sign({ payload }),
  ];
  return ways[random(ways.length)]!();
}

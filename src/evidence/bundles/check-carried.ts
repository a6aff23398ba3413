/**
 * Checks the signatures of approvals in a bundle: each record that names one has it, it signs what the record says, and
 * the assertion holds. Without an approvers file, the keys are the bundle's own, and nothing else vouches for them.
 */
import * as z from "zod";
import type { ApproversDoc } from "../../auth/approvers.ts";
import { verifyAssertion } from "../../auth/webauthn.ts";
import { isExpired } from "../../govern/expiry.ts";
import {
  assertionHash,
  assertionSchema,
  PASSKEY_ALGORITHMS,
  type PasskeyPublicKey,
  passkeyCode,
  type SignedKind,
  signedPayloadSchema,
} from "../../govern/signing/payload.ts";
import { valueHash } from "../../kernel/hash.ts";
import { toCanonicalJson } from "../../kernel/json/canonical.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { assertionNamedBy, type CarriedSignature } from "./carried-signatures.ts";

export interface SignerReport {
  /** The person, as the signed payload names them. */
  by: string;
  kind: SignedKind;
  decision: string;
  id: string | null;
  run_id: string | null;
  tool: string | null;
  /** The first characters of the hash of the public key. */
  code: string;
  /** Sequence numbers of the records that name the signature. */
  records: number[];
  /** Why the approvers file does not vouch for the signer; null if it does. */
  doubt: string | null;
}

export interface SignatureReport {
  signers: SignerReport[];
  /** Whether an approvers file was given. */
  known: boolean;
  /** Records whose signature retention deleted with the run. */
  deleted: number;
}

const carriedSchema = z.strictObject({
  payload: signedPayloadSchema,
  assertion: assertionSchema.strict().extend({ response: assertionSchema.shape.response.strict() }),
  public_key: z.string().max(4_096),
  alg: z.enum(PASSKEY_ALGORITHMS),
  subject: z.unknown().optional(),
});

/** Clocks of servers may differ by this much. */
const CLOCK_TOLERANCE_MS = 60_000;

/** Parts of the file in which a record can name a signature. A mark can be spelled with escapes. */
const mayName = (bytes: Buffer): boolean => bytes.includes("; signed ") || bytes.includes("\\u");
const mayPurge = (bytes: Buffer): boolean => bytes.includes("purged") || bytes.includes("\\u");

interface RecordFields {
  seq: number;
  event: string;
  actor?: string;
  ts_ms: number;
  run_id?: string;
  tool?: string;
  args_hash?: string;
  detail?: string;
}

type Texts = (wanted: (bytes: Buffer) => boolean) => Iterable<string>;

/** The report, or the problem. */
export async function checkCarriedSignatures(
  carried: readonly JsonValue[],
  texts: Texts,
  approvers: ApproversDoc | null,
): Promise<SignatureReport | string> {
  const read = readCarried(carried);
  if (typeof read === "string") return read;
  const missing: RecordFields[] = [];
  const naming = new Map<string, RecordFields[]>();
  for (const text of texts(mayName)) {
    const record = JSON.parse(text) as RecordFields;
    const hash = assertionNamedBy(record);
    if (hash === null) continue;
    const one = read.get(hash);
    if (one === undefined) {
      missing.push(record);
      continue;
    }
    const before = naming.get(hash) ?? [];
    const problem = bindingProblem(one, record, before);
    if (problem !== null) return `record ${record.seq}: its signature ${problem}`;
    naming.set(hash, [...before, record]);
  }
  const lost = missing.length === 0 ? undefined : lostRecord(missing, texts);
  if (lost !== undefined) return `record ${lost.seq}: it names a signature that the bundle does not hold`;
  const signers: SignerReport[] = [];
  for (const [hash, one] of read) {
    const records = naming.get(hash);
    if (records === undefined) return "it has a signature that no record names";
    const problem = await assertionProblem(one);
    if (problem !== null) return `record ${records[0]!.seq}: its signature does not hold: ${problem}`;
    signers.push(await signerOf(one, records, approvers));
  }
  return { signers, known: approvers !== null, deleted: missing.length };
}

function readCarried(carried: readonly JsonValue[]): Map<string, CarriedSignature> | string {
  const read = new Map<string, CarriedSignature>();
  for (const value of carried) {
    const parsed = carriedSchema.safeParse(value);
    if (!parsed.success)
      return "its signatures are not a list of {payload, assertion, public_key, alg, subject}";
    // The schema has just accepted it.
    const one = value as unknown as CarriedSignature;
    const hash = assertionHash(one.assertion);
    if (read.has(hash)) return "it has a signature twice";
    read.set(hash, one);
  }
  return read;
}

/** The first record without its signature whose run was not deleted afterwards. */
function lostRecord(missing: readonly RecordFields[], texts: Texts): RecordFields | undefined {
  const purged = new Map<string, number>();
  for (const text of texts(mayPurge)) {
    const { event, run_id, seq } = JSON.parse(text) as RecordFields;
    if (event === "purged" && run_id !== undefined) purged.set(run_id, seq);
  }
  return missing.find(({ run_id, seq }) => run_id === undefined || (purged.get(run_id) ?? -1) < seq);
}

const KINDS: Readonly<Record<string, readonly SignedKind[]>> = {
  approved: ["approval", "offer", "break_glass", "pre_approval", "compensation", "plan"],
  plan_approved: ["plan"],
  granted: ["grant"],
  delegated: ["delegation"],
};
const DECISIONS: Partial<Record<SignedKind, string>> = {
  offer: "offer",
  grant: "grant",
  delegation: "delegate",
};

/** Why the signature is not over what the record says; null if it is. */
function bindingProblem(
  carried: CarriedSignature,
  record: RecordFields,
  before: readonly RecordFields[],
): string | null {
  const { payload } = carried;
  const { kind, decision, by, run_id, expires_ms, id = "" } = payload;
  if (!KINDS[record.event]!.includes(kind)) return "is for another kind of decision";
  if (decision !== (DECISIONS[kind] ?? "approve")) return "does not approve";
  if (by !== record.actor) return "is another person's";
  if (run_id !== record.run_id) return "is for another run";
  if (expires_ms !== undefined && isExpired({ expires_ms }, record.ts_ms - CLOCK_TOLERANCE_MS))
    return "had expired";
  if (record.event === "approved" && kind === "plan") return plannedProblem(carried, record, before);
  if (before.some(({ event }) => event === record.event)) return "is used twice";
  if (record.event === "approved")
    return payload.tool === record.tool && payload.args_hash === record.args_hash
      ? null
      : "is for another tool or other arguments";
  const start = record.event === "plan_approved" ? `plan ${id}` : `${id}:`;
  return record.detail!.startsWith(start) ? null : "is for another subject";
}

const planSchema = z.looseObject({
  calls: z.array(z.looseObject({ tool: z.string(), args_hash: z.string() })),
});

/** A plan's signature covers as many calls of one kind as the plan has. */
function plannedProblem(
  { payload, subject }: CarriedSignature,
  { tool, args_hash }: RecordFields,
  before: readonly RecordFields[],
): string | null {
  const plan = planSchema.safeParse(subject);
  if (!plan.success || valueHash(subject as JsonValue) !== payload.subject_hash)
    return "comes without the plan that it signs";
  const isSame = (one: { tool?: string; args_hash?: string }) =>
    one.tool === tool && one.args_hash === args_hash;
  const planned = plan.data.calls.filter(isSame).length;
  const used = before.filter((one) => one.event === "approved" && isSame(one)).length;
  return used < planned ? null : "is for a plan without this call";
}

const ORIGIN = /^https?:\/\/([a-z0-9-]+(?:\.[a-z0-9-]+)*)(?::[0-9]{1,5})?$/;

const keyOf = ({ assertion, public_key, alg }: CarriedSignature): PasskeyPublicKey => ({
  id: assertion.id,
  public_key,
  alg,
});

async function assertionProblem(one: CarriedSignature): Promise<string | null> {
  const place = possiblePlace(one);
  if (place === null) return "its client data names no origin";
  const checked = await verifyAssertion(one.payload, one.assertion, { place, key: keyOf(one), counter: 0 });
  return "problem" in checked ? checked.problem : null;
}

/** The origin in the client data, and every relying party that it permits: its host, and the domains above. */
function possiblePlace({ assertion }: CarriedSignature): { rp_id: string[]; origins: string[] } | null {
  try {
    const client = JSON.parse(Buffer.from(assertion.response.clientDataJSON, "base64url").toString());
    const origin = String((client as { origin?: unknown }).origin);
    const host = ORIGIN.exec(origin)?.[1];
    if (host === undefined) return null;
    const labels = host.split(".");
    return { rp_id: labels.map((_, i) => labels.slice(i).join(".")), origins: [origin] };
  } catch {
    return null;
  }
}

async function signerOf(
  one: CarriedSignature,
  records: readonly RecordFields[],
  approvers: ApproversDoc | null,
): Promise<SignerReport> {
  const { kind, decision, by, id = null, run_id = null, tool = null } = one.payload;
  return {
    ...{ by, kind, decision, id, run_id, tool },
    code: passkeyCode(Buffer.from(one.public_key, "base64")),
    records: records.map(({ seq }) => seq),
    doubt: approvers === null ? null : await doubtOf(one, approvers),
  };
}

async function doubtOf(one: CarriedSignature, doc: ApproversDoc): Promise<string | null> {
  const { payload, assertion } = one;
  const approver = doc.approvers.find(({ keys }) => keys.some(({ id }) => id === assertion.id));
  const key = approver?.keys.find(({ id }) => id === assertion.id);
  if (approver === undefined || key === undefined) return "the passkey is nobody's in the approvers file";
  if (toCanonicalJson(publicPart(key)) !== toCanonicalJson(publicPart(one)))
    return "the passkey has another public key in the approvers file";
  if (approver.name !== payload.by) return `the passkey is ${approver.name}'s in the approvers file`;
  if (key.revoked) return "the passkey is revoked in the approvers file";
  if (payload.ledger !== doc.ledger) return "the signature is for another ledger than the approvers file";
  const checked = await verifyAssertion(payload, assertion, { place: doc, key, counter: 0 });
  return "problem" in checked ? `the approvers file does not permit it: ${checked.problem}` : null;
}

const publicPart = ({ public_key, alg }: Pick<PasskeyPublicKey, "public_key" | "alg">) => ({
  public_key,
  alg,
});

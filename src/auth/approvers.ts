/**
 * The approvers file: who may approve which tools, and their passkeys. A gateway or library that has one verifies the
 * signatures itself before it acts, and trusts no answer of a server. Nothing fetches the file from a server.
 */
import * as z from "zod";
import { isExpired } from "../govern/expiry.ts";
import type { GivenSignature, SignedKind } from "../govern/signing/payload.ts";
import { assertionSchema, PASSKEY_ALGORITHMS, signedPayloadSchema } from "../govern/signing/payload.ts";
import { messageOf, ProblemsError } from "../kernel/errors.ts";
import { keyedHash, valueHash } from "../kernel/hash.ts";
import { type JsonValue, parseJson } from "../kernel/json/json.ts";
import { compileGlob, globMatches } from "../kernel/text/glob.ts";
import { verifyAssertion } from "./webauthn.ts";

const names = z.array(z.string().min(1).max(256)).max(1_000);
const glob = z
  .string()
  .min(1)
  .refine((source) => isGlobValid(source), "is not a valid glob");

function isGlobValid(source: string): boolean {
  try {
    compileGlob(source);
    return true;
  } catch {
    return false;
  }
}

const approverKey = z.strictObject({
  id: z.string().regex(/^[A-Za-z0-9_-]+$/, "must be a credential id, base64url"),
  public_key: z.string().regex(/^[A-Za-z0-9+/]+={0,2}$/, "must be a public key, base64"),
  alg: z.enum(PASSKEY_ALGORITHMS),
  revoked: z.boolean(),
});

const approversSchema = z.strictObject({
  version: z.literal(1),
  ledger: z.string().min(1),
  rp_id: z.string().min(1),
  origins: z.array(z.string().min(1)).min(1).max(100),
  approvers: z.array(
    z.strictObject({ name: z.string().min(1).max(256), groups: names, keys: z.array(approverKey) }),
  ),
  require: z.array(z.strictObject({ tool: glob, groups: names, quorum: z.int().min(1).max(100) })),
});
export type ApproversDoc = z.output<typeof approversSchema>;

export function parseApprovers(text: string, file: string): ApproversDoc {
  const fail = (problem: string) => new ProblemsError([`${file}: ${problem}`]);
  let value: JsonValue;
  try {
    value = parseJson(text);
  } catch (error) {
    throw fail(messageOf(error));
  }
  const parsed = approversSchema.safeParse(value);
  if (!parsed.success)
    throw new ProblemsError(
      parsed.error.issues.map(({ path, message }) => `${file}: ${path.join(".")}: ${message}`),
    );
  const ids = parsed.data.approvers.flatMap(({ keys }) => keys.map(({ id }) => id));
  if (new Set(ids).size !== ids.length) throw fail("two keys have the same id");
  return parsed.data;
}

/** The call that is about to be made, with exactly its arguments. */
export interface CallToMake {
  run_id: string;
  tool: string;
  args: JsonValue;
  /** For the undo of a call: what tells it from every other undo, the same in all its attempts. */
  undo?: string;
}

const evidenceSchema = z.looseObject({
  salt: z.string(),
  signatures: z.array(
    z.looseObject({
      payload: signedPayloadSchema,
      assertion: assertionSchema,
      subject: z.unknown().optional(),
    }),
  ),
});

/** A use of an approval: its id, and until when the id must not be used again. */
export interface ApprovalUse {
  id: string;
  expires_ms: number;
}

export type ApprovalVerdict = { use: ApprovalUse | null } | { problem: string };

/** Tolerance between the clocks of this machine and the server. */
const CLOCK_TOLERANCE_MS = 60_000;
const CALL_KINDS: ReadonlySet<SignedKind> = new Set([
  "approval",
  "offer",
  "pre_approval",
  "break_glass",
  "plan",
]);

/** Entries of `require` that name the tool. */
export const requirementsFor = ({ require }: ApproversDoc, tool: string): ApproversDoc["require"] =>
  require.filter((one) => globMatches(one.tool, tool));

/**
 * Whether the signatures allow the call under the file. `answer` comes from a server and is not trusted. Pure: the
 * caller keeps the used ids, and must use the returned one before it acts.
 */
export async function judgeSignedCall(
  doc: ApproversDoc,
  call: CallToMake,
  answer: unknown,
  now: number,
): Promise<ApprovalVerdict> {
  const required = requirementsFor(doc, call.tool);
  if (required.length === 0) return { use: null };
  const parsed = evidenceSchema.safeParse(answer);
  if (!parsed.success) return { problem: "the server has no valid signatures for it" };
  const { salt, signatures } = parsed.data;
  const args_hash = keyedHash(salt, call.args);
  const counted = new Map<string, { names: Set<string>; expires_ms: number }>();
  const problems = new Set<string>();
  for (const signature of signatures) {
    const found = await readSignature(doc, { ...call, args_hash }, signature, now);
    if ("problem" in found) {
      problems.add(found.problem);
      continue;
    }
    const use = counted.get(found.id) ?? { names: new Set(), expires_ms: found.expires_ms };
    counted.set(found.id, { ...use, names: use.names.add(found.name) });
  }
  for (const [id, { names: people, expires_ms }] of counted)
    if (required.every((one) => isMet(doc, one, people))) return { use: { id, expires_ms } };
  const why = [...problems];
  return { problem: why.length === 0 ? "too few of its approvers signed it" : why.join("; ") };
}

function isMet(
  { approvers }: ApproversDoc,
  { groups, quorum }: ApproversDoc["require"][number],
  people: ReadonlySet<string>,
): boolean {
  const counting = approvers.filter(
    ({ name, groups: own }) =>
      people.has(name) && (groups.length === 0 || own.some((group) => groups.includes(group))),
  );
  return new Set(counting.map(({ name }) => name)).size >= quorum;
}

type SignatureVerdict = { id: string; name: string; expires_ms: number } | { problem: string };

async function readSignature(
  doc: ApproversDoc,
  call: CallToMake & { args_hash: string },
  signature: GivenSignature & { subject?: unknown },
  now: number,
): Promise<SignatureVerdict> {
  const { payload, assertion } = signature;
  const { ledger, run_id, expires_ms, by, nonce } = payload;
  const right = call.undo !== undefined ? payload.kind === "compensation" : CALL_KINDS.has(payload.kind);
  if (!right) return { problem: "a signature is for another kind of decision" };
  if (payload.decision !== "approve" && payload.decision !== "offer")
    return { problem: "a signature does not approve" };
  if (ledger !== doc.ledger || run_id !== call.run_id)
    return { problem: "a signature is for another ledger or run" };
  if (expires_ms === undefined || isExpired({ expires_ms }, now - CLOCK_TOLERANCE_MS))
    return { problem: "a signature has expired" };
  const approver = doc.approvers.find(({ keys }) => keys.some(({ id }) => id === assertion.id));
  const key = approver?.keys.find(({ id }) => id === assertion.id);
  if (approver === undefined || key === undefined || key.revoked || approver.name !== by)
    return { problem: "a signer is not in the approvers file" };
  const place = placeInPlan(call, signature);
  if (place === null) return { problem: "a signature is for other arguments or another tool" };
  const checked = await verifyAssertion(payload, assertion, { place: doc, key, counter: 0 });
  if ("problem" in checked) return { problem: `a signature does not hold: ${checked.problem}` };
  return { id: `${payload.id ?? nonce}${place}`, name: approver.name, expires_ms };
}

/** Empty for a signature over the call itself, the position for a planned call, or null if it fits neither. */
function placeInPlan(
  { tool, args_hash }: CallToMake & { args_hash: string },
  { payload, subject }: GivenSignature & { subject?: unknown },
): string | null {
  if (payload.kind !== "plan") return payload.tool === tool && payload.args_hash === args_hash ? "" : null;
  const plan = planSchema.safeParse(subject);
  if (!plan.success || valueHash(subject as JsonValue) !== payload.subject_hash) return null;
  const at = plan.data.calls.findIndex((one) => one.tool === tool && one.args_hash === args_hash);
  return at < 0 ? null : `#${at}`;
}

const planSchema = z.looseObject({
  calls: z.array(z.looseObject({ tool: z.string(), args_hash: z.string() })),
});

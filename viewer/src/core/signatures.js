// Signatures of approvals inside a bundle: each record that names one has it, it signs what the record says, and the
// assertion holds. Whose keys they are is not in the bundle; an approvers file says it.

import { Finding } from "./finding.js";
import { canonical, parseStrict } from "./json.js";
import { strictBase64 } from "./keys.js";
import { assertionProblem, strictBase64url } from "./passkeys.js";
import { sha256, toHex } from "./sha256.js";

const NAMED_ASSERTION = /; signed ([0-9a-f]{64})$/;
const CALL_KINDS = ["approval", "offer", "break_glass", "pre_approval", "compensation", "plan"];
const EVENT_KINDS = {
  approved: CALL_KINDS,
  plan_approved: ["plan"],
  granted: ["grant"],
  delegated: ["delegation"],
};
const KIND_DECISIONS = { offer: "offer", grant: "grant", delegation: "delegate" };
const CLOCK_TOLERANCE_MS = 60_000;
const TEXT_MEMBERS = [
  ...["ledger", "kind", "id", "decision", "by", "run_id", "actor", "tenant", "environment", "tool"],
  ...["args_hash", "card_hash", "shown_hash", "subject_hash", "policy_hash", "nonce"],
];
const PAYLOAD_MEMBERS = ["v", "kind", "decision", "by", "nonce"];
const signatureText = new TextEncoder();

/** The records that name a signature, as they stream by, and the last `purged` record of each run. */
export class Naming {
  constructor() {
    this.records = [];
    this.purged = new Map();
  }

  add(record) {
    const { event, detail, run_id, seq } = record;
    if (event === "purged" && run_id !== undefined) this.purged.set(run_id, seq);
    const hash =
      Object.hasOwn(EVENT_KINDS, event) && typeof detail === "string"
        ? NAMED_ASSERTION.exec(detail)?.[1]
        : undefined;
    if (hash !== undefined) this.records.push({ hash, record });
  }
}

/** `{signers, deleted}`: who signed what, and how many signatures retention deleted. Throws where one does not hold. */
export async function checkSignatures({ members, naming }, approvers, native) {
  const carried = "signatures" in members ? members.signatures : [];
  const found = readCarried(carried);
  const used = new Map();
  let deleted = 0;
  for (const { hash, record } of naming.records) {
    const where = `record ${record.seq}`;
    if (!found.has(hash)) {
      if ((naming.purged.get(record.run_id) ?? -1) < record.seq)
        throw new Finding("it names a signature that the bundle does not hold", where);
      deleted++;
      continue;
    }
    const before = used.get(hash) ?? [];
    const problem = bindingProblem(found.get(hash), record, before);
    if (problem !== null) throw new Finding(`its signature ${problem}`, where);
    used.set(hash, [...before, record]);
  }
  const signers = [];
  for (const [hash, one] of found) {
    const records = used.get(hash);
    if (records === undefined) throw new Finding("it has a signature that no record names");
    const problem = await assertionProblem(one, null, native);
    if (problem !== null)
      throw new Finding(`its signature does not hold: ${problem}`, `record ${records[0].seq}`);
    signers.push(await signerOf(one, records, approvers, native));
  }
  return { signers, deleted, known: approvers !== null };
}

function readCarried(carried) {
  if (!Array.isArray(carried)) throw new Finding("its signatures are not a list");
  const found = new Map();
  for (const one of carried) {
    if (!isCarriedSignature(one))
      throw new Finding("its signatures are not a list of {payload, assertion, public_key, alg, subject}");
    const hash = toHex(sha256(signatureText.encode(canonical(one.assertion))));
    if (found.has(hash)) throw new Finding("it has a signature twice");
    found.set(hash, one);
  }
  return found;
}

const isPlainObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const hasOnlyMembers = (value, members) => Object.keys(value).every((name) => members.includes(name));

function isCarriedSignature(one) {
  const members = ["payload", "assertion", "public_key", "alg"];
  return (
    isPlainObject(one) &&
    hasOnlyMembers(one, [...members, "subject"]) &&
    members.every((name) => name in one) &&
    isPayload(one.payload) &&
    isAssertion(one.assertion) &&
    typeof one.public_key === "string" &&
    ["ES256", "EdDSA", "RS256"].includes(one.alg)
  );
}

function isPayload(value) {
  if (!isPlainObject(value) || !hasOnlyMembers(value, ["v", "expires_ms", ...TEXT_MEMBERS])) return false;
  if (!PAYLOAD_MEMBERS.every((name) => name in value) || value.v !== 1) return false;
  if ("expires_ms" in value && !Number.isSafeInteger(value.expires_ms)) return false;
  return TEXT_MEMBERS.every((name) => !(name in value) || typeof value[name] === "string");
}

function isAssertion(value) {
  if (!isPlainObject(value) || Object.keys(value).sort().join() !== "id,rawId,response,type") return false;
  const { response } = value;
  if (value.type !== "public-key" || !isPlainObject(response)) return false;
  if (Object.keys(response).sort().join() !== "authenticatorData,clientDataJSON,signature") return false;
  const coded = [value.id, value.rawId, ...Object.values(response)];
  return coded.every((one) => typeof one === "string" && strictBase64url(one) !== null);
}

/** Why the signature is not over what the record says; null if it is. */
function bindingProblem(one, record, before) {
  const { kind, decision, by, run_id, expires_ms, id = "", tool, args_hash } = one.payload;
  const { event } = record;
  if (!EVENT_KINDS[event].includes(kind)) return "is for another kind of decision";
  if (decision !== (KIND_DECISIONS[kind] ?? "approve")) return "does not approve";
  if (by !== record.actor) return "is another person's";
  if (run_id !== record.run_id) return "is for another run";
  if (expires_ms !== undefined && record.ts_ms > expires_ms + CLOCK_TOLERANCE_MS) return "had expired";
  if (event === "approved" && kind === "plan") return plannedProblem(one, record, before);
  if (before.some((other) => other.event === event)) return "is used twice";
  if (event === "approved")
    return tool === record.tool && args_hash === record.args_hash
      ? null
      : "is for another tool or other arguments";
  const start = event === "plan_approved" ? `plan ${id}` : `${id}:`;
  return record.detail.startsWith(start) ? null : "is for another subject";
}

/** A plan's signature covers as many calls of one kind as the plan has. */
function plannedProblem({ payload, subject }, record, before) {
  const calls = isPlainObject(subject) ? subject.calls : undefined;
  const good = Array.isArray(calls) && calls.every(isPlainObject);
  if (!good || payload.subject_hash !== `sha256:${toHex(sha256(signatureText.encode(canonical(subject))))}`)
    return "comes without the plan that it signs";
  const isSame = (other) => other.tool === record.tool && other.args_hash === record.args_hash;
  const planned = calls.filter(isSame).length;
  const earlier = before.filter((other) => other.event === "approved" && isSame(other)).length;
  return earlier < planned ? null : "is for a plan without this call";
}

async function signerOf(one, records, approvers, native) {
  const { by, decision, kind, tool, id, run_id } = one.payload;
  return {
    by,
    what: [decision, kind, tool, id, run_id].filter((part) => part !== undefined).join(", "),
    code: toHex(sha256(strictBase64(one.public_key))).slice(0, 8),
    records: records.map(({ seq }) => seq),
    doubt: approvers === null ? null : await doubtOf(one, approvers, native),
  };
}

/** Why the approvers file does not vouch for the signer; null if it does. */
async function doubtOf(one, file, native) {
  const { payload, assertion } = one;
  const approver = file.approvers.find(({ keys }) => keys.some(({ id }) => id === assertion.id));
  const key = approver?.keys.find(({ id }) => id === assertion.id);
  if (key === undefined) return "the passkey is nobody's in the approvers file";
  if (key.public_key !== one.public_key || key.alg !== one.alg)
    return "the passkey has another public key in the approvers file";
  if (approver.name !== payload.by) return `the passkey is ${approver.name}'s in the approvers file`;
  if (key.revoked) return "the passkey is revoked in the approvers file";
  if (payload.ledger !== file.ledger) return "the signature is for another ledger than the approvers file";
  const problem = await assertionProblem(one, file, native);
  return problem === null ? null : `the approvers file does not permit it: ${problem}`;
}

/** Reads an approvers file. */
export function parseApproversFile(content) {
  const value = parseStrict(content);
  const isKey = (key) =>
    isPlainObject(key) &&
    [key.id, key.public_key, key.alg].every((part) => typeof part === "string") &&
    typeof key.revoked === "boolean";
  const isApprover = (one) =>
    isPlainObject(one) && typeof one.name === "string" && Array.isArray(one.keys) && one.keys.every(isKey);
  const good =
    isPlainObject(value) &&
    value.version === 1 &&
    typeof value.ledger === "string" &&
    typeof value.rp_id === "string" &&
    Array.isArray(value.origins) &&
    Array.isArray(value.approvers) &&
    value.approvers.every(isApprover);
  if (!good) throw new Finding("is no approvers file");
  return value;
}

/** The members of a bundle around its records: their names, their types, and the signed summary. */
import { fromJson, isJsonObject, type JsonObject, type JsonValue } from "../../kernel/json/json.ts";
import { isCount, isHash } from "../../ledger/read-record.ts";
import type { CarriedCheckpoint } from "../witness/cosignature-store.ts";
import { BUNDLE_FORMAT, type BundleSummary } from "./bundle.ts";

const REQUIRED = [
  "format",
  "version",
  "kind",
  "exported_ms",
  "head",
  "count",
  "tree",
  "key_id",
  "signature",
] as const;
/**
 * `public_key` only helps verification; `first_seq` and `last_seq` are signed and may be present; `checkpoints` and
 * `signatures` have their own signatures.
 */
const OPTIONAL = [
  "run_id",
  "proofs",
  "public_key",
  "first_seq",
  "last_seq",
  "checkpoints",
  "signatures",
] as const;
const KNOWN: ReadonlySet<string> = new Set([...REQUIRED, ...OPTIONAL]);
/** Height limit of a tree with a 64-bit size. */
const MAX_PROOF = 64;
const MAX_CHECKPOINTS = 32;

export interface BundleMembers {
  kind: "ledger" | "run";
  run_id: string | null;
  exported_ms: number;
  head: string;
  count: number;
  tree: { size: number; root: string };
  proofs: { [seq: string]: string[] };
  checkpoints: readonly CarriedCheckpoint[];
  /** Signatures of approvals, not checked yet. */
  signatures: readonly JsonValue[];
  /** The bundle's own value; undefined if absent. */
  first_seq: JsonValue | undefined;
  last_seq: JsonValue | undefined;
  key_id: JsonValue;
  public_key: JsonValue | undefined;
  signature: JsonValue;
}

/** Validates the members, without `records`. Returns them, or the problem. */
export function readMembers(members: JsonObject): BundleMembers | string {
  const unknown = Object.keys(members).find((name) => !KNOWN.has(name));
  if (unknown !== undefined) {
    return `it has a member ${JSON.stringify(unknown.slice(0, 60))}, which no bundle has and no signature covers`;
  }
  const missing = REQUIRED.find((name) => members[name] === undefined);
  if (missing !== undefined) return `it has no ${missing}`;
  const whole = {
    ...members,
    run_id: members["run_id"] ?? null,
    proofs: members["proofs"] === undefined ? {} : members["proofs"],
    checkpoints: members["checkpoints"] === undefined ? [] : members["checkpoints"],
    signatures: members["signatures"] === undefined ? [] : members["signatures"],
  };
  return problemOf(whole) ?? fromJson<BundleMembers>(whole);
}

function problemOf(members: { [name: string]: JsonValue | undefined }): string | undefined {
  const { format, version, kind, exported_ms, count, head, run_id, proofs } = members;
  if (format !== BUNDLE_FORMAT || version !== 1) return "it is not a svc-bundle of version 1";
  if (kind !== "ledger" && kind !== "run") return "its kind is neither ledger nor run";
  if (!isCount(exported_ms)) return "its exported_ms is not a time in milliseconds";
  if (!isCount(count)) return "its count is not a whole number from 0";
  if (!isHash(head)) return "its head is not 64 hex digits";
  const tree = treeProblem(members["tree"]);
  if (tree !== undefined) return tree;
  if (kind === "run" ? typeof run_id !== "string" : run_id !== null) {
    return "a run's bundle names its run, and a ledger's names none";
  }
  if (!isJsonObject(proofs)) return "its proofs are not an object";
  const bad = Object.entries(proofs).find(([, path]) => !isProof(path));
  if (bad !== undefined)
    return `the inclusion proof of record ${bad[0].slice(0, 20)} is not a list of hashes`;
  const { checkpoints, signatures } = members;
  if (!Array.isArray(signatures)) return "its signatures are not a list";
  const isList = Array.isArray(checkpoints) && checkpoints.length <= MAX_CHECKPOINTS;
  return isList && checkpoints.every(isCarried)
    ? undefined
    : "its checkpoints are not a list of {note, consistency}";
}

function isCarried(one: JsonValue): boolean {
  return (
    isJsonObject(one) &&
    Object.keys(one).sort().join() === "consistency,note" &&
    typeof one["note"] === "string" &&
    isProof(one["consistency"]!)
  );
}

/** Problem with a tree that is not exactly `{size, root}`. Anchors have the same member. */
export function treeProblem(tree: JsonValue | undefined): string | undefined {
  if (!isJsonObject(tree) || Object.keys(tree).sort().join() !== "root,size")
    return "its tree is not {size, root}";
  return isCount(tree["size"]) && isHash(tree["root"]) ? undefined : "its tree is not a size and a hash";
}

function isProof(path: JsonValue): boolean {
  return Array.isArray(path) && path.length <= MAX_PROOF && path.every(isHash);
}

/** Builds the signed summary from verified facts, never from the bundle's own claims. */
export function summaryOf(
  members: BundleMembers,
  first_seq: number | null,
  last_seq: number | null,
): BundleSummary {
  const { kind, run_id, exported_ms, head, count, tree, key_id } = members;
  return {
    format: BUNDLE_FORMAT,
    version: 1,
    kind,
    run_id,
    exported_ms,
    head,
    count,
    first_seq,
    last_seq,
    tree,
    key_id: key_id as string,
  };
}

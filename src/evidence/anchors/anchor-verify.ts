/**
 * Verifies a ledger against anchors published earlier: each anchored ledger must be a prefix of the current one. If the
 * roots of two anchors both match the ledger at their sizes, they are consistent without a further proof.
 */
import { invalidError, messageOf } from "../../kernel/errors.ts";
import {
  fromJson,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseJson,
} from "../../kernel/json/json.ts";
import { hasPlainNumbers, isCount, isHash } from "../../ledger/read-record.ts";
import { treeProblem } from "../bundles/bundle-members.ts";
import { LineFile } from "../chain/line-file.ts";
import type { TrustedKeys } from "../key-files.ts";
import { checkSignature, type KeyTrust } from "../signature-check.ts";
import type { LedgerCheck } from "../verify-ledger.ts";
import { ANCHOR_FORMAT } from "./anchor.ts";

const REQUIRED = ["format", "version", "ts_ms", "head", "records"];
const KNOWN: ReadonlySet<string> = new Set([
  ...REQUIRED,
  "tree",
  "region",
  "key_id",
  "signature",
  "public_key",
]);

interface ReadAnchor {
  fields: JsonObject;
  ts_ms: number;
  records: number;
  head: string;
  /** Undefined in an anchor without a tree, which only fixes the ledger's head. */
  tree: { size: number; root: string } | undefined;
}

export interface AnchorFinding {
  /** Line number in the anchors file, from 1. */
  line: number;
  ts_ms: number | null;
  records: number | null;
  trust: KeyTrust | "unsigned";
  /** Null if the anchor matches. */
  problem: string | null;
}

export interface AnchorsVerdict {
  /** Result of the ledger verification. If it failed, no anchor was checked. */
  ledger: LedgerCheck;
  findings: AnchorFinding[];
}

/** `check` verifies the ledger and returns its head and root at the given sizes. */
export async function verifyAnchors(
  path: string,
  check: (sizes: Iterable<number>) => Promise<LedgerCheck>,
  trusted: TrustedKeys,
): Promise<AnchorsVerdict> {
  const anchors = readAnchors(path);
  const sizes = anchors.flatMap((anchor) => (typeof anchor === "string" ? [] : [anchor.records]));
  const ledger = await check(new Set(sizes));
  if (ledger.first_bad !== null) return { ledger, findings: [] };
  const order = new Order();
  const findings = anchors.map((anchor, i): AnchorFinding => {
    const line = i + 1;
    if (typeof anchor === "string")
      return { line, ts_ms: null, records: null, trust: "unsigned", problem: anchor };
    const { ts_ms, records } = anchor;
    const signed = signatureOf(anchor, trusted);
    const problem =
      "problem" in signed
        ? signed.problem
        : (positionProblem(anchor, ledger) ?? order.problemOf(ts_ms, records));
    return {
      line,
      ts_ms,
      records,
      trust: "trust" in signed ? signed.trust : "unchecked",
      problem: problem ?? null,
    };
  });
  return { ledger, findings };
}

const MAX_BYTES = 64 * 1_048_576;
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Parses each line of the file into an anchor, or a problem with the line. */
function readAnchors(path: string): (ReadAnchor | string)[] {
  const file = new LineFile(path);
  try {
    if (file.size > MAX_BYTES) throw invalidError(`${path}: is larger than ${MAX_BYTES} bytes`);
    const lines = UTF8.decode(file.bytes(0, file.size)).split("\n");
    if (lines.at(-1) === "") lines.pop();
    if (lines.length === 0) throw invalidError(`${path}: is empty: there is nothing to check against`);
    return lines.map(readAnchor);
  } catch (error) {
    throw error instanceof TypeError ? invalidError(`${path}: is not UTF-8 text`) : error;
  } finally {
    file.close();
  }
}

function readAnchor(line: string): ReadAnchor | string {
  if (line.endsWith("\r")) return "the line ends in CR LF: the file was converted on the way";
  let fields: JsonValue;
  try {
    fields = parseJson(line);
  } catch (error) {
    return `the line cannot be read (${messageOf(error)})`;
  }
  if (!isJsonObject(fields)) return "the line is not a JSON object";
  if (!hasPlainNumbers(line)) return "a number is not written as a plain integer";
  const problem = shapeProblem(fields);
  if (problem !== undefined) return problem;
  const { ts_ms, records, head, tree } = fromJson<ReadAnchor>(fields);
  return { fields, ts_ms, records, head, tree };
}

function shapeProblem(fields: JsonObject): string | undefined {
  const missing = REQUIRED.find((name) => fields[name] === undefined);
  if (missing !== undefined) return `it has no ${missing}`;
  const unknown = Object.keys(fields).find((name) => !KNOWN.has(name));
  if (unknown !== undefined)
    return `it has a member ${JSON.stringify(unknown.slice(0, 60))}, which no anchor has`;
  if (fields["format"] !== ANCHOR_FORMAT || fields["version"] !== 1)
    return "it is not a svc-anchor of version 1";
  if (!isCount(fields["ts_ms"]) || !isCount(fields["records"]))
    return "its ts_ms or records is not a whole number from 0";
  if (!isHash(fields["head"])) return "its head is not 64 hex digits";
  if (fields["region"] !== undefined && typeof fields["region"] !== "string")
    return "its region is not a text";
  const tree = fields["tree"] === undefined ? undefined : treeProblem(fields["tree"]);
  if (tree !== undefined) return tree;
  const isHalf = (fields["key_id"] === undefined) !== (fields["signature"] === undefined);
  return isHalf ? "it has one of key_id and signature without the other" : undefined;
}

function signatureOf(
  { fields }: ReadAnchor,
  trusted: TrustedKeys,
): { trust: KeyTrust | "unsigned" } | { problem: string } {
  const { signature, ...summary } = fields;
  if (signature !== undefined) {
    const { key_id, public_key } = summary;
    return checkSignature({ domain: "anchor", summary, key_id, public_key, signature }, trusted);
  }
  return trusted.size > 0
    ? { problem: "it is not signed, and a trusted key was given" }
    : { trust: "unsigned" };
}

function positionProblem({ records, head, tree }: ReadAnchor, ledger: LedgerCheck): string | undefined {
  if (records > ledger.records) {
    return `the ledger has ${ledger.records} records but was anchored at ${records}: it has been truncated`;
  }
  const moment = ledger.moments.get(records)!;
  if (moment.head !== head)
    return `history was rewritten: ${lastOf(records)} no longer has the anchored hash`;
  if (tree === undefined) return undefined;
  if (tree.size !== records) return "its tree is not over all of its records";
  if (moment.root === tree.root) return undefined;
  return `history was rewritten: the first ${records} records no longer have the anchored tree root`;
}

function lastOf(records: number): string {
  return records === 0 ? "the empty ledger" : `record ${records - 1}`;
}

/**
 * Detects a later anchor with fewer records than an earlier one, which means that the ledger shrank and grew again. An
 * anchor is later only if both its place in the file and its time are later: two processes may write out of order, and
 * a clock may jump back.
 */
class Order {
  /** By ascending time and record count. An anchor that an earlier one exceeds is left out. */
  private readonly seen: { ts_ms: number; records: number }[] = [];

  problemOf(ts_ms: number, records: number): string | undefined {
    const { seen } = this;
    let at = seen.length;
    while (at > 0 && seen[at - 1]!.ts_ms > ts_ms) at--;
    const before = seen[at - 1];
    if (before !== undefined && before.records > records) {
      return `it counts ${records} records after an anchor of ${before.records}: a ledger never shrinks`;
    }
    let outdone = at;
    while (outdone < seen.length && seen[outdone]!.records <= records) outdone++;
    seen.splice(at, outdone - at, { ts_ms, records });
    return undefined;
  }
}

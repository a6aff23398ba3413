// Anchors against a ledger: what was published earlier must still be the beginning of what is here now. Two anchors
// whose roots both match one ledger, at sizes in order, are a tree and its prefix; no further proof is needed.

import { checkTree } from "./bundle.js";
import { Finding } from "./finding.js";
import { brief, canonical, decodeText, parseStrict } from "./json.js";
import { checkSignature } from "./keys.js";
import { GENESIS, isCount, isHash } from "./record.js";
import { eachLine } from "./scan.js";

const NEEDED_MEMBERS = ["format", "version", "ts_ms", "head", "records", "tree"];
const OTHER_MEMBERS = ["region", "key_id", "signature", "public_key"];

/** Each line as `{line, anchor, problem}`: what is wrong in an anchor itself is kept, not thrown. */
export async function readAnchors(blob) {
  const anchors = [];
  await eachLine(blob, (bytes) => {
    const line = anchors.length + 1;
    try {
      anchors.push({ line, anchor: readAnchor(bytes), problem: null });
    } catch (error) {
      if (!(error instanceof Finding)) throw error;
      anchors.push({ line, anchor: null, problem: error.message });
    }
  });
  if (anchors.length === 0) throw new Finding("the anchors file is empty: there is nothing to check against");
  return anchors;
}

function readAnchor(bytes) {
  if (bytes[bytes.length - 1] === 13)
    throw new Finding("the line ends in CR LF: the file was converted on the way");
  const anchor = parseStrict(decodeText(bytes));
  if (anchor === null || typeof anchor !== "object" || Array.isArray(anchor))
    throw new Finding("is not a JSON object");
  for (const field of NEEDED_MEMBERS) if (!(field in anchor)) throw new Finding(`has no ${field}`);
  for (const field of Object.keys(anchor)) {
    if (!NEEDED_MEMBERS.includes(field) && !OTHER_MEMBERS.includes(field)) {
      throw new Finding(`has a member ${JSON.stringify(brief(field))} that no anchor has`);
    }
  }
  if (anchor.format !== "svc-anchor" || anchor.version !== 1)
    throw new Finding("is not a svc-anchor of version 1");
  for (const field of ["ts_ms", "records"]) {
    if (!isCount(anchor[field])) throw new Finding(`its ${field} is not a count`);
  }
  if (!isHash(anchor.head)) throw new Finding("its head is not 64 lowercase hex digits");
  if ("region" in anchor && typeof anchor.region !== "string") throw new Finding("its region is not text");
  checkTree(anchor.tree);
  if (anchor.tree.size !== anchor.records) {
    throw new Finding(`its tree has ${anchor.tree.size} leaves and it counts ${anchor.records} records`);
  }
  if ("key_id" in anchor !== "signature" in anchor)
    throw new Finding("has one of key_id and signature without the other");
  return anchor;
}

/**
 * A finding per anchor: `{line, ts_ms, records, signature, problem}`. `ledger` must have verified;
 * `hashAt(position)` gives the hash of one of its records.
 */
export async function checkAnchors(anchors, ledger, hashAt, trusted, native) {
  const sizes = anchors.filter(({ anchor }) => anchor !== null).map(({ anchor }) => anchor.records);
  const roots = ledger.leaves.roots(sizes);
  const findings = [];
  let reached = 0;
  for (const { line, anchor, problem } of anchors) {
    const finding = {
      line,
      ts_ms: anchor?.ts_ms ?? null,
      records: anchor?.records ?? null,
      signature: "none",
      problem,
    };
    findings.push(finding);
    if (anchor === null) continue;
    try {
      finding.signature = await checkAnchorSignature(anchor, trusted, native);
      await checkPosition(anchor, ledger, roots, hashAt);
      if (anchor.records < reached) {
        throw new Finding(
          `it counts ${anchor.records} records after an anchor of ${reached}: a ledger never shrinks`,
        );
      }
      reached = anchor.records;
    } catch (error) {
      if (!(error instanceof Finding)) throw error;
      finding.problem = error.message;
    }
  }
  return findings;
}

async function checkPosition(anchor, ledger, roots, hashAt) {
  const { records } = anchor;
  if (records > ledger.count) {
    throw new Finding(
      `the ledger has ${ledger.count} records but was anchored at ${records}: it has been truncated`,
    );
  }
  const head = records === 0 ? GENESIS : await hashAt(records - 1);
  if (anchor.head !== head) {
    throw new Finding(`history was rewritten: record ${records - 1} no longer has the anchored hash`);
  }
  if (anchor.tree.root !== roots.get(records)) {
    throw new Finding(
      `history was rewritten: the first ${records} records no longer have the anchored tree root`,
    );
  }
}

async function checkAnchorSignature(anchor, trusted, native) {
  if (!("signature" in anchor)) {
    if (trusted.length > 0) throw new Finding("it is not signed, and a trusted key was given");
    return "none";
  }
  const { signature, ...signed } = anchor;
  return checkSignature({
    keyId: anchor.key_id,
    publicKey: anchor.public_key,
    signature,
    domain: "svc-anchor/v1\n",
    spellings: [canonical(signed)],
    trusted,
    native,
  });
}

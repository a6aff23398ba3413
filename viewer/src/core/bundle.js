// A signed bundle: a whole ledger or one run. Members may come in any order, so each record leaves behind its leaf
// and its number, and what depends on the bundle's kind is decided at the end.

import { Chain, RunTrail } from "./chain.js";
import { Finding, locate } from "./finding.js";
import { brief, canonical, decodeText, parseStrict } from "./json.js";
import { checkSignature } from "./keys.js";
import { Leaves, provesInclusion } from "./merkle.js";
import { GENESIS, isCount, isHash, readRecord } from "./record.js";
import { cutRecords, Extents } from "./scan.js";
import { fromHex } from "./sha256.js";
import { Naming } from "./signatures.js";
import { checkCarried } from "./witness.js";

const REQUIRED = [
  "format",
  "version",
  "kind",
  "exported_ms",
  "head",
  "records",
  "count",
  "tree",
  "key_id",
  "signature",
];
const OPTIONAL = ["run_id", "proofs", "public_key", "first_seq", "last_seq", "checkpoints", "signatures"];
const SIGNED = ["format", "version", "kind", "run_id", "exported_ms", "head", "count", "tree", "key_id"];

/** Reads a bundle and checks all of it but the signature, which depends on who is trusted. */
export async function readBundle(blob, onProgress) {
  const trail = new BundleTrail();
  const bundle = { kind: "bundle", blob, extents: trail.extents, leaves: trail.leaves, events: trail.events };
  Object.assign(bundle, { members: null, problem: null, headTied: false });
  try {
    const { rest, lists } = await cutRecords(
      blob,
      (bytes, start, end) => trail.add(bytes, start, end),
      onProgress,
    );
    if (trail.problem !== null) throw trail.problem;
    bundle.members = readMembers(rest, lists);
    checkContents(bundle.members, trail);
    bundle.headTied = holdsLastLeaf(bundle.members, trail);
  } catch (error) {
    if (!(error instanceof Finding)) throw error;
    bundle.problem = error;
  }
  return Object.assign(bundle, {
    count: trail.count,
    head: bundle.members?.head ?? null,
    lastOther: trail.lastOther,
    naming: trail.naming,
    summary: trail.summary(),
  });
}

/** The records of a bundle as they stream by. Findings about order wait until the bundle's kind is known. */
class BundleTrail {
  constructor() {
    this.extents = new Extents();
    this.leaves = new Leaves();
    this.events = new Map();
    this.seqs = [];
    this.count = 0;
    this.last = null;
    // The last record that is more than word of a witness.
    this.lastOther = null;
    this.problem = null;
    this.naming = new Naming();
    this.ledger = { chain: new Chain(), problem: null };
    this.run = { chain: new RunTrail(), problem: null };
  }

  add(bytes, start, end) {
    const position = this.extents.count;
    this.extents.push(start, end);
    if (this.problem !== null) return;
    try {
      const { record, leaf } = locate(`record ${position} of the bundle`, position, () =>
        readRecord(decodeText(bytes)),
      );
      for (const order of [this.ledger, this.run]) {
        if (order.problem === null) this.follow(order, record, position);
      }
      this.naming.add(record);
      this.leaves.push(leaf);
      this.seqs.push(record.seq);
      this.events.set(record.event, (this.events.get(record.event) ?? 0) + 1);
      this.last = record;
      if (record.event !== "witnessed") this.lastOther = record.seq;
      this.count++;
    } catch (error) {
      if (!(error instanceof Finding)) throw error;
      this.problem = error;
    }
  }

  follow(order, record, position) {
    try {
      order.chain.link(record);
    } catch (error) {
      if (!(error instanceof Finding)) throw error;
      order.problem = error.at(`record ${record.seq}`, position);
    }
  }

  summary() {
    return { first_seq: this.count > 0 ? this.seqs[0] : null, last_seq: this.last?.seq ?? null };
  }
}

function readMembers(rest, lists) {
  const members = parseStrict(decodeText(rest));
  if (members === null || typeof members !== "object" || Array.isArray(members))
    throw new Finding("is not a JSON object");
  for (const field of Object.keys(members)) {
    if (!REQUIRED.includes(field) && !OPTIONAL.includes(field)) {
      throw new Finding(
        `it has a member ${JSON.stringify(brief(field))} that no bundle has and no signature covers`,
      );
    }
  }
  for (const field of REQUIRED) if (!(field in members)) throw new Finding(`it has no ${field}`);
  // The cutter left an empty list where it took the records out. Anything else got past it under another spelling.
  if (lists !== 1 || !Array.isArray(members.records) || members.records.length > 0) {
    throw new Finding("its records are not one plain list");
  }
  return members;
}

function checkContents(members, trail) {
  checkMembers(members);
  if (members.count !== trail.count) {
    throw new Finding(`it says it holds ${members.count} records and holds ${trail.count}`);
  }
  const ends = trail.summary();
  for (const field of ["first_seq", "last_seq"]) {
    if (field in members && members[field] !== ends[field])
      throw new Finding(`its ${field} is not that of its records`);
  }
  if (members.kind === "ledger") checkLedger(members, trail);
  else checkRun(members, trail);
}

function checkMembers(members) {
  if (members.format !== "svc-bundle" || members.version !== 1)
    throw new Finding("it is not a svc-bundle of version 1");
  if (members.kind !== "ledger" && members.kind !== "run")
    throw new Finding("its kind is neither ledger nor run");
  for (const field of ["exported_ms", "count"]) {
    if (!isCount(members[field])) throw new Finding(`its ${field} is not a count`);
  }
  if (!isHash(members.head)) throw new Finding("its head is not 64 lowercase hex digits");
  checkTree(members.tree);
  if ("checkpoints" in members) checkCarried(members.checkpoints);
  const named = typeof members.run_id === "string";
  if (members.kind === "run" ? !named : (members.run_id ?? null) !== null) {
    throw new Finding("a run's bundle names its run, and a ledger's names none");
  }
}

/** `{size, root}` and nothing more; anchors carry the same. */
export function checkTree(tree) {
  const isObject = tree !== null && typeof tree === "object" && !Array.isArray(tree);
  if (!isObject || Object.keys(tree).sort().join() !== "root,size")
    throw new Finding("its tree is not {size, root}");
  if (!isCount(tree.size) || !isHash(tree.root)) throw new Finding("its tree is not a size and a hash");
}

function checkLedger(members, trail) {
  if (trail.ledger.problem !== null) throw trail.ledger.problem;
  if (members.head !== (trail.last?.hash ?? GENESIS))
    throw new Finding("its head is not the hash of its last record");
  if (members.tree.size !== trail.count) {
    throw new Finding(`its tree has ${members.tree.size} leaves and it holds ${trail.count} records`);
  }
  if (members.tree.root !== trail.leaves.roots([trail.count]).get(trail.count)) {
    throw new Finding("its tree root is not that of its records");
  }
  checkProofs(members, trail, false);
}

function checkRun(members, trail) {
  if (trail.run.problem !== null) throw trail.run.problem;
  if (trail.count > 0 && trail.run.chain.runId !== members.run_id)
    throw new Finding("its records belong to another run");
  checkProofs(members, trail, true);
  if (holdsLastLeaf(members, trail) && trail.last.hash !== members.head) {
    throw new Finding("its head is not the hash of the ledger's last record, which it holds");
  }
}

/** Every proof belongs to a record that is here and leads to the signed root; one for each where required. */
function checkProofs(members, trail, required) {
  const proofs = members.proofs ?? Object.create(null);
  if (
    typeof proofs !== "object" ||
    Array.isArray(proofs) ||
    ("proofs" in members && members.proofs === null)
  ) {
    throw new Finding("its proofs are not an object");
  }
  const proven = Object.keys(proofs);
  for (const seq of proven) {
    // No tree of a safe size has more than 53 levels; a list far longer is not worth decoding.
    if (!Array.isArray(proofs[seq]) || proofs[seq].length > 64 || !proofs[seq].every(isHash)) {
      throw new Finding("its inclusion proof is not a list of hashes", `record ${brief(seq, 20)}`);
    }
  }
  let used = 0;
  if (required || proven.length > 0) {
    trail.seqs.forEach((seq, position) => {
      const path = proofs[String(seq)];
      if (path === undefined && !required) return;
      locate(`record ${seq}`, position, () => checkProof(path, seq, trail.leaves.at(position), members.tree));
      used++;
    });
  }
  if (used !== proven.length)
    throw new Finding("it has an inclusion proof for a record that it does not hold");
}

function checkProof(path, seq, leaf, tree) {
  if (path === undefined) throw new Finding("it has no inclusion proof");
  if (seq >= tree.size) throw new Finding(`it lies beyond the signed tree of ${tree.size} leaves`);
  if (!provesInclusion(leaf, seq, tree.size, path.map(fromHex), tree.root)) {
    throw new Finding("its inclusion proof does not lead to the signed tree root");
  }
}

/** Whether the ledger's last record is in the bundle, so that chain head and tree can be tied together. */
function holdsLastLeaf(members, trail) {
  return trail.last !== null && trail.last.seq === members.tree.size - 1;
}

/**
 * Checks the signature over the summary, rebuilt from what was checked. A value that is not there (a ledger's
 * run_id, the first_seq of no records) may have been signed as left out or as null: the two say the same.
 */
export function checkBundleSignature(bundle, trusted, native) {
  const { members } = bundle;
  const summary = { ...bundle.summary };
  for (const field of SIGNED) summary[field] = members[field] ?? null;
  const present = Object.fromEntries(Object.entries(summary).filter(([, value]) => value !== null));
  return checkSignature({
    keyId: members.key_id,
    publicKey: members.public_key,
    signature: members.signature,
    domain: "svc-bundle/v1\n",
    spellings: [canonical(present), canonical(summary)],
    trusted,
    native,
  });
}

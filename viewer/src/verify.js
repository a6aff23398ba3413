// The whole verification core in three calls, for tests and for anyone who wants it without the page. Each takes a
// Blob and answers `{ok, ...}`; what is wrong is in `problem`, a sentence that names the first bad place.

import { checkAnchors, readAnchors } from "./core/anchors.js";
import { Archive } from "./core/archive.js";
import { checkBundleSignature, readBundle } from "./core/bundle.js";
import { Finding } from "./core/finding.js";
import { chooseKey } from "./core/keys.js";
import { readLedger } from "./core/ledger.js";
import { checkSignatures } from "./core/signatures.js";
import { checkWitnesses } from "./core/witness.js";

export { parsePublicKey } from "./core/keys.js";
export { parseApproversFile } from "./core/signatures.js";
export { parseWitness } from "./core/witness.js";

/** A ledger.jsonl: chain, canonical form, numbering. */
export async function verifyLedger(blob, { onProgress } = {}) {
  const ledger = await readLedger(blob, onProgress);
  return {
    ok: ledger.problem === null,
    records: ledger.count,
    head: ledger.head,
    problem: ledger.problem?.message ?? null,
  };
}

/**
 * A bundle: contents, proofs, signature and the signatures of its approvals. `ok` needs a checked signature; `trusted`
 * are parsed public keys, `witnesses` parsed verifier keys, of which `quorum` (all, unless said) must have cosigned
 * every record, and `approvers` is a parsed approvers file.
 */
export async function verifyBundle(blob, options = {}) {
  const { trusted = [], witnesses = [], quorum = witnesses.length, native = true, onProgress } = options;
  const { approvers = null } = options;
  const bundle = await readBundle(blob, onProgress);
  const signature = await bundleSignature(bundle, trusted, { native, witnesses, quorum, approvers });
  const unchecked =
    signature.state === "unchecked" ? "its signature cannot be checked: it carries no public key" : null;
  const problem = (bundle.problem ?? signature.problem)?.message ?? unchecked;
  return {
    ok: problem === null,
    records: bundle.count,
    head: bundle.head,
    signature: signature.state,
    signers: signature.approvals.signers,
    problem,
  };
}

/** Anchors against the ledger they were made of. */
export async function verifyAnchors(anchorsBlob, ledgerBlob, { trusted = [], native = true } = {}) {
  const ledger = await readLedger(ledgerBlob);
  if (ledger.problem !== null && ledger.extents.count > 0) {
    return { ok: false, anchors: [], problem: `the ledger, ${ledger.problem.message}` };
  }
  try {
    const anchors = await anchorFindings(anchorsBlob, ledger, trusted, native);
    const bad = anchors.find((anchor) => anchor.problem !== null);
    return { ok: bad === undefined, anchors, problem: bad?.problem ?? null };
  } catch (error) {
    if (!(error instanceof Finding)) throw error;
    return { ok: false, anchors: [], problem: error.message };
  }
}

/** `{state, problem}` of a bundle's signature; state is null where its contents already failed. */
export async function bundleSignature(bundle, trusted, options = {}) {
  const { native = true, witnesses = [], quorum = witnesses.length, approvers = null } = options;
  const nothing = { by: [], covered: 0 };
  const unsigned = { signers: [], deleted: 0, known: false };
  if (bundle.problem !== null) return { state: null, problem: null, witnessed: nothing, approvals: unsigned };
  try {
    const state = await checkBundleSignature(bundle, trusted, native);
    const { key_id, public_key } = bundle.members;
    const key = chooseKey(key_id, public_key, trusted);
    const witnessed =
      key === null ? nothing : await checkWitnesses(bundle, key.raw, witnesses, quorum, native);
    const approvals = await checkSignatures(bundle, approvers, native);
    return { state, problem: null, witnessed, approvals };
  } catch (error) {
    if (!(error instanceof Finding)) throw error;
    return { state: null, problem: error, witnessed: nothing, approvals: unsigned };
  }
}

/** A finding per anchor, against evidence whose records have verified as a whole ledger. */
export async function anchorFindings(anchorsBlob, evidence, trusted, native = true) {
  const archive = new Archive(evidence.blob, evidence.extents);
  const hashAt = async (position) => (await archive.read(position)).record.hash;
  return checkAnchors(await readAnchors(anchorsBlob), evidence, hashAt, trusted, native);
}

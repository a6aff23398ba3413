// Findings put into words: one headline, what was checked, what was not, and what a reader should make of it.

const STRANGER =
  "who signed: the key was not checked against a trusted key, so the signature shows only that nothing changed since";

/**
 * `{level, headline, meaning, problem, checks}`. A problem is `{text, position}`, the one thing that failed; a check
 * is `{state: "ok" | "off", text}`, something that held, or something that was not checked.
 */
export function judgeLedger(ledger, anchors) {
  if (ledger.problem !== null) return brokenLedger(ledger);
  const checks = [
    { state: "ok", text: "Every line is the canonical form of its record" },
    { state: "ok", text: "Every record's hash fits its content" },
    { state: "ok", text: "Every record names the one before it, from genesis to the head" },
    { state: "ok", text: "No gap in the numbering of the ledger or of any run" },
    ...anchorChecks(anchors),
  ];
  if (anchors === null) {
    const text = "whether the end was cut off or all of it rewritten: that takes anchors or a signed bundle";
    checks.push({ state: "off", text });
  }
  return (
    againstAnchors(anchors, checks) ?? {
      level: "good",
      headline: "The chain holds",
      meaning: "Nothing inside this ledger was changed, left out or moved.",
      problem: null,
      checks,
    }
  );
}

function brokenLedger({ problem, extents, count }) {
  const after = extents.count - count - 1;
  const checks = [];
  if (count > 0) checks.push({ state: "ok", text: `The ${plural(count, "record")} before it` });
  if (after > 0)
    checks.push({ state: "off", text: `the ${plural(after, "line")} after it, which build on it` });
  const meaning =
    extents.count === 0 ? "There is nothing in this file." : "This ledger is not what was once written.";
  return { level: "bad", headline: "INVALID", meaning, problem: toProblem(problem), checks };
}

export function judgeBundle(bundle, signature, anchors) {
  const failed = bundle.problem ?? signature.problem;
  if (failed !== null) {
    return {
      level: "bad",
      headline: "INVALID",
      meaning: "This bundle is not what was signed, or never hung together.",
      problem: toProblem(failed),
      checks: bundle.problem === null ? contentChecks(bundle) : [],
    };
  }
  const keyId = bundle.members.key_id;
  const checks = contentChecks(bundle);
  if (signature.state === "trusted")
    checks.push({ state: "ok", text: `Signed with key ${keyId}, which you trust` });
  else if (signature.state === "self-consistent") {
    checks.push(
      { state: "ok", text: `The signature of key ${keyId} fits` },
      { state: "off", text: STRANGER },
    );
  } else {
    checks.push({
      state: "off",
      text: "the signature, since the bundle carries no public key: add the one you trust",
    });
  }
  checks.push(...witnessChecks(bundle, signature.witnessed), ...signerChecks(signature.approvals));
  if (bundle.members.kind === "run" && !bundle.headTied) {
    checks.push({
      state: "off",
      text: "that the head is the ledger's last record: it is not one of this run's",
    });
  }
  checks.push(...anchorChecks(anchors));
  const { signers, deleted, known } = signature.approvals;
  const isDoubted = known && (deleted > 0 || signers.some(({ doubt }) => doubt !== null));
  const verdict = isDoubted && signature.state === "trusted" ? DOUBTED : SIGNED_VERDICTS[signature.state];
  return againstAnchors(anchors, checks) ?? { ...verdict, problem: null, checks };
}

function witnessChecks({ members }, { by }) {
  const checks = by.map(({ name, size, seconds }) => {
    const when = new Date(seconds * 1000);
    const at = Number.isNaN(when.getTime()) ? "" : `, ${when.toISOString()}`;
    return { state: "ok", text: `${name} saw the first ${plural(size, "record")} and cosigned them${at}` };
  });
  if (by.length > 0) checks.push({ state: "ok", text: "No record lies behind what the witnesses saw" });
  else if ((members.checkpoints ?? []).length > 0)
    checks.push({
      state: "off",
      text: "the witnesses' cosignatures that it carries: add their verifier keys",
    });
  return checks;
}

function signerChecks({ signers, deleted, known }) {
  const checks = [];
  if (signers.length > 0)
    checks.push({
      state: "ok",
      text: `${plural(signers.length, "signature")} of approvals, each over what its records say`,
    });
  if (signers.length > 0 && !known)
    checks.push({ state: "off", text: "whose passkeys signed the approvals: add the approvers file" });
  for (const { by, what, code, records, doubt } of known ? signers : []) {
    const said = `${by} signed with ${code}: ${what} (record ${records.join(", ")})`;
    checks.push(doubt === null ? { state: "ok", text: said } : { state: "off", text: `${said}: ${doubt}` });
  }
  if (deleted > 0)
    checks.push({
      state: "off",
      text: `${plural(deleted, "signature")} of runs that retention deleted: the runs' archives hold them`,
    });
  return checks;
}

const DOUBTED = {
  level: "partial",
  headline: "Verified, an approver is unknown",
  meaning: "Complete and unchanged. The approvers file does not account for every signature of an approval.",
};

const SIGNED_VERDICTS = {
  trusted: {
    level: "good",
    headline: "Verified",
    meaning: "Complete, unchanged, and signed with a key you trust.",
  },
  "self-consistent": {
    level: "partial",
    headline: "Consistent, signer unknown",
    meaning: "It hangs together. Add a public key you trust to learn who signed it.",
  },
  unchecked: {
    level: "partial",
    headline: "Signature not checked",
    meaning: "The records hang together. Add the signer's public key to check the signature.",
  },
};

/** The verdict where an anchor fails, whatever else holds; else null. */
function againstAnchors(anchors, checks) {
  const bad = anchors?.filter((anchor) => anchor.problem !== null) ?? [];
  if (bad.length === 0) return null;
  const more = bad.length > 1 ? ` (and ${bad.length - 1} more)` : "";
  return {
    level: "bad",
    headline: "INVALID",
    meaning: "It holds in itself, but it is not what was anchored earlier.",
    problem: { text: `anchor on line ${bad[0].line}: ${bad[0].problem}${more}`, position: null },
    checks,
  };
}

function contentChecks(bundle) {
  const { members, count } = bundle;
  const checks = [{ state: "ok", text: `Every record's hash fits its content (${plural(count, "record")})` }];
  if (members.kind === "ledger") {
    checks.push(
      { state: "ok", text: "Every record names the one before it, from genesis to the head" },
      { state: "ok", text: "The tree root is that of these records, and the count is the signed one" },
    );
  } else {
    checks.push(
      {
        state: "ok",
        text: `Every record is proven to be in the signed tree of ${plural(members.tree.size, "record")}`,
      },
      { state: "ok", text: "No record of the run is missing, by its own numbering and the signed count" },
    );
  }
  return checks;
}

function anchorChecks(anchors) {
  if (anchors === null) return [];
  const good = anchors.filter((anchor) => anchor.problem === null).length;
  if (good === 0) return [];
  const checks = [{ state: "ok", text: `${plural(good, "anchor")} published earlier still fit` }];
  const kinds = new Set(anchors.map((anchor) => anchor.signature));
  if (kinds.has("unchecked"))
    checks.push({ state: "off", text: "the anchors' signatures: add the public key you trust" });
  if (kinds.has("self-consistent")) checks.push({ state: "off", text: STRANGER });
  if (kinds.has("none")) checks.push({ state: "off", text: "who made the anchors: some are not signed" });
  return checks;
}

function toProblem(finding) {
  return { text: finding.message, position: finding.position };
}

function plural(count, word) {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

// Findings put into words: one headline, what was checked, what was not, and what a reader should make of it.

const STRANGER =
  "The key was not checked against a trusted key: the signature shows only that nothing changed since somebody signed it, not who did";

/** `{level, headline, meaning, checks, problem}`; a check is `{state: "ok" | "bad" | "off", text}`. */
export function judgeLedger(ledger, anchors) {
  if (ledger.problem !== null) {
    return {
      level: "bad",
      headline: "INVALID",
      meaning: breakText(ledger),
      problem: toProblem(ledger.problem),
      checks: [
        ...(ledger.count > 0
          ? [{ state: "ok", text: `${plural(ledger.count, "record")} before it hold` }]
          : []),
        { state: "bad", text: ledger.problem.message },
      ],
    };
  }
  const checks = [
    { state: "ok", text: "Every line is the canonical form of its record" },
    { state: "ok", text: "Every record's hash fits its content" },
    { state: "ok", text: "Every record names the one before it, from genesis to the head" },
    { state: "ok", text: "No gap in the numbering of the ledger or of any run" },
    ...anchorChecks(anchors),
  ];
  if (anchors === null) {
    checks.push({
      state: "off",
      text: "Whether the end was cut off or all of it rewritten: that takes anchors or a signed bundle",
    });
  }
  const bad = anchors?.some((anchor) => anchor.problem !== null) ?? false;
  return {
    level: bad ? "bad" : "good",
    headline: bad ? "INVALID" : "The chain holds",
    meaning: bad
      ? "The chain holds in itself, but it is not what was anchored earlier."
      : "Nothing inside this ledger was changed, left out or moved.",
    problem: null,
    checks,
  };
}

export function judgeBundle(bundle, signature, anchors) {
  const failed = bundle.problem ?? signature.problem;
  if (failed !== null) {
    const contents = bundle.problem === null ? contentChecks(bundle) : [];
    return {
      level: "bad",
      headline: "INVALID",
      meaning: "This bundle is not what was signed, or never hung together.",
      problem: toProblem(failed),
      checks: [...contents, { state: "bad", text: failed.message }],
    };
  }
  const checks = [...contentChecks(bundle)];
  if (signature.state === "trusted")
    checks.push({ state: "ok", text: `Signed with key ${bundle.members.key_id}, which you trust` });
  else if (signature.state === "self-consistent") {
    checks.push(
      { state: "ok", text: `The signature of key ${bundle.members.key_id} fits` },
      { state: "off", text: STRANGER },
    );
  } else
    checks.push({
      state: "off",
      text: "The signature: the bundle carries no public key. Add the one you trust",
    });
  if (bundle.members.kind === "run" && !bundle.headTied) {
    checks.push({
      state: "off",
      text: "That the head is the ledger's last record: it is not one of this run's",
    });
  }
  checks.push(...anchorChecks(anchors));
  const badAnchor = anchors?.some((anchor) => anchor.problem !== null) ?? false;
  return { ...signedVerdict(signature.state, badAnchor), problem: null, checks };
}

function signedVerdict(state, badAnchor) {
  if (badAnchor) {
    return {
      level: "bad",
      headline: "INVALID",
      meaning: "The bundle holds in itself, but it is not what was anchored earlier.",
    };
  }
  if (state === "trusted") {
    return {
      level: "good",
      headline: "Verified",
      meaning: "Complete, unchanged, and signed with a key you trust.",
    };
  }
  if (state === "self-consistent") {
    return {
      level: "partial",
      headline: "Consistent, signer unknown",
      meaning: "It hangs together. Add a public key you trust to learn who signed it.",
    };
  }
  return {
    level: "partial",
    headline: "Signature not checked",
    meaning: "The records hang together. Add the signer's public key to check the signature.",
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
  const bad = anchors.filter((anchor) => anchor.problem !== null);
  if (bad.length > 0) {
    const more = bad.length > 1 ? ` (and ${bad.length - 1} more)` : "";
    return [{ state: "bad", text: `Anchor on line ${bad[0].line}: ${bad[0].problem}${more}` }];
  }
  const checks = [{ state: "ok", text: `${plural(anchors.length, "anchor")} published earlier still fit` }];
  const kinds = new Set(anchors.map((anchor) => anchor.signature));
  if (kinds.has("unchecked"))
    checks.push({ state: "off", text: "The anchors' signatures: add the public key you trust" });
  if (kinds.has("self-consistent")) checks.push({ state: "off", text: STRANGER });
  if (kinds.has("none")) checks.push({ state: "off", text: "Who made the anchors: some are not signed" });
  return checks;
}

function breakText(ledger) {
  if (ledger.extents.count === 0) return "There is nothing in this file.";
  const after = ledger.extents.count - ledger.count - 1;
  const rest = after > 0 ? ` The ${plural(after, "line")} after it were not judged: they build on it.` : "";
  return `It breaks at ${ledger.problem.where ?? "the file itself"}.${rest}`;
}

function toProblem(finding) {
  return { text: finding.message, position: finding.position };
}

function plural(count, word) {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

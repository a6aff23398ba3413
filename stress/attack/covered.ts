/** Attacks and bad inputs of the catalogue that a test tries already, by that test. */
export interface Covered {
  name: string;
  file: string;
  /** Part of the test's title. */
  test: string;
}

export const COVERED: readonly Covered[] = [
  {
    name: "replay of a used approval, for the same and for other arguments",
    file: "src/govern/engine.test.ts",
    test: "is asked for once, used once, and only for the same arguments",
  },
  {
    name: "approving one's own request",
    file: "src/govern/engine.test.ts",
    test: "may not be decided by the one who asked, under four_eyes",
  },
  {
    name: "approving one's own call ahead, by breaking glass, or before four eyes were turned on",
    file: "test/http/four-eyes.test.ts",
    test: "an approval of the requester, from before four eyes were turned on",
  },
  {
    name: "two votes by one person: a lender and a key of its own",
    file: "test/http/lent-authority.test.ts",
    test: "a delegator and the delegate count once, in either order",
  },
  {
    name: "a token named like the key that was lent to",
    file: "test/http/lent-authority.test.ts",
    test: "the key of that name, which a token of the same name is not",
  },
  {
    name: "authority lent by a key that is gone",
    file: "test/http/lent-authority.test.ts",
    test: "a delegation ends with its delegator's authority",
  },
  {
    name: "a body that is finished after its sender lost the role",
    file: "test/http/authority.test.ts",
    test: "is carried out with the authority of its end, not of its beginning",
  },
  {
    name: "a token's console session under a lowered role map",
    file: "test/console/modes.test.ts",
    test: "gives a token's session the role that the role map says now",
  },
  {
    name: "an index out of an older list of keys",
    file: "test/http/keys.test.ts",
    test: "by an index of an outdated list",
  },
  {
    name: "a key file that lets everybody in, and an empty login",
    file: "test/console/modes.test.ts",
    test: "knows nobody without a credential",
  },
  { name: "a flood of approval requests", file: "src/govern/engine.test.ts", test: "has a cap per run" },
  {
    name: "calls that race a halt, over four processes",
    file: "test/stress/fault.test.ts",
    test: "kills, contests, halts",
  },
  {
    name: "patterns that stall other engines",
    file: "src/rules/policy/pattern.test.ts",
    test: "do not stall on what makes other engines stall",
  },
  {
    name: "every route with every credential",
    file: "test/http/role-matrix.test.ts",
    test: "answers each role by its own table",
  },
  { name: "another agent's run", file: "test/http/role-matrix.test.ts", test: "hides another agent's run" },
  { name: "forged, stripped and misdirected tokens", file: "src/auth/oidc.test.ts", test: "a bad token" },
  {
    name: "a flood of unknown key ids",
    file: "src/auth/jwks.test.ts",
    test: "a flood of unknown key ids causes one fetch",
  },
  { name: "replayed and forged chat messages", file: "test/http/approvals.test.ts", test: "chat actions" },
  {
    name: "forms of other sites and other sessions",
    file: "test/console/modes.test.ts",
    test: "refuses every form without its session's field",
  },
  {
    name: "changes by GET",
    file: "test/console/modes.test.ts",
    test: "changes nothing on GET, wherever one looks",
  },
  {
    name: "the console under another host name",
    file: "test/console/modes.test.ts",
    test: "answers only requests to localhost",
  },
  {
    name: "a session whose key was disabled",
    file: "test/console/modes.test.ts",
    test: "sees a key that was disabled in the file within three seconds",
  },
  {
    name: "fifty clients with the same message ids",
    file: "test/gateway/security.test.ts",
    test: "never cross between fifty clients",
  },
  {
    name: "an upstream that shadows the service's tools",
    file: "test/gateway/upstreams.test.ts",
    test: "that begin with svc. are refused at the start",
  },
  {
    name: "an upstream that reads the environment",
    file: "test/gateway/upstreams.test.ts",
    test: "is the few usual variables and the configured ones",
  },
  {
    name: "an auditor at the operator's tools",
    file: "test/gateway/operator.test.ts",
    test: "checks the role of every tool",
  },
  {
    name: "three hundred spellings of addresses",
    file: "src/egress/address.test.ts",
    test: "every spelling of an address",
  },
  {
    name: "the same behind redirects, three deep",
    file: "src/egress/address.test.ts",
    test: "no socket is opened towards it",
  },
  {
    name: "names that change their address",
    file: "src/egress/guard.test.ts",
    test: "is not fooled by a name that changes its address",
  },
  {
    name: "redirects that would carry secrets",
    file: "src/egress/egress.test.ts",
    test: "does not carry a body there",
  },
  {
    name: "scripts in every field of every page, in a browser",
    file: "test/console/live.test.ts",
    test: "stays text in every field that an agent controls",
  },
  {
    name: "scripts and formulas in reports",
    file: "src/evidence/report/report.test.ts",
    test: "is inert as HTML",
  },
  {
    name: "an archive over a link, or among the service's files",
    file: "test/http/retention.test.ts",
    test: "never overwrites, never follows a link",
  },
  {
    name: "a record left out of a bundle",
    file: "src/evidence/bundles/verify-bundle.test.ts",
    test: "a bundle that was changed",
  },
  {
    name: "proofs of the wrong length, place and size",
    file: "src/evidence/bundles/verify-bundle.test.ts",
    test: "does not pass: %s",
  },
  {
    name: "files that are none, for every command",
    file: "test/cli/output.test.ts",
    test: "a file that is none",
  },
  {
    name: "wrong words on the command line",
    file: "test/cli/output.test.ts",
    test: "a mistake in the words",
  },
  {
    name: "a reader that leaves",
    file: "test/cli/foundation.test.ts",
    test: "ends quietly when its reader leaves",
  },
  {
    name: "manifests with every kind of mistake",
    file: "src/rules/manifest/problems.test.ts",
    test: "are all listed, over all files",
  },
  {
    name: "policies of an attacker",
    file: "src/rules/policy/load.test.ts",
    test: "a policy that an attacker wrote",
  },
  {
    name: "settings with every kind of mistake",
    file: "src/config/problems.test.ts",
    test: "all are reported at once, from all places",
  },
  {
    name: "an open console on every address, or as admin",
    file: "test/cli/server.test.ts",
    test: "an open console on every address",
  },
  {
    name: "key files with every kind of mistake",
    file: "src/auth/keys.test.ts",
    test: "the same hash twice, a duplicate field, every problem at once",
  },
  { name: "100,000 keys", file: "src/auth/keys.test.ts", test: "100,000 entries are read" },
  {
    name: "key files half written a thousand times",
    file: "src/auth/key-file.test.ts",
    test: "half written a thousand times under a storm of reloads",
  },
  {
    name: "signing keys of the wrong kind",
    file: "src/evidence/signing.test.ts",
    test: "of the wrong kind are named in the message",
  },
  {
    name: "anchors with every kind of mistake",
    file: "src/evidence/anchors/anchors.test.ts",
    test: "names a file without anchors",
  },
  {
    name: "plans with every kind of mistake",
    file: "test/simulate/speculate.test.ts",
    test: "are refused, all problems at once",
  },
  {
    name: "100,000 planned calls",
    file: "test/simulate/speculate.test.ts",
    test: "a hundred thousand calls are only many",
  },
  {
    name: "an upstream that takes another's tool, at run time and over a restart",
    file: "test/gateway/takeover.test.ts",
    test: "is refused it after a restart as well, and keeps nobody from starting",
  },
  {
    name: "an upstream that takes the name of one that is away",
    file: "test/gateway/takeover.test.ts",
    test: "is not passed to another",
  },
  {
    name: "values beside the arguments of an approved call",
    file: "test/gateway/side-doors.test.ts",
    test: "cannot add to a call that was approved",
  },
  {
    name: "an undo through a tool that changed",
    file: "test/gateway/pins.test.ts",
    test: "is not tried by a job over the API either",
  },
  {
    name: "an argument echoed in every spelling",
    file: "src/rules/redact/remove-values.test.ts",
    test: "are of every spelling that is found in the wild",
  },
];

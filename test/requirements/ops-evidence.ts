/** Statements of the operations document: bundles, anchors, reports, retention, legal holds. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const opsBundle = section("operations", "Bundle", {
  "ops.bundle.records": [6, "a bundle holds the ledger records of the whole ledger or of one run"],
  "ops.bundle.head": [6, "a bundle holds the ledger's head at export time"],
  "ops.bundle.signature": [6, "a bundle is signed with Ed25519 over its canonical summary and names the key's id"],
});

// biome-ignore format: one statement a line
export const opsAnchorRecord = section("operations", "Anchor", {
  "ops.anchor.one-line": [6, "an anchor is one line of JSON"],
  "ops.anchor.format": [6, "an anchor has `format` `svc-anchor` and `version` 1"],
  "ops.anchor.ts-ms": [6, "an anchor has `ts_ms` in milliseconds"],
  "ops.anchor.head": [6, "an anchor's `head` is the hash of the last record"],
  "ops.anchor.records": [6, "an anchor's `records` is the number of records in the ledger"],
  "ops.anchor.region": [6, "an anchor has `region` only when egress configures one"],
  "ops.anchor.signed-with-key": [6, "`key_id` and `signature` (Ed25519) are there with a signing key, and absent without"],
});

// biome-ignore format: one statement a line
export const opsHoldRecord = section("operations", "Legal hold", {
  "ops.hold.id-form": [8, "a hold's id has the form `hold_<uuid>`"],
  "ops.hold.scope-run": [8, "a hold may name a `run_id`"],
  "ops.hold.scope-tenant": [8, "a hold may name a `tenant`"],
  "ops.hold.scope-actor": [8, "a hold may name an `actor`"],
  "ops.hold.scope-tool": [8, "a hold's `tool` is an exact name, and covers each run in which that tool was called"],
  "ops.hold.all-fields": [8, "all given fields of a hold must match"],
  "ops.hold.no-scope-refused": [8, "a hold without a scope is refused"],
  "ops.hold.reason-length": [8, "a hold's reason has at least 5 characters"],
  "ops.hold.released-kept": [8, "released holds stay on record"],
});

// biome-ignore format: one statement a line
export const opsRetentionPolicy = section("operations", "Retention policy", {
  "ops.retention.default-days": [8, "`retention.default_days` is required and a positive integer"],
  "ops.retention.rules": [8, "`retention.rules[]` each have `match` and `days`"],
  "ops.retention.match-tool": [8, "a rule's `tool` glob is matched against the tools that the run called"],
  "ops.retention.match-tenant": [8, "a rule may match the `tenant`"],
  "ops.retention.match-environment": [8, "a rule may match the `environment`"],
  "ops.retention.match-data-class": [8, "a rule may match `data_class`, from the manifest's `risk.data_class`"],
  "ops.retention.match-all": [8, "all given fields of a rule must hold"],
  "ops.retention.longest-wins": [8, "the longest period counts: default, all rules that match, and the `audit.retention_days` of the tools called"],
  "ops.retention.off-without-section": [8, "a policy with no `retention` section deletes nothing, ever"],
});

// biome-ignore format: one statement a line
export const opsPeriodReport = section("operations", "Period report", {
  "ops.period.calls": [6, "a period report covers calls, runs and outcomes"],
  "ops.period.by-dimension": [6, "a period report breaks calls down by tool, by actor and by how reversible they are"],
  "ops.period.blocked": [6, "a period report covers blocked and would-be-blocked calls"],
  "ops.period.unmanifested": [6, "a period report covers tools called without a manifest"],
  "ops.period.approvals": [6, "a period report counts approvals requested, approved, denied, expired and escalated, and has the median time until decided"],
  "ops.period.rollbacks": [6, "a period report covers rollback results and the verification rate"],
  "ops.period.irreversible": [6, "a period report covers the irreversible actions that ran"],
  "ops.period.attention": [6, "a period report covers the runs that need attention"],
  "ops.period.budgets": [6, "a period report covers budgets near their limit"],
  "ops.period.per-day": [6, "a period report covers calls per day"],
});

// biome-ignore format: one statement a line
export const opsRetentionStates = section("operations", "States: legal hold and retention", {
  "ops.hold-state.release": [8, "releasing a hold keeps its record, and the covered runs become due again"],
  "ops.retention-state.due": [8, "due means: old enough, under no hold, and with its evidence requirement satisfied"],
  "ops.retention-state.deleted-on-apply": [8, "a due run is deleted on apply, and not before"],
  "ops.retention-state.purged-record": [8, "deleting a run appends a `purged` ledger record"],
  "ops.retention-state.decision-keep": [8, "a run that is not yet due has the decision `keep`"],
  "ops.retention-state.decision-due": [8, "a due run has the decision `due`"],
  "ops.retention-state.decision-evidence": [8, "a due run without its evidence has the decision `due; needs an evidence bundle first`"],
  "ops.retention-state.decision-held": [8, "a held run has the decision `HELD (<reason>)`"],
});

// biome-ignore format: one statement a line
export const opsEvidenceEndpoints = section("operations", "Endpoints: Evidence", {
  "ops.evidence.keygen": [6, "`svc keygen <prefix>` writes `<prefix>.key`, private, and `<prefix>.pub`"],
  "ops.evidence.bundle-whole": [6, "`svc bundle -d <dir> --key <file> --out <file>` writes a bundle of the whole ledger"],
  "ops.evidence.bundle-run": [6, "`svc bundle --run <id>` writes a single-run bundle"],
  "ops.evidence.verify-hashes": [6, "`svc verify-bundle <file>` recomputes each record's hash"],
  "ops.evidence.verify-chain": [6, "for a bundle of the whole ledger the entire chain is followed, from the first record to the head it names"],
  "ops.evidence.verify-run-links": [6, "for a bundle of one run the check covers record hashes and the links between neighbours"],
  "ops.evidence.verify-signature": [6, "`svc verify-bundle` checks the signature"],
  "ops.evidence.verify-pub": [6, "`--pub <file>` checks the signature against a trusted key"],
  "ops.evidence.verify-no-pub": [6, "lacking `--pub`, the output admits that no trusted key was compared"],
  "ops.evidence.verify-invalid": [6, "tampering with a bundle yields `INVALID` and exit code 1"],
  "ops.evidence.verify-ledger": [2, "`svc verify` verifies the ledger's chain with `-d` and `--store`"],
  "ops.evidence.verify-first-bad": [2, "`svc verify` reports the first bad record"],
  "ops.evidence.routes-signing-key": [6, "the evidence routes are served when `SVC_SIGNING_KEY` is set"],
  "ops.evidence.routes-config-key": [6, "the evidence routes are served when `signing_key:` is configured"],
  "ops.evidence.routes-404": [6, "the evidence routes are a 404 without a signing key"],
  "ops.evidence.public-key-route": [6, "`/v1/evidence/key` gives the public key"],
  "ops.evidence.report-extension": [6, "`svc report <run_id> --out <file>` picks HTML or PDF by the extension"],
  "ops.evidence.report-who": [6, "a run report tells who ran what and the step statuses"],
  "ops.evidence.report-outlook": [6, "a run report tells the rollback outlook"],
  "ops.evidence.report-trail": [6, "a run report has the whole event trail with record hashes"],
  "ops.evidence.pdf-region": [6, "the PDF names the ledger head and the region of the data"],
  "ops.evidence.pdf-a4": [6, "the PDF is text on A4 pages"],
  "ops.evidence.period-command": [6, "`svc report --since <period or date>` makes a period report"],
  "ops.evidence.period-formats": [6, "the period report's `--format` is `md`, `html` or `json`"],
  "ops.evidence.period-out": [6, "`--out <file>` writes the period report to a file"],
  "ops.evidence.period-route": [6, "`GET /v1/report?since=<period>&format=md|html|json` gives auditors the period report"],
  "ops.evidence.one-key": [6, "one key signs bundles and anchors"],
  "ops.evidence.one-key-archives": [8, "the same key signs retention archives"],
  "ops.evidence.without-tool": [6, "the ledger can be verified without `svc`, by SHA-256 over its records"],
  "ops.evidence.viewer": [6, "the browser viewer verifies a ledger"],
  "ops.evidence.python": [6, "`python -m reversi_sdk verify <ledger.jsonl>` verifies a ledger"],
});

// biome-ignore format: one statement a line
export const opsAnchoring = section("operations", "Endpoints: Anchoring", {
  "ops.anchoring.interval": [6, "`anchor.interval` is a duration and 1h by default"],
  "ops.anchoring.file-sink": [6, "`{type: file, path: <path>}` appends a line per anchor"],
  "ops.anchoring.webhook-sink": [6, "`{type: webhook, url: <url>, secret: <secret>}` posts the JSON"],
  "ops.anchoring.webhook-signed": [6, "with `secret` the body is signed in `x-svc-signature: sha256=<hmac>`"],
  "ops.anchoring.webhook-guarded": [6, "the webhook goes through the egress guard"],
  "ops.anchoring.webhook-timeout": [6, "the webhook times out after 10 s"],
  "ops.anchoring.at-start": [6, "the server anchors once at start"],
  "ops.anchoring.every-interval": [6, "the server anchors every `interval`"],
  "ops.anchoring.gateway": [6, "the gateway anchors at start and every `interval` too"],
  "ops.anchoring.failing-sink": [6, "a failing sink is logged and the other sinks still get the anchor"],
  "ops.anchor-publish.options": [6, "`svc anchor publish` takes `--file`, `--webhook`, `--secret` and `--key`"],
  "ops.anchor-publish.configured": [6, "with no sink on the command line, `svc anchor publish` goes to those in the config"],
  "ops.anchor-publish.exit-1": [6, "one failed sink is enough for `svc anchor publish` to exit 1"],
  "ops.anchor-route.admin": [6, "`POST /v1/anchor` publishes on demand and needs the admin role"],
  "ops.anchor-route.502": [6, "`POST /v1/anchor` is a 502 when delivery fails"],
  "ops.anchor-verify.ledger": [6, "`svc anchor verify <anchors file>` demands that the ledger itself verifies"],
  "ops.anchor-verify.trusted-key": [6, "an anchor not signed by the key in `--pub` fails"],
  "ops.anchor-verify.unsigned": [6, "with `--pub` an unsigned anchor is rejected"],
  "ops.anchor-verify.enough-records": [6, "the ledger must have at least as many records as were anchored"],
  "ops.anchor-verify.same-hash": [6, "the record at the anchored position must have the anchored hash"],
  "ops.anchor.truncated-message": [6, "a shortened ledger says `the ledger has <n> records but was anchored at <m>: it has been truncated`"],
  "ops.anchor.rewritten-message": [6, "a changed ledger says `history was rewritten`"],
  "ops.anchor-verify.exit-1": [6, "`svc anchor verify` exits 1 if any anchor fails"],
  "ops.anchor-verify.ok-line": [6, "each good anchor prints its time, its record count and `ok`"],
  "ops.anchoring.no-scheduler": [6, "nothing schedules reports or bundles"],
});

// biome-ignore format: one statement a line
export const opsRetentionEndpoints = section("operations", "Endpoints: Retention and legal holds", {
  "ops.retention-plan.lists": [8, "`svc retention plan` has a row per run: how old, how long kept, what is decided"],
  "ops.retention-plan.days": [8, "`--days <n>` replaces the policy's setting for that one call"],
  "ops.retention-apply.deleted-line": [8, "`svc retention apply` prints `deleted: ...` for what it deletes"],
  "ops.retention-apply.dry-run": [8, "with `--dry-run` it prints `would delete: ...` and deletes nothing"],
  "ops.retention-apply.kept-line": [8, "a run left alone gets a line `kept <run>: <reason>`"],
  "ops.retention-apply.options": [8, "`svc retention apply` takes `--days`, `--archive-dir` and `--key`"],
  "ops.hold-cli.add": [8, "a hold is added with any of `--run`, `--tenant`, `--actor`, `--tool` and a reason"],
  "ops.hold-cli.list": [8, "holds are listed, and `--all` includes the released ones"],
  "ops.hold-cli.release": [8, "a hold is released on the command line"],
  "ops.retention.only-when-asked": [8, "no timer starts retention; a person does"],
  "ops.retention.deletes-state": [8, "deletion removes the run's state"],
  "ops.retention.deletes-approvals": [8, "deletion removes the run's approval requests"],
  "ops.retention.deletes-captures": [8, "deletion removes the run's captured arguments"],
  "ops.retention.keeps-ledger": [8, "deletion leaves the ledger as it is, but for the `purged` record"],
  "ops.retention.purged-detail": [8, "the `purged` detail starts `retention: older than <n> days` and has the archive path"],
  "ops.retention.purged-notification": [8, "a `retention_purged` notification is sent"],
  "ops.retention.held-message": [8, "a held run is skipped with `legal hold <hold_id>: <reason>`"],
  "ops.retention.hold-not-on-ledger": [8, "holds leave the ledger alone"],
  "ops.retention.hold-not-for-captures": [8, "captured arguments expire on time in spite of a hold"],
  "ops.retention.archive-first": [8, "given `--archive-dir` and a key, a run is deleted only after its signed bundle lies at `<archive-dir>/<run_id>.json`"],
  "ops.retention.archive-configured-key": [8, "the archive's key may be the configured one"],
  "ops.retention.evidence-skipped": [8, "a run whose manifest requires evidence is skipped without archive directory or key, and the message says that both are needed"],
  "ops.holds-route.get": [8, "`GET /v1/holds` is for auditors, and `?all=1` includes released ones"],
  "ops.holds-route.post": [8, "`POST /v1/holds` is for admins with `run_id`, `tenant`, `actor`, `tool` and `reason`"],
  "ops.holds-route.delete": [8, "`DELETE /v1/holds/{id}` is for admins and releases"],
  "ops.retention-route.plan": [8, "`GET /v1/retention/plan` is for auditors"],
  "ops.retention-route.apply": [8, "`POST /v1/retention/apply` is for admins, takes `archive_dir` on the server's disk, and uses the server's signing key"],
  "ops.retention-route.404": [8, "with no `retention` section in the policy, these routes answer 404 `no retention settings`"],
  "ops.retention.console": [9, "the console's Settings page has legal holds (admin) and Dry run and Apply buttons"],
});

/** Statements beyond the first interface: evidence that rests on others, streams, probes, oversight. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyondCheckpoints = section("beyond", "Checkpoints and witnesses", {
  "beyond.checkpoint.form": [21, "`GET /v1/ledger/checkpoint` is a signed note: origin, size and root in base64, as C2SP tlog-checkpoint writes them"],
  "beyond.checkpoint.origin": [21, "the origin is `ledger_origin`, by default `svc/<key_id>`"],
  "beyond.checkpoint.auditor": [21, "checkpoint, consistency and inclusion need the role auditor, and are 404 without a signing key"],
  "beyond.checkpoint.consistency": [21, "`/v1/ledger/consistency` proves between any two sizes, as RFC 6962 does; a bad range is a 400"],
  "beyond.checkpoint.inclusion": [21, "`/v1/ledger/inclusion` proves any record at any size that holds it; a bad place is a 400"],
  "beyond.checkpoint.command": [21, "`svc anchor checkpoint` prints the checkpoint, also of a server"],
  "beyond.witness.sink": [21, "an anchor sink `{type: witness, url, key}` obtains a cosignature by C2SP tlog-witness"],
  "beyond.witness.recorded": [21, "a cosignature is recorded as `witnessed`, not where only `witnessed` or `probed` were added since"],
  "beyond.witness.in-bundles": [21, "bundles carry the cosigned checkpoints, and `svc verify-bundle --witness <key> --quorum <n>` checks them"],
  "beyond.witness.three-verifiers": [21, "all three verifiers check cosignatures and consistency, and agree"],
  "beyond.witness.quorum": [21, "fewer cosignatures than the quorum, or records behind what enough witnesses saw, are INVALID"],
  "beyond.witness.serve": [21, "`svc witness serve --state --key --log [--port]` cosigns what is consistent with what it cosigned before, and nothing else"],
  "beyond.witness.crash": [21, "a witness keeps its promise after it was killed"],
  "beyond.witness.power": [21, "a witness remembers what it answered wherever the power is cut in what it wrote, and cosigns no second history"],
  "beyond.witness.status-codes": [21, "a witness answers 400, 403, 404, 409 with its size, and 422, as C2SP tlog-witness says"],
  "beyond.fork.witness": [21, "a history signed with the stolen key that a witness did not see does not verify where its cosignature is demanded"],
  "beyond.fork.checkpoints": [21, "`svc anchor verify --checkpoint <file>..` finds two histories in checkpoints that different people kept, on data here and on a server"],
});

// biome-ignore format: one statement a line
export const beyondOversight = section("beyond", "Oversight", {
  "beyond.oversight.http": [21, "`GET /v1/report/oversight` takes `since`, `format` and `anonymous`, and needs the role auditor"],
  "beyond.oversight.command": [21, "`svc oversight --since <period> [--format md|html|json] [--anonymous]` prints the same report"],
  "beyond.oversight.console": [21, "the console has an oversight page with the same figures"],
  "beyond.oversight.figures": [21, "the report has requests, approve rate, median and 90th percentile of time to decide, decisions under five seconds and without the card, by approver and by rule"],
  "beyond.oversight.break-glass": [21, "the report lists break-glass decisions, and grants with what passed under them"],
  "beyond.oversight.rules": [21, "the report names rules never used, always approved and always denied"],
  "beyond.oversight.duties": [21, "the report says which duties each figure supports, and never that a law is complied with"],
  "beyond.oversight.recounted": [21, "the figures of the oversight report are those that a program written apart counts from an exported ledger"],
  "beyond.oversight.plans": [21, "each vote on a plan counts for its approver, with the card where it was sent with the hash of its cards, and so do the requests that the plan made"],
  "beyond.oversight.anonymous": [21, "with `anonymous` no approver is named"],
});

// biome-ignore format: one statement a line
export const beyondStream = section("beyond", "Stream", {
  "beyond.stream.file": [21, "`export.sinks` with `{type: file, path}` appends each record, in order"],
  "beyond.stream.webhook": [21, "`{type: webhook, url, secret}` posts records with their position, signed with the secret"],
  "beyond.stream.syslog": [21, "`{type: syslog, host, port, protocol}` sends each record over tcp or udp with its position"],
  "beyond.stream.formats": [21, "each sink has a `format`: `ocsf`, `cef` or `jsonl`"],
  "beyond.stream.caught-up": [21, "a sink that was down is caught up from the ledger, in order and without a gap, also after a restart"],
  "beyond.stream.ocsf-valid": [21, "OCSF events are valid by the published schema of their class, and carry the chain's hash"],
  "beyond.stream.severities": [33, "each ledger event has its own severity in CEF, OCSF and syslog: `contained` as `halted`, a failed drill above a passed one"],
  "beyond.stream.apart": [21, "a sink that is down holds no decision up"],
});

// biome-ignore format: one statement a line
export const beyondTraces = section("beyond", "Traces", {
  "beyond.traces.gen-ai": [21, "the span of a step follows OpenTelemetry's conventions for the execution of a tool, beside `svc.*`, without arguments or results"],
  "beyond.traces.link": [21, "the caller's `traceparent` is a span link, and the trace id stays the run's"],
});

// biome-ignore format: one statement a line
export const beyondProbe = section("beyond", "Probe", {
  "beyond.probe.lines": [21, "`svc probe` prints one line a guarantee and surface: `holds`, `BROKEN`, or `not checked` with the reason; exit code 1 for BROKEN, 2 for not checked"],
  "beyond.probe.by-what-ran": [21, "the probe judges by whether the canary really ran"],
  "beyond.probe.gateway": [21, "where upstreams are configured the probe drives a canary upstream through the gateway's whole pipeline"],
  "beyond.probe.init": [21, "`svc probe init` drafts canary manifests and rules, and overwrites nothing"],
  "beyond.probe.recorded": [21, "a probe is recorded as `probed`, raises `probe_failed` where a guarantee is broken, and its age is in `/readyz`"],
  "beyond.probe.reason": [21, "where a canary is refused for another reason than its own, the line says that reason"],
  "beyond.probe.quiet": [21, "halts of the probe are scoped to `svc-probe`, and notifications, banner and metrics leave it out"],
});

// biome-ignore format: one statement a line
export const beyondPaper = section("beyond", "Reports on paper", {
  "beyond.paper.period": [21, "a period's report is a PDF on A4 with its figures, a chart and its tables, where `format` or the file's name says so"],
  "beyond.paper.run": [21, "a run's PDF says who decided what and when, and which policy is in force"],
});

/** Containing an agent in one command; leases of background work; the state of a run. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyondContain = section("beyond", "Contain", {
  "beyond.contain.many": [17, "many runs with many steps are undone by one containment, each step once and newest first over all, with a bundle of each run that verifies"],
  "beyond.contain.route": [17, "`POST /v1/contain` is an admin's; without `confirm: true` it answers 200 `{dry_run: true, ..}` and changes nothing"],
  "beyond.contain.job": [17, "confirmed it answers 202 `{job}`, and `GET /v1/contain/{id}` shows the job with its report to an auditor"],
  "beyond.contain.several": [17, "a glob that matches several actors needs `expect_actors` with their number; another number is a 409 and nothing is done"],
  "beyond.contain.nobody": [17, "an actor that never was is a 404 that says so"],
  "beyond.contain.bad-input": [17, "a missing reason, an empty or broken glob and a `since` that is no time or in the future are 400"],
  "beyond.contain.halt-first": [17, "the halt is in force and recorded before the answer; no call of the actor is allowed after it"],
  "beyond.contain.keys": [17, "keys whose only role is agent are disabled; others are listed and stay"],
  "beyond.contain.requests": [17, "its open requests are denied, past groups and quorum"],
  "beyond.contain.delegations": [17, "delegations that name it are revoked"],
  "beyond.contain.grants": [17, "grants that name it are revoked; wider ones are listed"],
  "beyond.contain.order": [17, "the steps are: halt, keys, requests, plans, delegations and grants, rollback, bundles, and `contained` once at the end"],
  "beyond.contain.ledger-order": [17, "standing steps are rolled back across its runs newest first by ledger order"],
  "beyond.contain.since": [17, "with `since` only what was called since then is rolled back"],
  "beyond.contain.no-rollback": [17, "with `no_rollback`, or where no compensator is configured, nothing is undone and the report says what stands and why"],
  "beyond.contain.bundles": [17, "a signed bundle that verifies is written for each run; without a signing key that is said"],
  "beyond.contain.report": [17, "the report says run by run what was undone, what cannot be, and what is unknown"],
  "beyond.contain.again": [17, "killed anywhere and run again it goes on and does nothing twice; `contained` is written once"],
  "beyond.contain.settled": [17, "run again after a person settled what a containment left, it says what is left now"],
  "beyond.contain.cli": [17, "`svc contain` does it from the command line and exits 2 where something is left; `--dry-run` says it all beforehand"],
  "beyond.contain.dry-run": [17, "the dry run counts conflicts with foreign writes and states that cannot be read as left, as the containment does"],
  "beyond.contain.tool": [17, "the operator tool `svc.contain` is an admin's and needs `confirm: true`"],
  "beyond.contain.console": [17, "the console has a button that shows the dry run, asks, contains and shows the report"],
  "beyond.contain.once": [33, "two servers that are asked to contain one agent at once record one containment, also over a slow link to the database"],
  "beyond.contain.means": [33, "the dry run lists the undos that nothing here can run, with the reason, and does not count them as undone"],
  "beyond.contain.linked": [33, "the console links a containment's report from its runs, its halt, the alerts and the evidence page"],
  "beyond.contain.period": [33, "the period report names halts and containments"],
  "beyond.contain.by-hand": [17, "keys stay disabled and the halt stays in force until a person lifts them"],
});

// biome-ignore format: one statement a line
export const beyondLease = section("beyond", "Leases", {
  "beyond.lease.own-clock": [33, "a process takes a lease over only after it has itself seen it unchanged for its whole length by its monotonic clock; the time of day of holder and taker does not matter"],
  "beyond.lease.stores": [33, "so it is on every store: while a rollback is under way, a process with another time of day does not run an undo a second time"],
  "beyond.lease.left-behind": [33, "a lease that a dead process left is taken over in the end"],
  "beyond.lease.cut-off": [33, "a holder that cannot renew its lease stops its work before another process may take over"],
  "beyond.lease.wait": [33, "`svc rollback` waits for the lease of a silent holder and says so; a holder that shows life is a conflict"],
  "beyond.lease.given-back": [33, "a process that stops gives back every lease it holds, so that an export continues at once after a restart, with each record once"],
});

// biome-ignore format: one statement a line
export const beyondRunState = section("beyond", "State of a run", {
  "beyond.run-state.field": [33, "wherever runs are listed each has `state`: `needs attention`, `open` or `settled`"],
  "beyond.run-state.left": [33, "a run whose last rollback left a step alone (conflict, deferred, unverified) needs attention until a later rollback settles it"],
  "beyond.run-state.undo-approval": [37, "a run needs attention from the request for an undo until the undo is done or a person denies it"],
  "beyond.run-state.rollback": [33, "a run with an unfinished rollback needs attention"],
  "beyond.run-state.open": [33, "a run with an intended step, an open request or plan, or a call in the last 30 minutes is open"],
  "beyond.run-state.exit": [33, "`svc runs --attention` exits 2 where it lists a run, else 0"],
  "beyond.run-state.everywhere": [37, "the API, the command line and the console's list, filter, agent page and run page say the same state of each run, and exit codes follow it"],
  "beyond.run-state.paper": [33, "a run's report does not say that a step in conflict can be undone"],
});

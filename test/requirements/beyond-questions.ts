/** Fewer and better questions: grants, plans, floods. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyondGrants = section("beyond", "2. Fewer and better questions: grants", {
  "beyond.grant.fields": [18, "a grant is `{id: grt_<uuid>, match: {tool, actor, tenant, environment}, rules, when, max_uses, budget, irreversible, reason, by, created_ms, expires_ms, uses, spent, revoked_ms}`"],
  "beyond.grant.routes": [18, "`POST /v1/grants` answers 201 with the grant, `GET /v1/grants` `{grants, next_cursor}`, `DELETE /v1/grants/{id}` the revoked one"],
  "beyond.grant.limits": [18, "a grant lasts at most 30 days and covers at most 1,000 uses; more is a 400"],
  "beyond.grant.named": [18, "`match.tool` and `match.actor` are required and not `*`"],
  "beyond.grant.not-wider": [18, "what the giver could not decide alone (groups, quorum, an unknown rule, irreversible calls without being an admin) is a 400"],
  "beyond.grant.use": [18, "a covered call is allowed, and `approved` by the engine with detail `used grant <id> (<n> of <max>)` stands before its `intended`"],
  "beyond.grant.only-named-rules": [18, "another rule, a content check, a limit or the risk threshold still asks"],
  "beyond.grant.moment-of-use": [18, "at use the giver's key must be valid, its role and groups enough, the quorum one, and lent authority still in force"],
  "beyond.grant.stricter-policy": [18, "a policy that became stricter meanwhile is not lifted by a grant given before"],
  "beyond.grant.four-eyes": [18, "under four eyes lent authority of the run's own actor does not stand in"],
  "beyond.grant.own-run": [18, "a grant never covers its giver's own run"],
  "beyond.grant.budget": [18, "a budget value that is missing, negative or no number is not covered, and the sum never goes over `max`"],
  "beyond.grant.when": [18, "only calls for which every condition in `when` holds are covered"],
  "beyond.grant.when-values": [18, "values in `when` are shown to approvers only, and never recorded"],
  "beyond.grant.revoke": [18, "the giver or an admin revokes; a revoked, expired or used up grant covers nothing"],
  "beyond.grant.irreversible": [18, "irreversible calls are covered only by a grant that says so and whose giver is an admin"],
  "beyond.grant.last-use": [18, "the last use is used once, whatever number of processes contend for it"],
  "beyond.grant.open-request": [18, "a request that was open for the call ends when a grant covers it"],
  "beyond.grant.preview": [18, "`POST /v1/grants/preview` answers `{calls, covered, rules}` over the last captured calls; 404 `capture is off`"],
  "beyond.grant.command": [18, "`svc grants add|list|revoke|preview`, on local data and on a server"],
  "beyond.grant.console": [18, "the console lists, gives, previews and revokes grants, and a card offers `Approve, and the next ones like this`, filled in from the call"],
  "beyond.grant.console-whole": [18, "a form for a grant that is not right is a 400 that decides and gives nothing, a limit that is half filled in included; it is not offered where the person could not give that grant"],
  "beyond.grant.like-call": [33, "the form for the next ones starts from the call: a quantity at most its value and within a budget of it, every other argument equal, no other arguments, 3 uses, 1 hour"],
  "beyond.grant.like-call-sentence": [33, "the form says in one sentence what would be allowed; a grant that the sentence does not say is shown first, and only then given"],
  "beyond.grant.like-call-masked": [33, "an argument whose value is masked or not kept is covered only once the approver says any value; until then nothing is approved or granted"],
  "beyond.grant.other-args": [33, "`args_only` lists the arguments that a covered call may have; a call with any other is not covered"],
  "beyond.grant.no-tenant": [33, "an empty `match.tenant` or `match.environment` covers only runs that name none"],
  "beyond.grant.no-values-recorded": [33, "the record of a grant names the path of its budget and not its sum"],
  "beyond.grant.sandbox": [18, "impact and speculation answer as the grants in force would, and a simulation believes the grants that history used"],
});

// biome-ignore format: one statement a line
export const beyondPlans = section("beyond", "2. Fewer and better questions: plans", {
  "beyond.plan.propose": [18, "`POST /v1/runs/{id}/plans` answers 201 `{id: pln_<uuid>, status, calls: [{decision, reasons, risk_score}], fully_reversible, irreversible, residue}`, judged as speculation judges"],
  "beyond.plan.refused-ends": [18, "a planned call that is refused ends the plan, also where a person could approve it"],
  "beyond.plan.refused-at-once": [18, "a plan with a call that is refused is denied before it began, and says which call it was"],
  "beyond.plan.refused-denied": [33, "a plan with a call that would be blocked is 201 with `status: denied` and the reasons on its calls; nobody is asked, and it counts as no open request"],
  "beyond.plan.refused-records": [33, "such a plan is recorded as `plan_proposed`, then `plan_denied` by the engine"],
  "beyond.plan.refused-live": [33, "a plan is judged on its run: scope, the key's cap, halts, counters, standing calls and prerequisites that the run or the plan satisfies"],
  "beyond.plan.refused-modes": [33, "a plan is judged as enforce would judge it in every mode; calls of an observe or advise run stay free"],
  "beyond.plan.refused-surfaces": [33, "agent tool, library and console show a plan that was denied at once, with its reasons"],
  "beyond.plan.tenant": [23, "deciding a plan of another tenant is a 404 that tells nothing of it"],
  "beyond.plan.quota": [23, "a plan that waits counts against the quota of open approvals"],
  "beyond.flood.plans": [18, "plans count as requests of their actor, and past the flood are told in the digest unless they hold what nothing takes back"],
  "beyond.plan.bounded": [18, "at most 20 plans of a run are under way, decided or not; the next is a 409 that says what to do"],
  "beyond.plan.notifies": [17, "a proposed plan that waits is notified like a request, with tools and argument names only"],
  "beyond.plan.decide": [18, "one decision makes a single-use approval for each call that needs one, for exactly its arguments; a second is a 409"],
  "beyond.plan.order": [18, "the approvals are usable in the plan's order only; a call out of order is not covered and changes nothing"],
  "beyond.plan.ends": [18, "a planned call that is refused or fails ends the plan, and what is left is not covered; so do a denial and the plan's expiry"],
  "beyond.plan.vote": [18, "the decision is the decider's one vote under each call's own groups, quorum and four eyes"],
  "beyond.plan.cards": [18, "deciders see the cards of the calls that they may decide, and no value of the others; a `card_hash` over all that is no longer current is a 409"],
  "beyond.plan.cards-surfaces": [18, "each decider sees the cards that are theirs, and no value of the others, in the console and with `svc plans show` and `svc approvals show`"],
  "beyond.plan.events": [18, "`plan_proposed`, `plan_approved` and `plan_denied` stand on the ledger, without argument values"],
  "beyond.plan.withdraw": [18, "the run's principal withdraws its plan: `status: expired`, `note: withdrawn`, ledger `approval_expired`; 409 when it has ended"],
  "beyond.plan.tools": [18, "an agent proposes with `svc.propose_plan`; operator tools show, approve and deny"],
  "beyond.plan.command": [18, "`svc plans list|show|approve|deny`"],
  "beyond.plan.library": [18, "`run.propose(calls)`"],
  "beyond.plan.console": [18, "the console lists plans, shows each call's card to whoever decides, and decides with the hash that was shown"],
  "beyond.plan.400": [18, "a cycle and more than 100 calls are a 400"],
});

// biome-ignore format: one statement a line
export const beyondFloods = section("beyond", "2. Fewer and better questions: floods", {
  "beyond.flood.policy": [18, "`approvals.flood: {max, window}` in the policy; anything else there is refused"],
  "beyond.flood.digest": [18, "past it an actor's requests still open, and people get one digest a window instead of a message each; other actors keep theirs"],
  "beyond.flood.irreversible-told": [18, "an irreversible call is never only in a digest"],
  "beyond.flood.alert": [18, "alert `approval_flood` stands as long as an actor is past it"],
  "beyond.flood.command": [18, "the command line groups what has the same actor, tool and rule: `svc approvals list --group`"],
  "beyond.flood.group": [18, "a group is decided at once, each request with its own record and its own `card_hash`"],
  "beyond.flood.irreversible-alone": [18, "an irreversible call is never decided in a group"],
  "beyond.flood.table": [33, "a group is a table: arguments that are equal once, those that differ as columns, rows with unusual values first and marked"],
  "beyond.flood.unusual": [33, "unusual is a number far from the median, a rare value, a rare type, a rare absence or a text of unusual length"],
  "beyond.flood.confirm": [33, "a group is decided after a confirmation that repeats how many there are and the range of their values, in the console without scripts too"],
  "beyond.flood.confirm-command": [33, "the command line shows the same table and decides a group only with the number of its requests or `--yes`"],
  "beyond.flood.bounded": [33, "one confirmation decides the requests that its page lists, at most 100, and says how many are left"],
  "beyond.flood.values": [33, "the values of a group are shown only to those who may decide it"],
  "beyond.flood.marks": [33, "a group says its highest risk and that its calls are irreversible"],
  "beyond.flood.list": [33, "past the flood `svc approvals list` has one line for each group of the actor's open requests; `--no-group` lists each"],
  "beyond.flood.console": [18, "the console groups what has the same actor, tool and rule, with buttons that decide the group"],
});

// biome-ignore format: one statement a line
export const beyondOversightFloods = section("beyond", "2. Fewer and better questions: oversight", {
  "beyond.oversight.group": [33, "the oversight report counts decisions in a group separately, by approver and by rule, and as decided without opening the card"],
  "beyond.oversight.group-record": [33, "a decision in a group says so on the ledger, before the note, so that no note can say it"],
  "beyond.oversight.linked": [33, "the Approvals pages and the Evidence page lead to the oversight page"],
  "beyond.forms.role-first": [33, "a form of the console asks for the role before it reads anything that was sent: 403 to a lower role, whatever is missing, unknown or not confirmed"],
  "beyond.forms.role-first-http": [33, "deciding over HTTP asks for the role before it checks the body"],
});

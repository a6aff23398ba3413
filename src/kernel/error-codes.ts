/**
 * Every cause of an expected failure has its own code here, so that a program need not read the message. A cause belongs to
 * one kind of failure, which alone decides the HTTP status, the exit code and the JSON-RPC code (`ERRORS`).
 */

/** The kind, one of `ERRORS`; when it is answered; and what a program that meets it does. */
const cause = <Kind extends string>(kind: Kind, when: string, to_do: string) => ({ kind, when, to_do });

const REREAD = "Read it again, and decide on what it says now.";
const NOTHING_LEFT = "Do nothing: it has what you asked for, or another caller was faster.";

/** The code of a failure whose cause has no other one is the name of its kind. */
// biome-ignore format: one cause a line
const KINDS = {
  invalid: cause("invalid", "The request is not one that the route takes.", "Correct the field that the message names."),
  unauthenticated: cause("unauthenticated", "The credential is missing or no longer counts.", "Get a new credential; do not repeat with this one."),
  forbidden: cause("forbidden", "This credential may not do that.", "Use a credential that may, or ask a person."),
  not_found: cause("not_found", "There is no such thing, or it is not there for this credential.", "Check the id; do not repeat."),
  not_enabled: cause("not_enabled", "The feature is off on this server.", "Do without it; the message names the setting."),
  conflict: cause("conflict", "The state forbids it; only a server of another version answers without a closer cause.", "Read the state again."),
  too_large: cause("too_large", "The body is over 1 MB.", "Send less; the connection is closed."),
  unsupported_media: cause("unsupported_media", "The body is not plain JSON.", "Send `application/json` without compression."),
  too_many: cause("too_many", "A quota or a bound is used up.", "Wait as long as `Retry-After` says, then repeat."),
  delivery_failed: cause("delivery_failed", "Another system refused or did not answer.", "Check the destination, then repeat."),
  unavailable: cause("unavailable", "The store or another part cannot answer now; nothing was recorded unless the message says so.", "Repeat with the same Idempotency-Key, at growing intervals."),
  corrupt: cause("corrupt", "Stored data is damaged.", "Stop, and tell a person: `svc verify` says where."),
} as const;

// biome-ignore format: one cause a line
const CONFLICTS = {
  already_decided: cause("conflict", "The request was decided before.", "Read its status; a new call opens a new request."),
  request_expired: cause("conflict", "The request's time to live is over.", "Ask for the call again."),
  already_voted: cause("conflict", "This person, or the authority they would use, counts in the request already.", "Leave it to another person."),
  card_changed: cause("conflict", "The card is no longer the one whose `card_hash` was sent.", REREAD),
  card_gone: cause("conflict", "The card can no longer be shown.", REREAD),
  request_not_open: cause("conflict", "The named request does not wait for a decision.", "Name one that waits."),
  offer_already_asked: cause("conflict", "An open or approved request asks for just the offered arguments.", "Decide that request, and deny this one without an offer."),
  delegation_revoked: cause("conflict", "The delegation was revoked before.", NOTHING_LEFT),
  grant_revoked: cause("conflict", "The grant was revoked before.", NOTHING_LEFT),
  grants_alike: cause("conflict", "Too many grants for tools and actors like these are in force.", "Revoke some, or wait until they end."),
  plan_decided: cause("conflict", "The plan was decided before.", "Read its status."),
  plan_ended: cause("conflict", "The plan has ended.", "Propose another."),
  plan_expired: cause("conflict", "The plan's time is over.", "Propose it again."),
  plan_undecidable: cause("conflict", "No call of the plan needs a decision.", "Make its calls."),
  plans_under_way: cause("conflict", "The run has as many plans under way as it may have.", "Withdraw one first."),
  run_exists: cause("conflict", "The run id is taken.", "Choose another id, or leave it out."),
  run_of_another: cause("conflict", "Another principal opened the run.", "Continue a run of your own."),
  run_growing: cause("conflict", "The run takes new steps faster than they can be undone.", "Halt its agent, then repeat."),
  scope_seal_mismatch: cause("conflict", "The stored scope of the run was changed.", "Stop, and tell a person."),
  name_taken: cause("conflict", "Something has this name or key already.", "Choose another."),
  outcome_reported: cause("conflict", "The step's outcome was reported before.", "Keep the first report; a retry takes the same Idempotency-Key."),
  step_not_resolvable: cause("conflict", "Only an intended or uncertain step can be resolved.", "Read the step."),
  idempotency_key_reused: cause("conflict", "The Idempotency-Key was used with another request.", "Repeat that request as it was, or take a new key."),
  already_compensated: cause("conflict", "The step is undone, or has nothing to undo.", NOTHING_LEFT),
  not_compensable: cause("conflict", "The step cannot be undone; the message says why.", "Leave it, and report it as it is."),
  compensation_not_begun: cause("conflict", "No compensation of the step is under way.", "Begin it first."),
  compensation_of_another: cause("conflict", "Another worker began the compensation, or took it over.", "Leave it to that worker."),
  compensation_lost: cause("conflict", "What the compensation was made of is no longer there.", "Ask an operator."),
  compensation_denied: cause("conflict", "The policy denies the undo's tool to the run's own agent.", "Ask an operator to roll the run back."),
  not_its_turn: cause("conflict", "Steps that depend on this one still stand (`blocked_by` in `svc-facts`).", "Undo those first."),
  approval_required: cause("conflict", "The undo waits for an approval (`approval_id` in `svc-facts`).", "Repeat after it is approved."),
  read_first: cause("conflict", "The undo needs what is there now (`read_first` in `svc-facts` names the tool).", "Read it, and send it as `current`."),
  written_since: cause("conflict", "What is there is not what the call left; another writer changed it.", "Leave it, or ask an operator to overwrite it."),
  not_readable_here: cause("conflict", "What would be overwritten cannot be read from here.", "Overwrite where it can be read."),
  plan_outdated: cause("conflict", "What is there now is not what the plan showed (`current_hash`).", REREAD),
  agent_halted: cause("conflict", "A halt covers the agent whose run it is.", "Stop; an operator can roll the run back."),
  job_running: cause("conflict", "Such a job is under way already.", "Wait until it has ended; read its progress."),
  job_taken_over: cause("conflict", "Another worker took the job over.", "Leave it to that worker."),
  job_failed: cause("conflict", "The job broke off.", "Run it again: it continues where it stopped."),
  containment_differs: cause("conflict", "A containment with other options is under way.", "Wait until it has ended."),
  actors_differ: cause("conflict", "The number of matched actors is not `expect_actors`.", "Look at the dry run, and send its number."),
  last_admin: cause("conflict", "It is the last enabled admin key.", "Make another admin first."),
  key_moved: cause("conflict", "The index may mean another key by now.", "List the keys again, or send `If-Match`."),
  key_file_unreadable: cause("conflict", "The key file does not load, so it cannot be edited.", "Correct the file."),
  key_file_busy: cause("conflict", "Another edit of the key file is under way.", "Repeat in a moment."),
  config_not_loaded: cause("conflict", "The saved configuration does not load; the old one stays in force.", "Correct what the message names, and reload."),
  version_exists: cause("conflict", "The registry has this version already.", "Publish it under a new version."),
  version_state: cause("conflict", "No version is in the state that this step needs.", "Read the registry."),
  policy_active: cause("conflict", "This policy version is active already.", NOTHING_LEFT),
  registry_changed: cause("conflict", "The registry was changed meanwhile.", REREAD),
  claim_refuted: cause("conflict", "A claim of the policy has a counterexample.", "Correct the rules or the claim."),
  hold_released: cause("conflict", "The legal hold was released before.", NOTHING_LEFT),
  archive_unusable: cause("conflict", "What is at the archive's path is not a sound archive.", "Move it away; it is made again."),
  file_exists: cause("conflict", "The file is there already, and is not overwritten.", "Choose another path."),
  file_changed: cause("conflict", "The file was changed since.", "Compare it with the copy that the message names."),
  stream_open: cause("conflict", "The gateway's session has an event stream already.", "Use that stream."),
  sign_in_used: cause("conflict", "This sign-in was used already.", "Sign in again."),
} as const;

// biome-ignore format: one cause a line
const OTHERS = {
  role_required: cause("forbidden", "The route needs a role that the credential does not have.", "Use a credential with that role."),
  tenant_bound: cause("forbidden", "The credential is bound to one tenant.", "Use one that is not, or stay within the tenant."),
  own_request: cause("forbidden", "Nobody decides their own request under four eyes.", "Leave it to another person."),
  group_required: cause("forbidden", "The request is for members of certain groups.", "Leave it to one of them."),
  run_owner_only: cause("forbidden", "Only the principal that opened the run, or asked, may do that.", "Use that principal's credential."),
  giver_only: cause("forbidden", "Only the person who gave it, or an admin, may revoke it.", "Ask one of them."),
  permissions_exceed_cap: cause("forbidden", "The permissions are more than the key's `max_permissions`.", "Ask for fewer."),
  observe_not_allowed: cause("forbidden", "The mode needs a key with `allow_observe`.", "Open the run in `enforce` mode."),
  authority_lost: cause("forbidden", "The person who started the work no longer may.", "Another operator can continue it."),
  origin_refused: cause("forbidden", "The Host or Origin header is not one that this server answers.", "Call it by its own address."),
  unknown_run: cause("not_found", "No such run, or another agent's.", "Check the id; do not repeat."),
  unknown_step: cause("not_found", "The run has no such step.", "Read the run."),
  unknown_approval: cause("not_found", "No such request, or it is not for this credential.", "Check the id; retention may have deleted it."),
  unknown_plan: cause("not_found", "No such plan, or another agent's.", "Check the id."),
  unknown_grant: cause("not_found", "No such grant.", "List the grants."),
  unknown_delegation: cause("not_found", "No such delegation.", "List the delegations."),
  unknown_halt: cause("not_found", "No such halt is in force.", "List the halts."),
  unknown_hold: cause("not_found", "No such legal hold.", "List the holds."),
  unknown_key: cause("not_found", "No key has this index.", "List the keys."),
  unknown_version: cause("not_found", "The registry has no such version.", "Read the registry."),
  unknown_job: cause("not_found", "No such job.", "Start one first."),
  unknown_session: cause("not_found", "The gateway does not know the session.", "Initialize a new one."),
  unknown_route: cause("not_found", "There is no such route.", "See `GET /openapi.json`."),
  not_json: cause("invalid", "The body is not strict JSON.", "Correct it; the connection is closed."),
  not_http: cause("invalid", "The request is not valid HTTP/1.1.", "Correct the client; the connection is closed."),
  may_be_recorded: cause("unavailable", "The store did not say in time whether it was recorded.", "Look before you repeat it, or repeat with the same Idempotency-Key."),
  egress_refused: cause("delivery_failed", "The egress rules refuse the destination.", "Change the rules or the destination."),
  server_stopping: cause("unavailable", "The server is stopping.", "Repeat on a new connection."),
} as const;

export const ERROR_CAUSES = { ...KINDS, ...CONFLICTS, ...OTHERS };

export type CauseCode = keyof typeof ERROR_CAUSES;
export type ConflictCause = keyof typeof CONFLICTS;

/** The code of a failure that was not expected. */
export const INTERNAL_CODE = "internal";

export function isCauseCode(name: string): name is CauseCode {
  return Object.hasOwn(ERROR_CAUSES, name);
}

/**
 * Cause codes of expected failures, so that programs need not parse messages. Each cause belongs to one kind of failure
 * (`ERRORS`). The kind alone decides the HTTP status, the exit code and the JSON-RPC code.
 */

/** The kind (one of `ERRORS`), when the service returns the code, and how a program should react. */
const cause = <Kind extends string>(kind: Kind, when: string, to_do: string) => ({ kind, when, to_do });

const REREAD = "Read it again, then decide on the new content.";
const NOTHING_LEFT = "Do nothing. It is already in the state that you asked for.";

/** A failure without a specific cause has the name of its kind as its code. */
// biome-ignore format: one cause a line
const KINDS = {
  invalid: cause("invalid", "The path, the query or the body is invalid.", "Correct the field that the message names."),
  unauthenticated: cause("unauthenticated", "The credential is missing, invalid or expired.", "Send a valid key or token. Do not retry with this one."),
  forbidden: cause("forbidden", "The credential does not permit this.", "Use a credential with the required role, or ask your administrator."),
  not_found: cause("not_found", "It does not exist, or this credential cannot see it.", "Check the id. Do not retry."),
  not_enabled: cause("not_enabled", "The feature is off on this server.", "Ask your administrator to enable it; the message names the setting."),
  conflict: cause("conflict", "The current state does not permit this.", "Read the state again, then decide."),
  too_large: cause("too_large", "The body is over 1 MB.", "Send a smaller body on a new connection."),
  unsupported_media: cause("unsupported_media", "The body is not plain JSON.", "Send `application/json` without compression."),
  too_many: cause("too_many", "A quota or a limit is used up.", "Wait for the seconds in `Retry-After`, then retry."),
  delivery_failed: cause("delivery_failed", "Another system refused the request or did not answer.", "Check the destination, then retry."),
  unavailable: cause("unavailable", "The store or another component is not available. Nothing was recorded, unless the message mentions it.", "Retry with the same Idempotency-Key, at growing intervals."),
  corrupt: cause("corrupt", "Stored data is damaged.", "Stop and notify an operator; `svc verify` finds the damage."),
} as const;

// biome-ignore format: one cause a line
const CONFLICTS = {
  already_decided: cause("conflict", "The request is already decided.", "Read its status. To ask again, make the call again."),
  request_expired: cause("conflict", "The request expired.", "Make the call again to open a new request."),
  already_voted: cause("conflict", "This person, or the person they act for, already voted.", "Ask another person to decide."),
  card_changed: cause("conflict", "The card changed since you read it; its `card_hash` differs.", REREAD),
  card_gone: cause("conflict", "The data of the card was deleted.", REREAD),
  request_not_open: cause("conflict", "The request is not pending.", "Choose a pending request."),
  offer_already_asked: cause("conflict", "Another request for the offered arguments is open or approved.", "Decide that request. Deny this one without an offer."),
  delegation_revoked: cause("conflict", "The delegation is already revoked.", NOTHING_LEFT),
  grant_revoked: cause("conflict", "The grant is already revoked.", NOTHING_LEFT),
  grants_alike: cause("conflict", "Too many grants for similar tools and actors are active.", "Revoke some, or wait until they expire."),
  plan_decided: cause("conflict", "The plan is already decided.", "Read its status."),
  plan_ended: cause("conflict", "The plan has ended.", "Propose a new plan."),
  plan_expired: cause("conflict", "The plan expired.", "Propose the plan again."),
  plan_undecidable: cause("conflict", "No call of the plan needs a decision.", "Make the calls without a plan."),
  plans_under_way: cause("conflict", "The run has reached its limit of open plans.", "Withdraw an open plan first."),
  run_exists: cause("conflict", "The run id is already used.", "Choose another id, or leave it out."),
  run_of_another: cause("conflict", "Another principal opened the run.", "Use your own run."),
  run_growing: cause("conflict", "The run gets new steps faster than the rollback undoes them.", "Halt the agent, then retry."),
  scope_seal_mismatch: cause("conflict", "The stored scope of the run was changed.", "Stop and notify an operator."),
  name_taken: cause("conflict", "The name or the key is already in use.", "Choose another name or key."),
  outcome_reported: cause("conflict", "The outcome of the step is already reported.", "Keep the first report. For a retry, send the same Idempotency-Key."),
  step_not_resolvable: cause("conflict", "Only an intended or uncertain step can be resolved.", "Read the step for its current status."),
  idempotency_key_reused: cause("conflict", "The Idempotency-Key was used with another request.", "Send the first request unchanged, or use a new key."),
  already_compensated: cause("conflict", "The step is undone, or has nothing to undo.", NOTHING_LEFT),
  not_compensable: cause("conflict", "The step cannot be undone; the message says why.", "Do not retry. Report the step as not undone."),
  compensation_not_begun: cause("conflict", "No compensation of the step is in progress.", "Begin the compensation first."),
  compensation_of_another: cause("conflict", "Another worker has the compensation.", "Stop; the other worker continues."),
  compensation_lost: cause("conflict", "The data for the compensation was deleted.", "Ask an operator to undo the step by hand."),
  compensation_denied: cause("conflict", "The policy denies the undo's tool to the run's own agent.", "Ask an operator to roll the run back."),
  not_its_turn: cause("conflict", "Steps that depend on this one are not undone yet (`blocked_by` in `svc-facts`).", "Undo the steps in `blocked_by` first."),
  approval_required: cause("conflict", "The undo requires approval (`approval_id` in `svc-facts`).", "Retry after the approval."),
  read_first: cause("conflict", "The undo needs the current state (`read_first` in `svc-facts` names the tool).", "Read it with that tool, and send the result as `current`."),
  written_since: cause("conflict", "Another writer changed the resource since the call.", "Keep the change, or ask an operator to overwrite it."),
  not_readable_here: cause("conflict", "This server cannot read the state to overwrite.", "Use a server or worker that can read the resource."),
  plan_outdated: cause("conflict", "The current state differs from the plan (`current_hash`).", REREAD),
  agent_halted: cause("conflict", "The agent of the run is halted.", "Stop. An operator can roll back the run."),
  job_running: cause("conflict", "Such a job is already running.", "Read its progress, and wait until it ends."),
  job_taken_over: cause("conflict", "Another worker has the job.", "Stop; the other worker continues."),
  job_failed: cause("conflict", "The job stopped before its end.", "Start it again; it continues at the same point."),
  containment_differs: cause("conflict", "A containment with other options is running.", "Wait until it ends."),
  incident_closed: cause("conflict", "The incident is closed.", "Nothing to do; the next event opens another incident."),
  incident_full: cause("conflict", "The incident has the maximum number of entries.", "Close it, and write in the next one."),
  actors_differ: cause("conflict", "The number of matched actors is not `expect_actors`.", "Check the dry run, and send its number of actors."),
  last_admin: cause("conflict", "It is the last enabled admin key.", "Create another admin key first."),
  key_moved: cause("conflict", "The key list changed since you read it.", "List the keys again, or send `If-Match`."),
  key_file_unreadable: cause("conflict", "The key file does not load, so it cannot be edited.", "Correct the key file on the server."),
  key_file_busy: cause("conflict", "Another edit of the key file is in progress.", "Retry in a moment."),
  config_not_loaded: cause("conflict", "The saved configuration does not load; the old one stays active.", "Correct the setting that the message names, then reload."),
  version_exists: cause("conflict", "The registry already has this version.", "Choose a new version."),
  version_state: cause("conflict", "No version is in the required state.", "Read the registry for the current versions."),
  policy_active: cause("conflict", "The policy version is already active.", NOTHING_LEFT),
  registry_changed: cause("conflict", "The registry has changed since you read it.", REREAD),
  claim_refuted: cause("conflict", "A claim of the policy has a counterexample.", "Correct the rules or the claim."),
  hold_released: cause("conflict", "The legal hold is already released.", NOTHING_LEFT),
  archive_unusable: cause("conflict", "The file at the archive's path is not a valid archive.", "Move the file; the next run writes a new archive."),
  file_exists: cause("conflict", "The file exists and is not overwritten.", "Choose another path."),
  file_changed: cause("conflict", "The file changed since you read it.", "Compare it with the copy that the message names, then retry."),
  stream_open: cause("conflict", "The gateway's session has an event stream already.", "Use the open stream."),
  challenge_used: cause("conflict", "The challenge is unknown, used or expired.", "Ask for a new challenge, and sign it."),
  signature_stale: cause("conflict", "The signed content changed since.", "Review it again, then sign a new challenge."),
  code_differs: cause("conflict", "The code is not the passkey's.", "Compare the code on the person's screen again."),
  passkeys_full: cause("conflict", "The person has the maximum number of passkeys.", "Revoke one first."),
  push_full: cause("conflict", "The person has the maximum number of devices.", "Remove one first."),
  passkey_not_pending: cause("conflict", "The passkey is active already, or has ended.", "List the passkeys."),
  passkey_revoked: cause("conflict", "The passkey is revoked already.", NOTHING_LEFT),
  link_used: cause("conflict", "The link is used or expired.", "Ask for a new link: make the call again, or use `svc upstreams connect`."),
  sign_in_used: cause("conflict", "The sign-in is already used.", "Sign in again."),
} as const;

// biome-ignore format: one cause a line
const OTHERS = {
  role_required: cause("forbidden", "The route needs a role that the credential does not have.", "Use a credential with that role."),
  tenant_bound: cause("forbidden", "The credential is bound to one tenant.", "Use a credential without a tenant, or stay within the tenant."),
  own_request: cause("forbidden", "You cannot decide your own request.", "Ask another person to decide."),
  passkey_required: cause("forbidden", "The decision needs a signature of your passkey.", "Open the link in the console, and sign there."),
  passkey_needs_person: cause("forbidden", "Only people who sign in with their key or token have passkeys.", "Sign in with your own credential."),
  push_needs_person: cause("forbidden", "Only people who sign in with their key or token get push messages.", "Sign in with your own credential."),
  own_passkey: cause("forbidden", "You cannot confirm your own passkey with its code.", "Ask another admin, or sign with an active passkey."),
  group_required: cause("forbidden", "The request needs a member of certain groups.", "Ask a member of those groups."),
  run_owner_only: cause("forbidden", "Only the principal that opened the run or made the request can do this.", "Use the credential of that principal."),
  giver_only: cause("forbidden", "Only the person who created it, or an admin, can revoke it.", "Ask that person or an admin."),
  permissions_exceed_parent: cause("forbidden", "The permissions are more than those of the parent run.", "Request permissions that the parent run has."),
  permissions_exceed_cap: cause("forbidden", "The permissions are more than the key's `max_permissions`.", "Request fewer permissions."),
  observe_not_allowed: cause("forbidden", "The mode needs a key with `allow_observe`.", "Open the run in `enforce` mode."),
  may_sandbox_required: cause("forbidden", "The key cannot open a run for a confined command.", "Use a key with `may_sandbox`, which only the launcher has."),
  may_give_required: cause("forbidden", "The key cannot give texts to a run.", "Use a key with `may_give`, which an agent's adapter or hook has."),
  authority_lost: cause("forbidden", "The person who started the work lost the authority.", "Another operator can continue it."),
  origin_refused: cause("forbidden", "The server does not accept this Host or Origin header.", "Use the URL of the server."),
  unknown_run: cause("not_found", "The run does not exist, or belongs to another agent.", "Check the id. Do not retry."),
  unknown_step: cause("not_found", "The run does not have this step.", "Read the run for its steps."),
  unknown_approval: cause("not_found", "The request does not exist, or this credential cannot see it.", "Check the id. Retention can have deleted the request."),
  unknown_plan: cause("not_found", "The plan does not exist, or belongs to another agent.", "Check the id."),
  unknown_grant: cause("not_found", "The grant does not exist.", "List the grants."),
  unknown_delegation: cause("not_found", "The delegation does not exist.", "List the delegations."),
  unknown_halt: cause("not_found", "The halt is not active.", "List the halts."),
  unknown_hold: cause("not_found", "The legal hold does not exist.", "List the holds."),
  unknown_passkey: cause("not_found", "The passkey does not exist, or belongs to another person.", "List the passkeys."),
  unknown_connection: cause("not_found", "Nobody with this id is connected, or another person is.", "List the connections with `svc upstreams list`."),
  unknown_device: cause("not_found", "The device does not exist, or belongs to another person.", "List the devices."),
  unknown_key: cause("not_found", "No key has this index.", "List the keys."),
  unknown_version: cause("not_found", "The registry does not have this version.", "Read the registry for the current versions."),
  unknown_incident: cause("not_found", "The incident does not exist, or belongs to another tenant.", "List the incidents."),
  unknown_actor: cause("not_found", "No run, key or record has this name.", "Check the name."),
  unknown_job: cause("not_found", "The job does not exist.", "Start a job first."),
  unknown_session: cause("not_found", "The gateway does not know the session.", "Initialize a new session."),
  unknown_route: cause("not_found", "The route does not exist.", "See `GET /openapi.json`."),
  not_json: cause("invalid", "The body is not strict JSON.", "Correct the body, and send it on a new connection."),
  not_http: cause("invalid", "The request is not valid HTTP/1.1.", "Correct the client, and open a new connection."),
  may_be_recorded: cause("unavailable", "The store did not confirm in time that the request was recorded.", "Retry with the same Idempotency-Key, or check the run first."),
  egress_refused: cause("delivery_failed", "The egress rules refuse the destination.", "Change the rules or the destination."),
  server_stopping: cause("unavailable", "The server is stopping.", "Retry on a new connection."),
} as const;

export const ERROR_CAUSES = { ...KINDS, ...CONFLICTS, ...OTHERS };

export type CauseCode = keyof typeof ERROR_CAUSES;
export type ConflictCause = keyof typeof CONFLICTS;

/** The code of an unexpected failure. */
export const INTERNAL_CODE = "internal";

export function isCauseCode(name: string): name is CauseCode {
  return Object.hasOwn(ERROR_CAUSES, name);
}

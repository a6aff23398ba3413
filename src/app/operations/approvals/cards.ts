/** The card of a request, whole: what is judged, with what happened before around it. */
import { type Authority, authoritiesOver } from "../../../engine/approvals/authority.ts";
import { type CardSummary, makingCard, rememberedCard } from "../../../engine/approvals/made-cards.ts";
import { closingWords, isClosed } from "../../../engine/closing.ts";
import { stepKey } from "../../../engine/keys.ts";
import { unknownRun } from "../../../engine/load-run.ts";
import { notFound, SvcError } from "../../../kernel/errors.ts";
import { visibleLine } from "../../../kernel/visible.ts";
import { type ApprovalDoc, type Delegation, OPEN_APPROVAL } from "../../../model/approval.ts";
import { cardText } from "../../../model/card/lines.ts";
import type { ApprovalValues, CardSurroundings } from "../../../model/card/types.ts";
import { withPlainMasks } from "../../../model/mask.ts";
import { needsMet } from "../../../model/policy/approvals.ts";
import { proofOf, proofWords } from "../../../model/proof.ts";
import { hasRole, type Principal, seesTenant } from "../../../model/roles.ts";
import type { RunDoc } from "../../../model/run.ts";
import { doInTurns, nextTurn } from "../../../process/turns.ts";
import type { App } from "../../app.ts";
import { delegationsTo } from "../../door/access.ts";
import { proofWordsOf } from "../drills/proofs.ts";

/** How many decided requests are looked through for like ones, the newest first. */
const LOOKED_AT = 500;
const LAST_STEPS = 3;

/** Whether the principal may see what is judged: its vote counts, or counted, or it is an admin. */
export function seesCard(
  app: App,
  principal: Principal,
  approval: ApprovalDoc,
  delegations: readonly Delegation[],
): boolean {
  if (!seesTenant(principal, approval.tenant)) return false;
  if (hasRole(principal, "admin") || approval.votes.some(({ by }) => by === principal.name)) return true;
  return votesIn(app, principal, approval, delegations);
}

/** Whether its vote would count in the request as it is now. */
export function votesIn(...asked: Parameters<typeof authoritiesIn>): boolean {
  return authoritiesIn(...asked).length > 0;
}

/** Whether its one vote is all that the request needs. */
export function decidesAlone(...asked: Parameters<typeof authoritiesIn>): boolean {
  const [, , approval] = asked;
  return authoritiesIn(...asked).some((authority) => needsMet(approval.internal.needs, [authority]));
}

function authoritiesIn(
  app: App,
  principal: Principal,
  approval: ApprovalDoc,
  delegations: readonly Delegation[],
): Authority[] {
  const { four_eyes } = app.core.rules().policy.approvals;
  if (four_eyes && approval.actor === principal.name) return [];
  const facts = { four_eyes, now: app.core.env.now(), delegations, today: app.today };
  const found = authoritiesOver(approval, principal, facts);
  return found instanceof SvcError ? [] : found;
}

export async function loadCard(app: App, principal: Principal, id: string) {
  const { store } = app.core;
  const [approval, delegations] = await Promise.all([
    store.get("approvals", id),
    delegationsTo(app, principal.name),
  ]);
  if (approval === undefined || !seesCard(app, principal, approval, delegations))
    throw notFound(`unknown approval request ${id}`, "unknown_approval");
  return cardFor(app, approval);
}

/** Whoever asks for it was looked at. */
export async function cardFor(app: App, approval: ApprovalDoc) {
  const { store } = app.core;
  const { id } = approval;
  const [run, kept] = await Promise.all([
    store.get("runs", approval.run_id),
    // Past its time it may not have been swept yet, and shows nothing more.
    app.core.env.now() < approval.expires_ms ? store.get("approval_values", id) : undefined,
  ]);
  if (run === undefined) throw unknownRun(approval.run_id);
  const { facts, judged, hash } = await doInTurns(makingCard(app.core.rules(), run, approval, kept));
  const { values } = facts;
  const around = await surroundings(app, run, approval, values);
  await nextTurn();
  const head = {
    approval_id: approval.id,
    status: approval.status,
    actor: visibleLine(approval.actor, 256),
    run_id: approval.run_id,
  };
  const { tool, tenant, kind, step, arg_names, approvers, votes, requested_ms, expires_ms } = approval;
  const alive = OPEN_APPROVAL.has(approval.status) || approval.status === "approved";
  return {
    ...head,
    tool,
    tenant,
    kind,
    step,
    ...judged,
    arg_names,
    arguments: values === undefined ? null : withPlainMasks(values.args),
    before: values?.before === undefined ? null : withPlainMasks(values.before),
    ...around,
    approvers,
    votes,
    requested_ms,
    expires_ms,
    card_hash: alive ? hash : null,
    text: cardText(head, judged, around),
  };
}

/** Makes the card of a request before it is decided by, so that the decision itself need not. */
export async function learnCard(app: App, id: string): Promise<void> {
  const approval = await app.core.store.get("approvals", id);
  if (approval !== undefined) await cardSummary(app, approval, true);
}

/** What a list shows of a card; `sees` says whether values may be looked at for it. */
export async function cardSummary({ core }: App, approval: ApprovalDoc, sees: boolean): Promise<CardSummary> {
  const run = (await core.store.get("runs", approval.run_id)) ?? UNKNOWN_RUN;
  const known = sees ? rememberedCard(core.rules(), run, approval) : undefined;
  if (known !== undefined) return known;
  const values = sees ? await core.store.get("approval_values", approval.id) : undefined;
  const { summary } = await doInTurns(makingCard(core.rules(), run, approval, values));
  return summary;
}

const UNKNOWN_RUN = { reason: null, salt: "", environment: null };

export type LoadedCard = Awaited<ReturnType<typeof cardFor>>;

async function surroundings(
  app: App,
  run: RunDoc,
  approval: ApprovalDoc,
  values: Pick<ApprovalValues, "args"> | undefined,
): Promise<CardSurroundings> {
  const { store } = app.core;
  const [steps, decided, wayBack] = await Promise.all([
    store.list("steps", { owner: run.run_id, order: "desc", limit: LAST_STEPS }),
    store.list("approvals", { tag: ["approved", "consumed", "denied"], order: "desc", limit: LOOKED_AT }),
    approval.kind === "call" ? ofCall(app, approval, values) : ofUndo(app, approval),
  ]);
  const like = decided
    .map(({ doc }) => doc)
    .filter(
      (one) =>
        one.id !== approval.id &&
        one.tool === approval.tool &&
        one.actor === approval.actor &&
        one.tenant === approval.tenant &&
        one.kind === approval.kind,
    );
  const denied = like.filter(({ status }) => status === "denied").length;
  return {
    so_far: {
      calls: run.next_step,
      last: steps.map(({ doc: { step, tool, status } }) => ({ step, tool: visibleLine(tool, 256), status })),
    },
    like: { approved: like.length - denied, denied },
    ...wayBack,
  };
}

type Proven = Pick<CardSurroundings, "proof" | "closes">;

async function ofCall(app: App, { tool }: ApprovalDoc, values: Pick<ApprovalValues, "args"> | undefined) {
  const proof = await proofWordsOf(app.core, tool);
  return { proof, closes: closingWords(app.core.rules().manifests.active(tool), values) };
}

/** Of the undo that waits itself: whether it was tried, and how long it can still be made. */
async function ofUndo({ core }: App, { run_id, step: n }: ApprovalDoc): Promise<Proven> {
  const step = n === null ? undefined : await core.store.get("steps", stepKey(run_id, n));
  if (step === undefined) return { proof: null, closes: null };
  const drill = await core.store.get("drills", step.tool);
  const { closes_ms } = step;
  const closes = isClosed(step, core.env.now()) ? "closed" : "closes";
  return {
    proof: proofWords(proofOf(drill, step.manifest_hash ?? "")),
    closes: closes_ms === undefined ? null : `${closes} ${new Date(closes_ms).toISOString()}`,
  };
}

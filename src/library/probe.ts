/**
 * Self-test of the guarantees: calls canary tools through each surface. The verdict depends on whether the canary
 * really ran, and not on the ledger.
 */

import { randomUUID } from "node:crypto";
import type { ProbeState } from "../govern/port/docs.ts";
import { type CallerPrincipal, localId, PROBE_ACTOR } from "../govern/roles.ts";
import { messageOf } from "../kernel/errors.ts";
import type { ServiceApp } from "../operations/app.ts";
import { haltCalls, liftHalts } from "../operations/halts.ts";
import { dispatchOperation } from "../operations/pipeline/dispatch.ts";
import type { ApiCaller } from "../operations/pipeline/operation.ts";
import { rollbackHere } from "../operations/rollback/rollback.ts";
import { recordProbe } from "../operations/status.ts";
import type { RollbackReport } from "../rollback/plan/report.ts";
import type { UndoToolOptions } from "../rollback/undo/execute.ts";
import { BlockedError } from "./errors.ts";
import type { AgentRun } from "./run.ts";

export const CANARY_TOOLS = {
  allowed: "probe.canary",
  undo: "probe.undo",
  denied: "probe.denied",
  waiting: "probe.waiting",
  /** Has no manifest, and must never get one. */
  unknown: "probe.unmanifested",
} as const;
export const CANARY_PERMISSION = "probe";

/** Principal of the probe on surfaces that require one. */
export const PROBE_PRINCIPAL: CallerPrincipal = {
  id: localId(PROBE_ACTOR),
  name: PROBE_ACTOR,
  roles: ["agent"],
  groups: [],
  tenant: null,
  max_permissions: [CANARY_PERMISSION],
  allow_observe: false,
};

/** Caller for the probe's administrative operations, which run with the authority of the service. */
const proberOf = (app: ServiceApp, undo?: UndoToolOptions): ApiCaller => ({
  app,
  principal: { ...PROBE_PRINCIPAL, roles: ["admin"] },
  signal: new AbortController().signal,
  undo,
});

export function rollBackProbe(
  app: ServiceApp,
  run_id: string,
  undo: UndoToolOptions,
): Promise<RollbackReport> {
  return dispatchOperation(rollbackHere, proberOf(app, undo), { run_id });
}

/** A run of the probe on one surface, connected to the canary. */
export interface ProbeSession {
  readonly run_id: string;
  /** Calls a canary tool. Resolves to the refusal, or to null if the call was allowed. */
  call(tool: string, id: string): Promise<BlockedError | null>;
  /** Whether the canary of this call ran and was not undone. */
  ran(id: string): Promise<boolean>;
  withdraw(approval_id: string): Promise<void>;
  rollback(): Promise<void>;
  close(): Promise<void>;
}

export interface ProbeSurface {
  name: "library" | "http" | "gateway";
  /** Opens the surface, or explains why this process cannot drive it. */
  open(): Promise<ProbeSession> | string;
}

export type ProbeVerdict = "holds" | "BROKEN" | "not checked";

export interface ProbeLine {
  surface: ProbeSurface["name"];
  guarantee: string;
  verdict: ProbeVerdict;
  reason: string | null;
}

interface Probing {
  app: ServiceApp;
  door: ProbeSession;
}

/** Canary inside this process, for surfaces where the agent's process makes the call. It only remembers the call. */
export function canaryBehind(app: ServiceApp, run: AgentRun): ProbeSession {
  const ran = new Set<string>();
  return {
    run_id: run.run_id,
    async call(tool, id) {
      const execute = () => {
        ran.add(id);
        return { id };
      };
      try {
        await run.call({ tool, args: { id }, reason: "svc probe" }, execute);
        return null;
      } catch (error) {
        if (error instanceof BlockedError) return error;
        throw error;
      }
    },
    ran: async (id) => ran.has(id),
    async withdraw(approval_id) {
      await run.withdraw(approval_id);
    },
    async rollback() {
      await rollBackProbe(app, run.run_id, {
        compensator: async ({ args }) => {
          ran.delete(String((args as { id?: unknown }).id));
          return {};
        },
      });
    },
    close: async () => {},
  };
}

interface Called {
  id: string;
  ran: boolean;
  blocked: BlockedError | null;
}

async function call({ door }: Probing, tool: string): Promise<Called> {
  const id = randomUUID();
  const blocked = await door.call(tool, id);
  const ran = await door.ran(id);
  // Every pending canary request is withdrawn, so that approvers never see requests of the probe.
  if (blocked?.approval_id != null) await door.withdraw(blocked.approval_id);
  return { id, ran, blocked };
}

type Judged = Pick<ProbeLine, "verdict" | "reason">;
const holds: Judged = { verdict: "holds", reason: null };
const broken = (reason: string): Judged => ({ verdict: "BROKEN", reason });
const unchecked = (reason: string): Judged => ({ verdict: "not checked", reason });
const SET_UP = "the canary is not set up; svc probe init drafts its manifests and rules";

/** Whether the refusal is due to a missing manifest. Such a refusal does not test the guarantee. */
const isUnmanifested = (blocked: BlockedError | null): boolean =>
  blocked?.reasons.some((reason) => /manifest/i.test(reason)) === true;

const RULES = { denied: "svc-probe-denied", waiting: "svc-probe-waiting" } as const;

/** Whether the canary's policy rule exists. Without it the canary may run correctly. */
function hasRule({ app }: Probing, id: string): boolean {
  return app.core.rules().policy.doc.rules?.some((rule) => rule.id === id) === true;
}

const GUARANTEES: readonly (readonly [name: string, judge: (probing: Probing) => Promise<Judged>])[] = [
  [
    "an allowed call runs",
    async (probing) => {
      const { ran, blocked } = await call(probing, CANARY_TOOLS.allowed);
      if (ran && blocked === null) return holds;
      if (isUnmanifested(blocked)) return unchecked(SET_UP);
      return blocked === null
        ? broken("it was allowed and did not run")
        : unchecked(blocked.reasons.join("; "));
    },
  ],
  [
    "a denied call does not run",
    async (probing) => {
      if (!hasRule(probing, RULES.denied)) return unchecked(SET_UP);
      const { ran, blocked } = await call(probing, CANARY_TOOLS.denied);
      if (ran) return broken("it ran");
      return isUnmanifested(blocked) ? unchecked(SET_UP) : holds;
    },
  ],
  [
    "a call that waits for approval does not run",
    async (probing) => {
      if (!hasRule(probing, RULES.waiting)) return unchecked(SET_UP);
      const { ran, blocked } = await call(probing, CANARY_TOOLS.waiting);
      if (ran) return broken("it ran");
      if (blocked?.approval_id != null) return holds;
      return unchecked(blocked === null || isUnmanifested(blocked) ? SET_UP : blocked.reasons.join("; "));
    },
  ],
  ["a halted call does not run", halted],
  ["an undone call is undone", undone],
  [
    "a call without a manifest does not run",
    async (probing) => ((await call(probing, CANARY_TOOLS.unknown)).ran ? broken("it ran") : holds),
  ],
];

/** Halts only the probe's own actor, and always lifts the halt at the end. */
async function halted(probing: Probing): Promise<Judged> {
  const before = await call(probing, CANARY_TOOLS.allowed);
  if (!before.ran)
    return unchecked(isUnmanifested(before.blocked) ? SET_UP : "the canary does not run even without a halt");
  const prober = proberOf(probing.app);
  const reason = "svc probe tests whether a halt takes effect";
  const { id } = await dispatchOperation(haltCalls, prober, { reason, actor: PROBE_ACTOR });
  try {
    return (await call(probing, CANARY_TOOLS.allowed)).ran ? broken("it ran") : holds;
  } finally {
    await dispatchOperation(liftHalts, prober, { id });
  }
}

async function undone(probing: Probing): Promise<Judged> {
  const { id, ran, blocked } = await call(probing, CANARY_TOOLS.allowed);
  if (!ran) return unchecked(isUnmanifested(blocked) ? SET_UP : "the canary does not run");
  await probing.door.rollback();
  return (await probing.door.ran(id)) ? broken("it was rolled back and is still there") : holds;
}

/** Tests every guarantee on every surface, stores the result and records it in the ledger. */
export async function runProbe(app: ServiceApp, surfaces: readonly ProbeSurface[]): Promise<ProbeLine[]> {
  const lines: ProbeLine[] = [];
  for (const surface of surfaces) {
    const opened = surface.open();
    const door =
      typeof opened === "string" ? opened : await opened.catch((error: unknown) => messageOf(error));
    for (const [guarantee, judge] of GUARANTEES) {
      const judged =
        typeof door === "string"
          ? unchecked(door)
          : await judge({ app, door }).catch((error: unknown) => unchecked(messageOf(error)));
      lines.push({ surface: surface.name, guarantee, ...judged });
    }
    if (typeof door !== "string") await door.close();
  }
  await keep(app, lines);
  return lines;
}

async function keep(app: ServiceApp, lines: readonly ProbeLine[]): Promise<void> {
  const count = (verdict: ProbeVerdict) => lines.filter((line) => line.verdict === verdict).length;
  const broken = lines
    .filter(({ verdict }) => verdict === "BROKEN")
    .map(({ surface, guarantee }) => `${surface}: ${guarantee}`);
  const state: ProbeState = {
    at_ms: app.core.env.now(),
    holds: count("holds"),
    not_checked: count("not checked"),
    broken,
  };
  const said = `${state.holds} hold, ${broken.length} BROKEN, ${state.not_checked} not checked`;
  const detail = broken.length === 0 ? said : `${said}: ${broken.join("; ")}`;
  await recordProbe(app, state, detail);
}

/** Manifests that `svc probe init` drafts. */
export const CANARY_MANIFESTS = `# The canary of svc probe. It exists only inside the probe: do not use these names for real tools.
- tool: ${CANARY_TOOLS.allowed}
  effect: compensable
  permission: ${CANARY_PERMISSION}
  compensation: {tool: ${CANARY_TOOLS.undo}, args: {id: $result.id}, kind: inverse}
- {tool: ${CANARY_TOOLS.denied}, effect: irreversible, permission: ${CANARY_PERMISSION}}
- {tool: ${CANARY_TOOLS.waiting}, effect: irreversible, permission: ${CANARY_PERMISSION}}
`;

export const CANARY_RULES = `  - {id: ${RULES.denied}, match: {tool: ${CANARY_TOOLS.denied}}, action: deny, reason: the probe expects a refusal}
  - {id: ${RULES.waiting}, match: {tool: ${CANARY_TOOLS.waiting}}, action: require_approval, reason: the probe expects to wait}
`;

/**
 * The probe: calls of a canary tool, driven through each surface, judged by whether the canary really ran and not by
 * what the ledger says of it.
 */
import { randomUUID } from "node:crypto";
import { type App, announce } from "../app/app.ts";
import type { Caller } from "../app/door/operation.ts";
import { perform } from "../app/door/perform.ts";
import { halt, resume } from "../app/operations/halts.ts";
import { rollbackHere } from "../app/operations/rollback.ts";
import { messageOf } from "../kernel/errors.ts";
import { localId, PROBE_ACTOR, type Principal } from "../model/roles.ts";
import { PROBE_KEY, type ProbeState } from "../port/docs.ts";
import type { UndoMeans } from "../rollback/execute.ts";
import type { RollbackReport } from "../rollback/report.ts";
import { BlockedError } from "./errors.ts";
import type { Run } from "./run.ts";

export const CANARY = {
  allowed: "probe.canary",
  undo: "probe.undo",
  denied: "probe.denied",
  waiting: "probe.waiting",
  /** Has no manifest, and must never get one. */
  unknown: "probe.unmanifested",
} as const;
export const CANARY_PERMISSION = "probe";

/** Who probes, on surfaces that ask for a principal. */
export const PROBE_PRINCIPAL: Principal = {
  id: localId(PROBE_ACTOR),
  name: PROBE_ACTOR,
  roles: ["agent"],
  groups: [],
  tenant: null,
  max_permissions: [CANARY_PERMISSION],
  allow_observe: false,
};

/** What the probe does beside its calls, it does as the service that probes itself. */
const proberOf = (app: App, undo?: UndoMeans): Caller => ({
  app,
  principal: { ...PROBE_PRINCIPAL, roles: ["admin"] },
  signal: new AbortController().signal,
  undo,
});

export function rollBackProbe(app: App, run_id: string, undo: UndoMeans): Promise<RollbackReport> {
  return perform(rollbackHere, proberOf(app, undo), { run_id });
}

/** A run of the reserved principal on one surface, with the canary behind it. */
export interface ProbeDoor {
  readonly run_id: string;
  /** Calls a canary tool; the refusal, where it was refused. */
  call(tool: string, id: string): Promise<BlockedError | null>;
  /** Whether the canary of this call ran and was not undone. */
  ran(id: string): Promise<boolean>;
  withdraw(approval_id: string): Promise<void>;
  rollback(): Promise<void>;
  close(): Promise<void>;
}

export interface ProbeSurface {
  name: "library" | "http" | "gateway";
  /** Or why the surface cannot be driven from here. */
  open(): Promise<ProbeDoor> | string;
}

export type ProbeVerdict = "holds" | "BROKEN" | "not checked";

export interface ProbeLine {
  surface: ProbeSurface["name"];
  guarantee: string;
  verdict: ProbeVerdict;
  reason: string | null;
}

interface Probing {
  app: App;
  door: ProbeDoor;
}

/** Where the agent's own process makes the call, the canary lives in it and does nothing but remember. */
export function canaryBehind(app: App, run: Run): ProbeDoor {
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
  // Whichever canary has to wait: a request of the probe's is for no person to find.
  if (blocked?.approval_id != null) await door.withdraw(blocked.approval_id);
  return { id, ran, blocked };
}

type Judged = Pick<ProbeLine, "verdict" | "reason">;
const holds: Judged = { verdict: "holds", reason: null };
const broken = (reason: string): Judged => ({ verdict: "BROKEN", reason });
const unchecked = (reason: string): Judged => ({ verdict: "not checked", reason });
const SET_UP = "the canary is not set up; svc probe init drafts its manifests and rules";

/** A canary without its manifest is refused for the wrong reason, which shows nothing. */
const isUnmanifested = (blocked: BlockedError | null): boolean =>
  blocked?.reasons.some((reason) => /manifest/i.test(reason)) === true;

const RULES = { denied: "svc-probe-denied", waiting: "svc-probe-waiting" } as const;

/** Without its rule a canary may run, and nothing is wrong. */
function hasRule({ app }: Probing, id: string): boolean {
  return app.core.rules().policy.doc.rules?.some((rule) => rule.id === id) === true;
}

const GUARANTEES: readonly (readonly [name: string, judge: (probing: Probing) => Promise<Judged>])[] = [
  [
    "an allowed call runs",
    async (probing) => {
      const { ran, blocked } = await call(probing, CANARY.allowed);
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
      const { ran, blocked } = await call(probing, CANARY.denied);
      if (ran) return broken("it ran");
      return isUnmanifested(blocked) ? unchecked(SET_UP) : holds;
    },
  ],
  [
    "a call that waits for approval does not run",
    async (probing) => {
      if (!hasRule(probing, RULES.waiting)) return unchecked(SET_UP);
      const { ran, blocked } = await call(probing, CANARY.waiting);
      if (ran) return broken("it ran");
      if (blocked?.approval_id != null) return holds;
      return unchecked(blocked === null || isUnmanifested(blocked) ? SET_UP : blocked.reasons.join("; "));
    },
  ],
  ["a halted call does not run", halted],
  ["an undone call is undone", undone],
  [
    "a call without a manifest does not run",
    async (probing) => ((await call(probing, CANARY.unknown)).ran ? broken("it ran") : holds),
  ],
];

/** The halt covers the probe alone, and is lifted whatever happens. */
async function halted(probing: Probing): Promise<Judged> {
  const before = await call(probing, CANARY.allowed);
  if (!before.ran)
    return unchecked(isUnmanifested(before.blocked) ? SET_UP : "the canary does not run anyway");
  const prober = proberOf(probing.app);
  const reason = "svc probe tries whether a halt is read";
  const { id } = await perform(halt, prober, { reason, actor: PROBE_ACTOR });
  try {
    return (await call(probing, CANARY.allowed)).ran ? broken("it ran") : holds;
  } finally {
    await perform(resume, prober, { id });
  }
}

async function undone(probing: Probing): Promise<Judged> {
  const { id, ran, blocked } = await call(probing, CANARY.allowed);
  if (!ran) return unchecked(isUnmanifested(blocked) ? SET_UP : "the canary does not run");
  await probing.door.rollback();
  return (await probing.door.ran(id)) ? broken("it was rolled back and is still there") : holds;
}

/** Tries every guarantee on every surface, keeps the result and records it. */
export async function runProbe(app: App, surfaces: readonly ProbeSurface[]): Promise<ProbeLine[]> {
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

async function keep({ core }: App, lines: readonly ProbeLine[]): Promise<void> {
  const count = (verdict: ProbeVerdict) => lines.filter((line) => line.verdict === verdict).length;
  const broken = lines
    .filter(({ verdict }) => verdict === "BROKEN")
    .map(({ surface, guarantee }) => `${surface}: ${guarantee}`);
  const state: ProbeState = {
    at_ms: core.env.now(),
    holds: count("holds"),
    not_checked: count("not checked"),
    broken,
  };
  const said = `${state.holds} hold, ${broken.length} BROKEN, ${state.not_checked} not checked`;
  const detail = broken.length === 0 ? said : `${said}: ${broken.join("; ")}`;
  const record = await core.store.transact({
    run(tx) {
      tx.put("meta", PROBE_KEY, state);
      return tx.append({ event: "probed", actor: PROBE_ACTOR, ts_ms: core.env.now(), detail });
    },
  });
  announce(core.listeners, [record]);
}

/** What `svc probe init` drafts. */
export const CANARY_MANIFESTS = `# The canary of svc probe. It exists only inside the probe: give these names to no real tool.
- tool: ${CANARY.allowed}
  effect: compensable
  permission: ${CANARY_PERMISSION}
  compensation: {tool: ${CANARY.undo}, args: {id: $result.id}, kind: inverse}
- {tool: ${CANARY.denied}, effect: irreversible, permission: ${CANARY_PERMISSION}}
- {tool: ${CANARY.waiting}, effect: irreversible, permission: ${CANARY_PERMISSION}}
`;

export const CANARY_RULES = `  - {id: ${RULES.denied}, match: {tool: ${CANARY.denied}}, action: deny, reason: the probe expects a refusal}
  - {id: ${RULES.waiting}, match: {tool: ${CANARY.waiting}}, action: require_approval, reason: the probe expects to wait}
`;

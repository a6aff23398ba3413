/** Facts for a decision, loaded in advance so that the decision is a pure function. */
import type { JsonValue } from "../../kernel/json/json.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import type { CompiledPolicy, PolicyCall } from "../../rules/policy/compile.ts";
import type { ApprovalDoc, StoredHalt } from "../approvals/approval.ts";
import type { IntentCaller } from "../core.ts";
import type { ResolvedGrant } from "../grants/coverage.ts";
import type { EarlyPlannedCall } from "../plans/plan-progress.ts";
import type { CounterDoc } from "../port/docs.ts";
import type { RunDoc } from "../runs/run.ts";
import type { BeforeFacts } from "./before-state.ts";

export interface DecisionFacts {
  now: number;
  run: RunDoc;
  /** Number of open approval requests of the run's tree. */
  open_requests: number;
  /** Current limits of the caller's credential. */
  caller: Pick<IntentCaller, "max_permissions" | "allow_observe">;
  tool: string;
  args: JsonValue;
  manifest: ToolManifest | null;
  /** Declared tool that the caller probably meant, if this one is not declared. */
  meant?: string | undefined;
  policy: CompiledPolicy;
  call: PolicyCall;
  halts: readonly StoredHalt[];
  /** Reason in the kill-switch file; null if there is no file. */
  kill_switch: string | null;
  /** Required tools without an active step in the run. */
  missing_prerequisites: readonly string[];
  /** Steps in depends_on that are not active. */
  fallen_dependencies: readonly number[];
  /** Active step with the same logical call. */
  repeat_of: { run_id: string; step: number } | null;
  counters: ReadonlyMap<string, CounterDoc>;
  /** Open or approved request for exactly this call. */
  request: ApprovalDoc | null;
  /** The call's own request, if `request` belongs to a plan. */
  own_request?: ApprovalDoc | null | undefined;
  /** Set if a plan covers this call only after an earlier call of the plan has ended. */
  early_planned?: EarlyPlannedCall | null | undefined;
  /** Id for a new request. */
  fresh_approval_id: string;
  /** Declared read and its problem, if any; undefined if the manifest declares no read. */
  before?: BeforeFacts | undefined;
  /** Hash of the current state as the surface read it for the card; undefined without a read. */
  seen_hash?: string | null | undefined;
  /** Grants for the call's tool and actor; loaded only if nothing but an approval is missing. */
  grants?: readonly ResolvedGrant[] | undefined;
  /** Reasons against the call that only the surface knows; the run's mode determines their effect. */
  objections?: readonly string[] | undefined;
}

/** Everything a decision depends on, gathered beforehand so that deciding is a pure function. */
import type { Json } from "../../kernel/json.ts";
import type { ApprovalDoc, Halt } from "../../model/approval.ts";
import type { Manifest } from "../../model/manifest/types.ts";
import type { Policy, PolicyCall } from "../../model/policy/compile.ts";
import type { RunDoc } from "../../model/run.ts";
import type { CounterDoc } from "../../port/docs.ts";
import type { BeforeFacts } from "../before.ts";
import type { IntentCaller } from "../core.ts";
import type { GrantInHand } from "../grants/coverage.ts";

export interface Facts {
  now: number;
  run: RunDoc;
  /** What the caller's credential may ask for now. */
  caller: Pick<IntentCaller, "max_permissions" | "allow_observe">;
  tool: string;
  args: Json;
  manifest: Manifest | null;
  /** The declared tool that was probably meant, where this one is not declared. */
  meant?: string | undefined;
  policy: Policy;
  call: PolicyCall;
  halts: readonly Halt[];
  /** The reason in the kill-switch file, or null while there is none. */
  kill_switch: string | null;
  /** Required tools that have no standing step in the run. */
  missing_prerequisites: readonly string[];
  /** Steps named in depends_on that do not stand. */
  fallen_dependencies: readonly number[];
  /** The step that already stands for this logical call. */
  repeat_of: { run_id: string; step: number } | null;
  counters: ReadonlyMap<string, CounterDoc>;
  /** The open or approved request for exactly this call. */
  request: ApprovalDoc | null;
  /** Where `request` was made for a plan: the one that the call opened by itself. */
  beside?: ApprovalDoc | null | undefined;
  /** The id a new request will have. */
  fresh_approval_id: string;
  /** What is to be read before the call, and what stands in the way; undefined where its manifest asks for nothing. */
  before?: BeforeFacts | undefined;
  /** What is there now, by what the surface read for the card; undefined where there was no look. */
  seen_hash?: string | null | undefined;
  /** Grants that name the call's tool and actor; looked for only where nothing but an approval is missing. */
  grants?: readonly GrantInHand[] | undefined;
  /** Reasons against the call that only the surface can know; they refuse as the run's mode says. */
  objections?: readonly string[] | undefined;
}

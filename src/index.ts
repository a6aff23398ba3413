/**
 * The library: `open` runs the engine in this process, `connect` calls a server.
 *
 * @module takeback
 */

export type { ApprovalView } from "./govern/approvals/approval.ts";
export type { BeforeRead } from "./govern/decide/before-state.ts";
export type { IntentDecision as Decision } from "./govern/decide/verdict.ts";
export type { PlanView } from "./govern/plans/plan.ts";
export { SvcError } from "./kernel/errors.ts";
export type { JsonValue as Json } from "./kernel/json/json.ts";
export type {
  ApprovalRequests as Approvals,
  DecideOptions,
  OfferedApproval,
  WaitTime as Wait,
} from "./library/approvals.ts";
export { type ConnectOptions, connectToServer as connect, type RemoteSvc } from "./library/connect.ts";
export type { DrillCall, DrillOptions } from "./library/drill.ts";
export { BlockedError, type CounterOffer as Offer, UncertainError } from "./library/errors.ts";
export {
  type EmbeddedSvc as Svc,
  type OpenOptions,
  openEmbedded as open,
  type RunOptions,
} from "./library/open.ts";
export type { AgentRun as Run, CallOptions } from "./library/run.ts";
export type {
  AllowedDecision as Allowed,
  CallIntent as Intent,
  CallOutcome as Outcome,
  DecisionPreview as Preview,
  IntentResponse as Asked,
  PlannedCall,
  RollbackRequest,
} from "./library/transport.ts";
export type {
  CompensateAction,
  DeferAction,
  PlainAction,
  PlanAction,
  RollbackPlan,
} from "./rollback/plan/plan.ts";
export type {
  ChildReport,
  RollbackReport,
  StepFailure as Failure,
  TreeReport,
} from "./rollback/plan/report.ts";
export type {
  CompensationCall,
  CompensatorFn as Compensator,
  OverwriteDecision as Overwrite,
  ReaderFn as Reader,
  ReadRequest,
} from "./rollback/ports.ts";
export { RollbackInterrupted } from "./rollback/undo/execute.ts";
export type { DrillDoc } from "./rules/undo-proof.ts";

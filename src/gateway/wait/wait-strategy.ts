/**
 * Lets calls wait for approval by the mechanism of the client's protocol revision, and makes them after the decision.
 * Such a call takes the same path as any other, so its approval is used once.
 */
import { CLIENT_CAPABILITIES_META_KEY, type Server } from "@modelcontextprotocol/server";
import { type ApprovalDoc, OPEN_APPROVAL_STATUSES } from "../../govern/approvals/approval.ts";
import type { CallerPrincipal } from "../../govern/roles.ts";
import { SvcError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/json/json.ts";
import { withdrawRequest } from "../../operations/approvals/approvals.ts";
import { dispatchOperation } from "../../operations/pipeline/dispatch.ts";
import { approvalOf, type GatewayCall, progressOf, recheckAuthority } from "../call/call-request.ts";
import type { ToolRoute } from "../catalog/catalog.ts";
import type { McpGateway } from "../gateway.ts";
import { invalidParams } from "../session/mcp-server.ts";
import type { RequestContext } from "../session/request-context.ts";
import { consumeState, type WaitingCall } from "../session/request-state.ts";
import type { BoundRun } from "../session/runs.ts";
import {
  approvalWait,
  askAndWait,
  decisionOf,
  declinesToWait,
  inProgressCall,
  inputRequired,
  notApproved,
  waitMechanism,
} from "./protocol-wait.ts";
import type { CallTask } from "./tasks.ts";
import { createTaskResult, withinTask } from "./tasks-2025-11-25.ts";
import { handleOf } from "./tasks-2026-07-28.ts";

/** The agent session through which calls are made. */
interface AgentSide {
  server: Server;
  asking(context: RequestContext): CallerPrincipal;
  govern(run: BoundRun, asked: GatewayCall, context: RequestContext): Promise<JsonObject>;
  project(result: JsonObject, route: ToolRoute | undefined): JsonObject;
}

export class CallWaits {
  private readonly gateway: McpGateway;
  private readonly agent: AgentSide;

  constructor(gateway: McpGateway, agent: AgentSide) {
    this.gateway = gateway;
    this.agent = agent;
  }

  /** Makes a call. If it needs approval, waits by the client's mechanism or returns the refusal. */
  async call(run: BoundRun, asked: GatewayCall, context: RequestContext): Promise<JsonObject> {
    const result = await this.agent.govern(run, asked, context);
    const approval_id = this.noted(run, asked, result, context);
    if (approval_id === null) return result;
    return (await this.wait(run, asked, approval_id, context)) ?? result;
  }

  /** Returns a task at once, and makes the call in the background. */
  callAsTask(run: BoundRun, asked: GatewayCall, context: RequestContext): JsonObject {
    const { gateway, agent } = this;
    const { app, tasks } = gateway;
    const principal = agent.asking(context);
    const task = tasks.begin(principal, inProgressCall(app, asked.tool), async (task) => {
      const apart = withinTask(context, task);
      const result = await agent.govern(run, asked, apart);
      const approval_id = this.noted(run, asked, result, context);
      if (approval_id === null) return agent.project(result, asked.route);
      const call = this.waitingCall(asked, context);
      tasks.waits(task, approvalWait(app, call, approval_id, agent.server.getClientCapabilities()));
      return this.decidedTask(task, run, asked, approval_id, apart);
    });
    if (task === null)
      throw invalidParams(
        "tools/call: too many tasks are in progress; end some, or send the call without task",
      );
    return createTaskResult(task, context);
  }

  /** The approval request of a blocked call, remembered for the repeated call. Null if there is none. */
  private noted(
    run: BoundRun,
    { tool }: GatewayCall,
    result: JsonObject,
    context: RequestContext,
  ): string | null {
    const approval_id = approvalOf(result);
    if (approval_id !== null) this.gateway.waiting.note(this.agent.asking(context), run.run_id, tool);
    return approval_id;
  }

  private waitingCall({ tool, args }: GatewayCall, context: RequestContext): WaitingCall {
    return { principal: this.agent.asking(context), tool, args };
  }

  /** Null if the client has no mechanism to wait, or its user declines to wait. */
  private async wait(
    run: BoundRun,
    asked: GatewayCall,
    approval_id: string,
    context: RequestContext,
  ): Promise<JsonObject | null> {
    const { app } = this.gateway;
    const by = waitMechanism(app, this.agent.server, context);
    const call = this.waitingCall(asked, context);
    if (by === "rounds") return inputRequired(app, call, { run_id: run.run_id, approval_id });
    if (by === "task") return this.task(run, asked, approval_id, context);
    if (by === null) return null;
    const approval = await askAndWait(app, call, approval_id, context, progressOf(context));
    return approval === null ? null : this.decided(run, asked, approval, context);
  }

  /** Answers the request with a task that waits in the background. Null if too many tasks are in progress. */
  private task(
    run: BoundRun,
    asked: GatewayCall,
    approval_id: string,
    context: RequestContext,
  ): JsonObject | null {
    const { app, tasks } = this.gateway;
    const call = this.waitingCall(asked, context);
    const wait = approvalWait(app, call, approval_id, context.envelope?.[CLIENT_CAPABILITIES_META_KEY]);
    const task = tasks.begin(call.principal, wait, (task) => {
      // The request already has its answer by then, so nothing can be sent on its stream.
      const over = { envelope: undefined, retried: undefined, notify: () => {} };
      const apart = { ...context, ...over, cancellation: task.cancellation };
      return this.decidedTask(task, run, asked, approval_id, apart);
    });
    return task === null ? null : handleOf(task);
  }

  /** Finishes a task after its request was decided, its time passed or it was cancelled. */
  private async decidedTask(
    task: CallTask,
    run: BoundRun,
    asked: GatewayCall,
    approval_id: string,
    context: RequestContext,
  ): Promise<JsonObject | null> {
    const { gateway, agent } = this;
    const { app, tasks } = gateway;
    const call = this.waitingCall(asked, context);
    const approval = await decisionOf(app, call, approval_id, context, progressOf(context));
    if (task.given_up) await this.takeBack(call, approval_id);
    if (task.cancellation.cancelled) return null;
    tasks.waits(task, inProgressCall(app, asked.tool));
    const result = await this.decided(run, asked, approval, context);
    return agent.project(result ?? (await agent.govern(run, asked, context)), asked.route);
  }

  /** Withdraws the approval request of a cancelled task. A decision made in the meantime remains. */
  private async takeBack({ principal }: WaitingCall, approval_id: string): Promise<void> {
    const { signal } = new AbortController();
    try {
      await dispatchOperation(withdrawRequest, { app: this.gateway.app, principal, signal }, { approval_id });
    } catch (error) {
      if (!(error instanceof SvcError && error.code === "conflict")) throw error;
    }
  }

  /** Resumes a call that the client sent again: waits for the decision, then makes the call like any other. */
  async resume(asked: GatewayCall, state: string, context: RequestContext): Promise<JsonObject> {
    const { app, runs } = this.gateway;
    const { agent } = this;
    const call = this.waitingCall(asked, context);
    const { run_id, approval_id } = await consumeState(app, call, state);
    const run = await runs.named(call.principal, run_id);
    // The user closed the page. The request stays open, and the agent gets the refusal.
    if (declinesToWait(context.retried)) return agent.govern(run, asked, context);
    const approval = await decisionOf(app, call, approval_id, context, progressOf(context));
    const result = await this.decided(run, asked, approval, context);
    if (result !== null) return result;
    return inputRequired(app, call, { run_id, approval_id }) ?? agent.govern(run, asked, context);
  }

  /** The result of a call after its request was read. Null while the request is open. */
  private async decided(
    run: BoundRun,
    asked: GatewayCall,
    approval: ApprovalDoc,
    context: RequestContext,
  ): Promise<JsonObject | null> {
    if (OPEN_APPROVAL_STATUSES.has(approval.status)) return null;
    if (approval.status === "denied" || approval.status === "expired")
      return notApproved(approval, run.run_id);
    // The caller's authority may have changed during the wait.
    return this.agent.govern(run, asked, { ...context, extra: recheckAuthority(context) });
  }
}

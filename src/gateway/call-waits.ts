/**
 * Calls that wait for a person: by which means of its client's revision one waits, and what becomes of it once there
 * is a decision. It is made by the same way as any other, so that its approval is used once.
 */
import { CLIENT_CAPABILITIES_META_KEY, type Server } from "@modelcontextprotocol/server";
import { perform } from "../app/door/perform.ts";
import { withdraw } from "../app/operations/approvals.ts";
import { SvcError } from "../kernel/errors.ts";
import type { JsonObject } from "../kernel/json.ts";
import { type ApprovalDoc, OPEN_APPROVAL } from "../model/approval.ts";
import type { Principal } from "../model/roles.ts";
import { approvalOf, type GatewayCall, progressOf, stillAsking } from "./asked.ts";
import type { Route } from "./catalog.ts";
import type { Gateway } from "./gateway.ts";
import {
  askAndWait,
  decisionOf,
  declined,
  inputRequired,
  notApproved,
  underWay,
  waitOf,
  waitsBy,
} from "./native-wait.ts";
import { invalidParams } from "./peer.ts";
import type { RequestContext } from "./request-context.ts";
import { redeemState, type WaitingCall } from "./request-state.ts";
import type { BoundRun } from "./runs.ts";
import type { Task } from "./tasks.ts";
import { handleOf } from "./tasks-newer.ts";
import { created, withinTask } from "./tasks-older.ts";

/** What the calls are made through: the agent's side of the gateway. */
interface AgentSide {
  server: Server;
  asking(context: RequestContext): Principal;
  govern(run: BoundRun, asked: GatewayCall, context: RequestContext): Promise<JsonObject>;
  project(result: JsonObject, route: Route | undefined): JsonObject;
}

export class CallWaits {
  private readonly gateway: Gateway;
  private readonly agent: AgentSide;

  constructor(gateway: Gateway, agent: AgentSide) {
    this.gateway = gateway;
    this.agent = agent;
  }

  /** Makes the call; where that needs a person, waits by the client's own means, or answers that it does. */
  async call(run: BoundRun, asked: GatewayCall, context: RequestContext): Promise<JsonObject> {
    const result = await this.agent.govern(run, asked, context);
    const approval_id = this.noted(run, asked, result, context);
    if (approval_id === null) return result;
    return (await this.wait(run, asked, approval_id, context)) ?? result;
  }

  /** Makes the call, and waits for it, beside the request, which is answered with a task at once. */
  callAsTask(run: BoundRun, asked: GatewayCall, context: RequestContext): JsonObject {
    const { gateway, agent } = this;
    const { app, tasks } = gateway;
    const principal = agent.asking(context);
    const task = tasks.begin(principal, underWay(app, asked.tool), async (task) => {
      const apart = withinTask(context, task);
      const result = await agent.govern(run, asked, apart);
      const approval_id = this.noted(run, asked, result, context);
      if (approval_id === null) return agent.project(result, asked.route);
      const call = this.waitingCall(asked, context);
      tasks.waits(task, waitOf(app, call, approval_id, agent.server.getClientCapabilities()));
      return this.decidedTask(task, run, asked, approval_id, apart);
    });
    if (task === null)
      throw invalidParams("tools/call: too many tasks are under way; end some, or send it without task");
    return created(task, context);
  }

  /** The request that a blocked call waits for, kept in mind for when it is sent again; null where there is none. */
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

  /** Null where the client has no means, or its person does not want to wait. */
  private async wait(
    run: BoundRun,
    asked: GatewayCall,
    approval_id: string,
    context: RequestContext,
  ): Promise<JsonObject | null> {
    const { app } = this.gateway;
    const by = waitsBy(app, this.agent.server, context);
    const call = this.waitingCall(asked, context);
    if (by === "rounds") return inputRequired(app, call, { run_id: run.run_id, approval_id });
    if (by === "task") return this.task(run, asked, approval_id, context);
    if (by === null) return null;
    const approval = await askAndWait(app, call, approval_id, context, progressOf(context));
    return approval === null ? null : this.decided(run, asked, approval, context);
  }

  /** Waits beside the request, which is answered with a task; null where too many are under way. */
  private task(
    run: BoundRun,
    asked: GatewayCall,
    approval_id: string,
    context: RequestContext,
  ): JsonObject | null {
    const { app, tasks } = this.gateway;
    const call = this.waitingCall(asked, context);
    const wait = waitOf(app, call, approval_id, context.envelope?.[CLIENT_CAPABILITIES_META_KEY]);
    const task = tasks.begin(call.principal, wait, (task) => {
      // By then the request has its answer: nothing is told or asked on its stream.
      const over = { envelope: undefined, retried: undefined, notify: () => {} };
      const apart = { ...context, ...over, cancellation: task.cancellation };
      return this.decidedTask(task, run, asked, approval_id, apart);
    });
    return task === null ? null : handleOf(task);
  }

  /** What becomes of a task once its request was decided, its time is over or it was cancelled. */
  private async decidedTask(
    task: Task,
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
    tasks.waits(task, underWay(app, asked.tool));
    const result = await this.decided(run, asked, approval, context);
    return agent.project(result ?? (await agent.govern(run, asked, context)), asked.route);
  }

  /** The call no longer waits for the decision; one that was made meanwhile stands. */
  private async takeBack({ principal }: WaitingCall, approval_id: string): Promise<void> {
    const { signal } = new AbortController();
    try {
      await perform(withdraw, { app: this.gateway.app, principal, signal }, { approval_id });
    } catch (error) {
      if (!(error instanceof SvcError && error.code === "conflict")) throw error;
    }
  }

  /** The second half of a call that waits: held until there is a decision, and then made like any other. */
  async resume(asked: GatewayCall, state: string, context: RequestContext): Promise<JsonObject> {
    const { app, runs } = this.gateway;
    const { agent } = this;
    const call = this.waitingCall(asked, context);
    const { run_id, approval_id } = await redeemState(app, call, state);
    const run = await runs.named(call.principal, run_id);
    // Its person closed the page: what is open stays open, and the agent is told so.
    if (declined(context.retried)) return agent.govern(run, asked, context);
    const approval = await decisionOf(app, call, approval_id, context, progressOf(context));
    const result = await this.decided(run, asked, approval, context);
    if (result !== null) return result;
    return inputRequired(app, call, { run_id, approval_id }) ?? agent.govern(run, asked, context);
  }

  /** What becomes of the call once its request was looked at; null while that is open. */
  private async decided(
    run: BoundRun,
    asked: GatewayCall,
    approval: ApprovalDoc,
    context: RequestContext,
  ): Promise<JsonObject | null> {
    if (OPEN_APPROVAL.has(approval.status)) return null;
    if (approval.status === "denied" || approval.status === "expired")
      return notApproved(approval, run.run_id);
    // Who asks by now, because authority may have changed while it waited.
    return this.agent.govern(run, asked, { ...context, extra: stillAsking(context) });
  }
}

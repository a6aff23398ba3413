/** The gateway as an HTTP server: the two MCP endpoints beside the API, health, readiness and metrics. */
import type { Service } from "../app/wiring/service.ts";
import { mountConsole } from "../console/mount.ts";
import { AgentPeer } from "../gateway/agent.ts";
import { drillsThrough } from "../gateway/drills.ts";
import { Gateway, type GatewayOptions } from "../gateway/gateway.ts";
import { type EndpointParts, mountEndpoint } from "../gateway/http/endpoint.ts";
import { originGuard } from "../gateway/http/guard.ts";
import { McpSessions } from "../gateway/http/sessions.ts";
import { createOperatorPeer } from "../gateway/operator.ts";
import type { BoundRun } from "../gateway/runs.ts";
import { type Listening, listen } from "../http/lifecycle.ts";
import { atMost } from "../kernel/deadline.ts";
import { forbidden } from "../kernel/errors.ts";
import { LIMITS } from "../kernel/limits.ts";
import { hasRole, type Principal, ROLE_MESSAGES } from "../model/roles.ts";
import { watchJobs } from "../rollback/job.ts";
import { gatewayProbe } from "./gateway-probe.ts";
import { httpOf } from "./http.ts";
import { probe } from "./probe.ts";

const SWEEP_MS = 5_000;

export interface RunningGateway extends Listening {
  gateway: Gateway;
}

export async function startHttpGateway(
  service: Service,
  options: GatewayOptions = {},
): Promise<RunningGateway> {
  const gateway = new Gateway(service);
  try {
    await gateway.start(options.patience_ms);
    undoByJobs(service, gateway);
    return await serve(service, gateway);
  } catch (error) {
    await gateway.close();
    await service.close();
    throw error;
  }
}

/** A rollback that is started over the API or the console goes through the upstreams too. */
function undoByJobs(service: Service, gateway: Gateway): void {
  service.connectors = () => gateway.connectors();
  service.drills = drillsThrough(gateway);
  service.lookout = gateway.services.undo;
  if (service.jobTools !== null) return;
  service.jobTools = {
    ...gateway.services.undo,
    stop: service.background.signal,
    today: service.today,
  };
  service.background.track(watchJobs(service.core, service.jobTools, service.background.signal));
}

async function serve(service: Service, gateway: Gateway): Promise<RunningGateway> {
  const { settings, auth, core } = service;
  const server = httpOf(service, { readiness: async () => gateway.readiness() });
  mountConsole(server, { app: service, auth });
  const sessions = [
    new McpSessions(core.env, service.quotas),
    new McpSessions(core.env, service.quotas),
  ] as const;
  const agents = mountEndpoint(server, { ...common(service, sessions[0]), ...agentParts(gateway) });
  const operators = mountEndpoint(server, { ...common(service, sessions[1]), ...operatorParts(gateway) });
  gateway.notices.onBroadcast((method, params) => {
    if (method === "notifications/tools/list_changed") agents.notify.toolsChanged();
    else if (method === "notifications/prompts/list_changed") agents.notify.promptsChanged();
    else if (method === "notifications/resources/list_changed") agents.notify.resourcesChanged();
    else if (typeof params?.["uri"] === "string") agents.notify.resourceUpdated(params["uri"]);
  });
  service.background.every(SWEEP_MS, "ending idle sessions", async () => {
    await Promise.all(sessions.map((one) => one.sweep()));
  });
  const { interval_ms } = settings.probe;
  if (interval_ms > 0)
    service.background.every(interval_ms, "probing", () => probe(service, gatewayProbe(service)));
  const listening = await listen(server, settings.listen.host, settings.listen.port);
  return {
    ...listening,
    gateway,
    async stop() {
      const until = performance.now() + LIMITS.stop_ms;
      // Calls under way may end by themselves for a while; event streams never do.
      const stopped = listening.stop();
      for (const one of sessions) one.endStreams();
      await atMost(gateway.idle(), LIMITS.drain_ms / 2, core);
      await Promise.all([agents.close(), operators.close()]);
      await stopped;
      await Promise.all(sessions.map((one) => one.close()));
      await gateway.close();
      await service.close(until);
    },
  };
}

type Common = Pick<EndpointParts, "guard" | "sessions" | "log" | "authenticate" | "today" | "quotas">;

function common({ settings, auth, log, quotas }: Service, sessions: McpSessions): Common {
  return {
    guard: originGuard(settings),
    sessions,
    log,
    quotas,
    authenticate: (header) => auth.identify(header),
    today: (credential) => auth.current(credential),
  };
}

function agentParts(gateway: Gateway): Omit<EndpointParts, keyof Common> {
  return {
    path: "/mcp",
    admit(principal) {
      if (!hasRole(principal, "agent")) throw forbidden(ROLE_MESSAGES.agent, "role_required");
    },
    named: (principal, run_id) => gateway.runs.named(principal, run_id),
    open(principal, run, era, method) {
      const peer = new AgentPeer(gateway, {
        local: null,
        run: era === "legacy" ? sessionRun(gateway, principal, run) : gateway.runs.ofSessionless(),
        named: run !== undefined,
        era,
        method,
      });
      const leave = era === "legacy" ? gateway.notices.join(peer) : () => {};
      const close = () => {
        leave();
        peer.close();
      };
      return { server: peer.server, direct: (params, request) => peer.callDirectly(params, request), close };
    },
  };
}

/** The run that the session was opened with, or one of its own; whoever may have neither is told so at once. */
function sessionRun(gateway: Gateway, principal: Principal, named: BoundRun | undefined) {
  if (named !== undefined) return () => named;
  gateway.runs.mayOpen(principal);
  gateway.waiting.lookAgain(principal);
  return gateway.runs.ofSession();
}

function operatorParts(gateway: Gateway): Omit<EndpointParts, keyof Common> {
  return {
    path: "/operator/mcp",
    admit(principal) {
      if (!hasRole(principal, "auditor")) throw forbidden("auditor role or higher required", "role_required");
    },
    open(_principal, _run, _era, method) {
      return { server: createOperatorPeer(gateway, method), close: () => {} };
    },
  };
}

/** Gateway as an HTTP server: two MCP endpoints, the API, health, readiness and metrics. */

import { originGuard } from "../../auth/origin-guard.ts";
import { mountConsole } from "../../console/mount.ts";
import { drillsThrough } from "../../gateway/drills.ts";
import { type GatewayOptions, McpGateway } from "../../gateway/gateway.ts";
import { type EndpointDeps, mountEndpoint } from "../../gateway/http/endpoint.ts";
import {
  addressAs,
  mountResourceMetadata,
  protectedResource,
} from "../../gateway/http/protected-resource.ts";
import { McpSessions } from "../../gateway/http/sessions.ts";
import { createOperatorPeer } from "../../gateway/operator-server.ts";
import { AgentPeer } from "../../gateway/session/agent-server.ts";
import type { BoundRun } from "../../gateway/session/runs.ts";
import { type CallerPrincipal, hasRole, ROLE_MESSAGES } from "../../govern/roles.ts";
import { type ListeningServer, startListening } from "../../http/lifecycle.ts";
import { forbiddenError } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { settleWithin } from "../../kernel/timeout.ts";
import { watchJobs } from "../../rollback/job.ts";
import type { RunningService } from "../service.ts";
import { gatewayProbe } from "./gateway-probe.ts";
import { httpOf } from "./http.ts";
import { httpJobTools } from "./http-undo.ts";
import { runServerProbe } from "./probe.ts";

const SWEEP_MS = 5_000;

export interface RunningGateway extends ListeningServer {
  gateway: McpGateway;
}

export async function startHttpGateway(
  service: RunningService,
  options: GatewayOptions = {},
): Promise<RunningGateway> {
  const gateway = new McpGateway(service);
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

/** Makes rollbacks from the API and the console use the upstreams. */
function undoByJobs(service: RunningService, gateway: McpGateway): void {
  service.connectors = () => gateway.connectors();
  service.drills = drillsThrough(gateway);
  const undo = { ...gateway.services.undo, stop: service.background.signal, today: service.today };
  const tools = httpJobTools(service, undo)!;
  service.stateReader = { reader: tools.reader!, objection: tools.objection };
  if (service.jobTools !== null) return;
  service.jobTools = tools;
  service.background.track(watchJobs(service.core, service.jobTools, service.background.signal));
}

async function serve(service: RunningService, gateway: McpGateway): Promise<RunningGateway> {
  const { settings, auth, core } = service;
  const server = httpOf(service, { readiness: async () => gateway.readiness() });
  mountConsole(server, { app: service, auth });
  const sessions = [
    new McpSessions(core.env, service.quotas),
    new McpSessions(core.env, service.quotas),
  ] as const;
  // The port is known only once the server listens.
  let address = "";
  const mount = (one: McpSessions, parts: EndpointOwn) => {
    const resource = (host: string | undefined) =>
      protectedResource(settings.oidc, settings.gateway_url ?? addressAs(host, address), parts.path);
    mountResourceMetadata(server, parts.path, resource);
    return mountEndpoint(server, { ...common(service, one), ...parts, resource });
  };
  const agents = mount(sessions[0], agentParts(gateway));
  const operators = mount(sessions[1], operatorParts(gateway));
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
    service.background.every(interval_ms, "probing", () => runServerProbe(service, gatewayProbe(service)));
  const listening = await startListening(server, settings.listen.host, settings.listen.port);
  address = listening.url;
  service.bound_port = listening.port;
  return {
    ...listening,
    gateway,
    async stop() {
      const until = performance.now() + SERVICE_LIMITS.stop_ms;
      // In-flight calls get some time to end. Event streams never end on their own.
      const stopped = listening.stop();
      for (const one of sessions) one.endStreams();
      await settleWithin(gateway.idle(), SERVICE_LIMITS.drain_ms / 2, core);
      await Promise.all([agents.close(), operators.close()]);
      await stopped;
      await Promise.all(sessions.map((one) => one.close()));
      await gateway.close();
      await service.close(until);
    },
  };
}

type Common = Pick<EndpointDeps, "guard" | "sessions" | "log" | "authenticate" | "today" | "quotas">;

type EndpointOwn = Omit<EndpointDeps, keyof Common | "resource">;

function common({ settings, auth, log, quotas }: RunningService, sessions: McpSessions): Common {
  return {
    guard: originGuard(settings),
    sessions,
    log,
    quotas,
    authenticate: (header, resource) => auth.identify(header, resource),
    today: (credential) => auth.current(credential),
  };
}

function agentParts(gateway: McpGateway): EndpointOwn {
  return {
    path: "/mcp",
    admit(principal) {
      if (!hasRole(principal, "agent")) throw forbiddenError(ROLE_MESSAGES.agent, "role_required");
    },
    heard: ({ principal, expires_ms }, token) =>
      gateway.tokens.noteSubject(principal.id, { token, expires_ms }),
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

/** Run of the session: the one it was opened with, or a new one. Throws at once if the principal can have neither. */
function sessionRun(gateway: McpGateway, principal: CallerPrincipal, named: BoundRun | undefined) {
  if (named !== undefined) return () => named;
  gateway.runs.mayOpen(principal);
  gateway.waiting.lookAgain(principal);
  return gateway.runs.ofSession();
}

function operatorParts(gateway: McpGateway): EndpointOwn {
  return {
    path: "/operator/mcp",
    admit(principal) {
      if (!hasRole(principal, "auditor"))
        throw forbiddenError("auditor role or higher required", "role_required");
    },
    open(_principal, _run, _era, method) {
      return { server: createOperatorPeer(gateway, method), close: () => {} };
    },
  };
}

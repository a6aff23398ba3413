/** The governed proxy of a running service: who may use it, their runs, and where it listens. */
import type { AddressInfo } from "node:net";
import { isLoopbackHost } from "../../config/loopback.ts";
import type { LoadedSettings } from "../../config/settings.ts";
import { GatewayRuns } from "../../gateway/session/runs.ts";
import { type CallerPrincipal, hasRole, ROLE_MESSAGES } from "../../govern/roles.ts";
import { invalidError, SvcError } from "../../kernel/errors.ts";
import { sameSecret } from "../../kernel/hash.ts";
import { dispatchOperation } from "../../operations/pipeline/dispatch.ts";
import { openApproversGuard } from "../../operations/signing/approvers-guard.ts";
import { RunAuthority } from "../../proxy/authority.ts";
import type { ProxyDeps } from "../../proxy/deps.ts";
import type { ProxyCaller, ProxyRules } from "../../proxy/governed.ts";
import { httpTools } from "../../proxy/http-tools.ts";
import { GoverningProxy } from "../../proxy/server.ts";
import { credentialRefusal, ProxyRefusal } from "../../proxy/wire.ts";
import { httpRoutes } from "../../rules/http/routes.ts";
import type { RunningService } from "../service.ts";
import { requestCarrier } from "./http-undo.ts";

export interface RunningProxy {
  readonly proxy: GoverningProxy;
  /** Certificate of the authority that clients have to trust. */
  readonly ca_pem: string;
  stop(): Promise<void>;
}

type Identify = ProxyDeps["identify"];

/** What a proxy needs from its decider, which is this process or a server. */
export interface ProxyParts extends Pick<ProxyDeps, "log" | "now" | "identify">, Omit<ProxyRules, "reads"> {
  readonly settings: LoadedSettings;
}

/** Starts a proxy that does not listen yet and decides by the data of this process. */
export async function createProxy(service: RunningService, identify?: Identify): Promise<RunningProxy> {
  const { settings, core, log } = service;
  const manifests = () => core.rules().manifests;
  return startProxy({
    settings,
    log,
    now: () => core.env.now(),
    identify: identify ?? byKey(service),
    manifests,
    wait_ms: settings.approvals.wait_ms,
    showsBefore: (tool) => manifests().active(tool)?.before !== undefined,
    guard: await openApproversGuard(service),
  });
}

export function startProxy({
  settings,
  manifests,
  showsBefore,
  wait_ms,
  guard,
  ...rest
}: ProxyParts): RunningProxy {
  const carrier = requestCarrier(settings);
  const origins = [...httpRoutes(manifests()).origins, ...carrier.vault.origins];
  const authority = new RunAuthority([...new Set(origins.map(({ host }) => host))], rest.now());
  const proxy = new GoverningProxy({
    rules: {
      manifests,
      showsBefore,
      wait_ms,
      reads: httpTools(carrier, manifests),
      guard,
    },
    ...carrier,
    ...rest,
    authority,
    allow_hosts: settings.allow_hosts,
  });
  return { proxy, ca_pem: authority.pem, stop: () => proxy.close() };
}

/** Identifies the calls of a confined command. */
export interface RunDoor {
  /** SHA-256 of the launcher's secret, which proves that a call comes from inside. */
  readonly sandbox: string;
  /** The credential of the command, if other programs can connect too. */
  readonly password?: string;
}

/** A proxy for one confined command. That command is the only client, and has its own run. */
export async function createRunProxy(
  service: RunningService,
  { sandbox, password }: RunDoor,
): Promise<RunningProxy & { run_id: string }> {
  const { settings } = service;
  const principal: CallerPrincipal = {
    id: `stdio:${settings.actor}`,
    name: settings.actor,
    roles: ["agent"],
    groups: [],
    tenant: settings.tenant,
    max_permissions: ["*"],
    allow_observe: true,
  };
  const run = new GatewayRuns(service).fresh(principal, { sandbox });
  await run.open();
  const { run_id } = run;
  const caller = callerOf(service, principal, { run_id, open: () => run.open(), isCurrent: () => true });
  return { ...(await createProxy(service, onlyClient(caller, password))), run_id };
}

/** The confined command is the caller of every connection. */
export function onlyClient(caller: ProxyCaller, password?: string): Identify {
  return async (header) => {
    if (password !== undefined && !sameSecret(readCredential(header) ?? "", password))
      throw credentialRefusal("this proxy is for the command of svc run alone");
    return caller;
  };
}

/** The agent of an API key, in the run of its unnamed calls. */
function byKey(service: RunningService): Identify {
  const { auth } = service;
  const runs = new GatewayRuns(service);
  return async (header) => {
    const token = readCredential(header);
    if (token === undefined)
      throw credentialRefusal(
        "send an agent key with Proxy-Authorization: Bearer, or as the password of Basic",
      );
    const identified = await auth.authenticateToken(token).catch((error: unknown) => {
      if (error instanceof SvcError && error.code === "unauthenticated")
        throw credentialRefusal(error.message);
      throw error;
    });
    const { principal } = identified;
    if (!hasRole(principal, "agent")) throw new ProxyRefusal("forbidden", ROLE_MESSAGES.agent);
    const runOf = runs.ofSessionless();
    const run = runOf === null ? runs.fresh(principal) : await runOf(principal);
    const isCurrent = () => auth.current(identified) !== null;
    return callerOf(service, principal, { run_id: run.run_id, open: () => run.open(), isCurrent });
  };
}

function callerOf(
  app: RunningService,
  principal: CallerPrincipal,
  run: Pick<ProxyCaller, "run_id" | "open" | "isCurrent">,
): ProxyCaller {
  return {
    ...run,
    perform: (op, input, { seen, signal = new AbortController().signal } = {}) =>
      dispatchOperation(
        op,
        { app, principal, signal, reads_by: "gateway", ...(seen === undefined ? {} : { seen }) },
        input,
      ),
  };
}

function readCredential(header: string | undefined): string | undefined {
  const bearer = /^bearer +(\S+) *$/i.exec(header ?? "")?.[1];
  if (bearer !== undefined) return bearer;
  const basic = /^basic +([A-Za-z0-9+/=]+) *$/i.exec(header ?? "")?.[1];
  if (basic === undefined) return undefined;
  const text = Buffer.from(basic, "base64").toString("utf8");
  const at = text.indexOf(":");
  return at < 0 ? undefined : text.slice(at + 1);
}

/** Listens on loopback. Credentials would cross a network in the clear elsewhere. */
export async function listenOn({ proxy }: RunningProxy, host: string, port: number): Promise<string> {
  if (!isLoopbackHost(host))
    throw invalidError("--listen: the proxy listens without TLS, so the address must be a loopback address");
  await new Promise<void>((resolve, reject) => {
    proxy.server.once("error", reject);
    proxy.server.listen({ host, port }, () => resolve());
  });
  const { address, family, port: bound } = proxy.server.address() as AddressInfo;
  return `http://${family === "IPv6" ? `[${address}]` : address}:${bound}`;
}

/** What the parts of the proxy share, and which hosts are named. */
import type { HttpOrigin } from "../rules/http/routes.ts";
import { httpRoutes } from "../rules/http/routes.ts";
import type { ServiceLogger } from "../telemetry/log.ts";
import type { RunAuthority } from "./authority.ts";
import type { RequestCarrier } from "./carry.ts";
import type { ProxyCaller, ProxyRules } from "./governed.ts";

export interface ProxyDeps extends RequestCarrier {
  readonly rules: ProxyRules;
  readonly authority: RunAuthority;
  /** Hosts that pass without approval. They can be private. */
  readonly allow_hosts: readonly string[];
  readonly log: ServiceLogger;
  now(): number;
  /** The agent with this `Proxy-Authorization`. Throws a refusal with status 407. */
  identify(authorization: string | undefined): Promise<ProxyCaller>;
}

const isDefaultPort = (port: number): boolean => port === 80 || port === 443;

/** Whether a manifest or a credential names the host. A host that is named on its usual port is named on both usual ports. */
export function isNamedHost({ rules, vault }: ProxyDeps, { host, port }: HttpOrigin): boolean {
  return [...httpRoutes(rules.manifests()).origins, ...vault.origins].some(
    (origin) =>
      origin.host === host && (origin.port === port || (isDefaultPort(origin.port) && isDefaultPort(port))),
  );
}

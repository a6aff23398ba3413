/** The URL at which clients reach this server, for metadata and links that they follow. */
import type { ServiceApp } from "../app.ts";

type ReachableApp = Pick<ServiceApp, "settings" | "bound_port">;

export function publicUrl({ settings, bound_port }: ReachableApp): string {
  const { gateway_url, console_url, listen } = settings;
  const host = listen.host.includes(":") ? `[${listen.host}]` : listen.host;
  return gateway_url ?? console_url ?? `http://${host}:${bound_port ?? listen.port}`;
}

/** The metadata of the AuthZEN API, as its standard and its access request profile name the members. */
export function authzenMetadata(app: ReachableApp): Record<string, unknown> {
  const base = publicUrl(app);
  return {
    policy_decision_point: base,
    access_evaluation_endpoint: `${base}/access/v1/evaluation`,
    access_evaluations_endpoint: `${base}/access/v1/evaluations`,
    access_request_endpoint: `${base}/access/v1/requests`,
    capabilities: ["urn:openid:authzen:capability:access-request"],
  };
}

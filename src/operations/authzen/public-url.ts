/** The URL at which clients reach this server, for metadata and links that they follow. */
import type { LoadedSettings } from "../../config/settings.ts";

type PublicSettings = Pick<LoadedSettings, "gateway_url" | "console_url" | "listen">;

export function publicUrl({ gateway_url, console_url, listen }: PublicSettings): string {
  const host = listen.host.includes(":") ? `[${listen.host}]` : listen.host;
  return gateway_url ?? console_url ?? `http://${host}:${listen.port}`;
}

/** The metadata of the AuthZEN API, as its standard and its access request profile name the members. */
export function authzenMetadata(settings: PublicSettings): Record<string, unknown> {
  const base = publicUrl(settings);
  return {
    policy_decision_point: base,
    access_evaluation_endpoint: `${base}/access/v1/evaluation`,
    access_evaluations_endpoint: `${base}/access/v1/evaluations`,
    access_request_endpoint: `${base}/access/v1/requests`,
    capabilities: ["urn:openid:authzen:capability:access-request"],
  };
}

/** A verifier of tokens over a fake issuer, and what it says of a token. */
import { type OidcSettings, OidcVerifier } from "../../src/auth/oidc.ts";
import { SvcError } from "../../src/kernel/errors.ts";
import type { FakeIssuer } from "./issuer.ts";

export const INVALID = "unauthenticated: invalid credential";

export const told = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "accepted",
    (error: unknown) =>
      error instanceof SvcError ? `${error.code}: ${error.message}` : `not ours: ${error}`,
  );

export function verifier(from: FakeIssuer, change: Partial<OidcSettings> = {}, warnings: string[] = []) {
  const settings: OidcSettings = {
    issuer: from.url,
    audience: ["svc", "svc-beta"],
    groups_claim: "groups",
    max_permissions: null,
    tenant_map: {},
    role_map: { ops: "operator", bots: "agent", people: "approver" },
    ...change,
  };
  return new OidcVerifier(settings, {
    egress: from.egress,
    env: from.env,
    warn: (message) => warnings.push(message),
  });
}

/** Roles and principals. Roles are cumulative from auditor upward; agent is a separate role. */
import { globMatches, isGlob } from "../kernel/text/glob.ts";

export const PRINCIPAL_ROLES = ["agent", "auditor", "approver", "operator", "admin"] as const;
export type PrincipalRole = (typeof PRINCIPAL_ROLES)[number];

const LADDER: readonly PrincipalRole[] = ["auditor", "approver", "operator", "admin"];

/** Authenticated caller. */
export interface CallerPrincipal {
  /** Kind, issuer and name together. Compared, never shown. */
  id: string;
  /** Name in ledger records. */
  name: string;
  roles: readonly PrincipalRole[];
  groups: readonly string[];
  tenant: string | null;
  /** True if all roles apply only within the tenant; other tenants' data does not exist for this principal. */
  tenant_only?: boolean | undefined;
  /** Globs of permissions that a run can request; null allows every permission in the manifests. */
  max_permissions: readonly string[] | null;
  allow_observe: boolean;
  /** True if the agent can plan and execute rollbacks of its own runs. */
  self_rollback?: boolean | undefined;
  /** True if the agent can send users' texts to its runs. */
  may_give?: boolean | undefined;
  /** True for a launcher that confines agents. Its word that a run is confined counts. */
  may_sandbox?: boolean | undefined;
  /** Fingerprint of the presented key; absent without a key. */
  credential?: string | undefined;
  /** Those who act for this principal, outermost first; absent if it acts itself. */
  acting?: readonly string[] | undefined;
}

/** Stored principal of a delegation, job or session, whose authority is checked again later. */
export interface StoredPrincipal {
  principal: string;
  groups: string[];
  /** Tenant that the principal was bound to. */
  tenant?: string | undefined;
  /** Fingerprint of the key used. Authority ends with that key, even if the name gets a new one. */
  credential?: string | undefined;
}

export function toStoredPrincipal(principal: CallerPrincipal): StoredPrincipal {
  const { id, groups, credential } = principal;
  const tenant = tenantBinding(principal);
  return {
    principal: id,
    groups: [...groups],
    ...(tenant === null ? {} : { tenant }),
    ...(credential === undefined ? {} : { credential }),
  };
}

/** Tenant that a principal's roles are limited to; null for service-wide principals. */
export function tenantBinding({
  tenant,
  tenant_only,
}: Pick<CallerPrincipal, "tenant" | "tenant_only">): string | null {
  return tenant_only === true ? tenant : null;
}

/**
 * Explains why roles cannot be bound to this tenant, or returns null. Halts match tenants by glob, so the name must not
 * be a glob.
 */
export function tenantBindingProblem(tenant: string | null): string | null {
  if (tenant === null) return "needs the tenant of the key; add tenant";
  return isGlob(tenant) ? "needs a tenant whose name has none of * ? { }" : null;
}

/** True if the principal can see this tenant's data. */
export function seesTenant(principal: CallerPrincipal, tenant: string | null): boolean {
  const own = tenantBinding(principal);
  return own === null || own === tenant;
}

/** Resolves a stored principal to its current authority; null if its credential, role or issuer is no longer valid. */
export type ResolvePrincipal = (kept: StoredPrincipal) => CallerPrincipal | null;

/**
 * True if work that began under this authority can continue, because its holder still has the role. Without a stored
 * authority, no check applies.
 */
export function isStillAuthorized(
  authority: StoredPrincipal | undefined,
  today: ResolvePrincipal | undefined,
  role: PrincipalRole,
  or: (now: CallerPrincipal) => boolean = () => false,
): boolean {
  if (authority === undefined || today === undefined) return true;
  const principal = today(authority);
  return principal !== null && (hasRole(principal, role) || or(principal));
}

/** Parts of a principal id. Several kinds or issuers can use the same name. */
export interface PrincipalName {
  kind: string;
  issuer: string | null;
  name: string;
}

/** Reserved actor name of the probe. Its requests send no notifications. */
export const PROBE_ACTOR = "svc-probe";

export const keyId = (name: string): string => `key:${name}`;
export const tokenId = (issuer: string, subject: string): string => `oidc:${issuer}#${subject}`;
/** A token whose holder lets others act. Each chain of actors is a separate principal. */
export const actingTokenId = (issuer: string, subject: string, acting: readonly string[]): string =>
  `act:${issuer}#${JSON.stringify([subject, ...acting])}`;
export const localId = (name: string): string => `local:${name}`;

export function principalName(id: string): PrincipalName {
  const [, kind = "", rest = ""] = /^([a-z]+):(.*)$/s.exec(id) ?? [];
  if (kind !== "oidc" && kind !== "act") return { kind, issuer: null, name: rest };
  // An issuer is a URL without a fragment, so the first `#` is the separator.
  const at = rest.indexOf("#");
  return { kind, issuer: rest.slice(0, at), name: rest.slice(at + 1) };
}

/** The people behind a run or a request: its actor, and those who act for it. */
export function requestersOf({
  actor,
  acting = [],
}: {
  actor: string;
  acting?: readonly string[] | undefined;
}): readonly string[] {
  return [actor, ...acting];
}

/** The actor as text, with those who act for it: `ann, by helper and crawler`. */
export function actorText({
  actor,
  acting,
}: {
  actor: string;
  acting?: readonly string[] | undefined;
}): string {
  return acting === undefined ? actor : `${actor}, by ${acting.join(" and ")}`;
}

/** Shared principal of all users of an open console. */
export function localConsolePrincipal(role: "auditor" | "approver" | "operator"): CallerPrincipal {
  return {
    id: localId("local-console"),
    name: "local-console",
    roles: [role],
    groups: [],
    tenant: null,
    max_permissions: [],
    allow_observe: false,
  };
}

export function hasRole(principal: CallerPrincipal, role: PrincipalRole): boolean {
  if (role === "agent") return principal.roles.includes("agent");
  const wanted = LADDER.indexOf(role);
  return principal.roles.some((held) => LADDER.indexOf(held) >= wanted);
}

/** True if an agent can roll back its own runs. */
export const canRollBackOwnRuns = (principal: CallerPrincipal): boolean =>
  principal.self_rollback === true && hasRole(principal, "agent");

/** True if the credential can request this declared permission. */
export function canRequestPermission(
  { max_permissions: caps }: Pick<CallerPrincipal, "max_permissions">,
  permission: string,
): boolean {
  return caps === null || caps.includes(permission) || caps.some((cap) => globMatches(cap, permission));
}

/** Error messages for callers without the role. */
export const ROLE_MESSAGES: Record<PrincipalRole, string> = {
  agent: "agent role required",
  auditor: "auditor role required",
  approver: "approver role required",
  operator: "operator role required",
  admin: "admin only",
};

/** Actor names of the service itself; no key can use them. */
export const RESERVED_NAMES: ReadonlySet<string> = new Set([
  "engine",
  "local-console",
  "cli",
  "svc",
  PROBE_ACTOR,
]);

/** Principals of the probe, at surfaces with principals and in the library. */
export const PROBE_PRINCIPALS: readonly string[] = [localId(PROBE_ACTOR), `library:${PROBE_ACTOR}`];

/** True for the probe. Checks the principal, since a key or token can have the same name. */
export const isProbe = (principal: string): boolean => PROBE_PRINCIPALS.includes(principal);

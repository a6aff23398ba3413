/** Roles and principals. Roles are cumulative from auditor upward; agent stands apart. */
import { globMatches, isGlob } from "../kernel/glob.ts";

export const ROLES = ["agent", "auditor", "approver", "operator", "admin"] as const;
export type Role = (typeof ROLES)[number];

const LADDER: readonly Role[] = ["auditor", "approver", "operator", "admin"];

/** Whoever is asking, after authentication. */
export interface Principal {
  /** Kind, issuer and name together; never shown, always compared. */
  id: string;
  /** The name that stands on the ledger. */
  name: string;
  roles: readonly Role[];
  groups: readonly string[];
  tenant: string | null;
  /** Whether every role holds within the tenant only: what belongs to others is not there. */
  tenant_only?: boolean | undefined;
  /** Globs of permissions a run may ask for; null where every permission of the manifests is allowed. */
  max_permissions: readonly string[] | null;
  allow_observe: boolean;
  /** Whether the agent may plan and carry out the rollback of its own runs. */
  self_rollback?: boolean | undefined;
  /** Which of its holder's keys was presented, by its fingerprint; absent for whoever has none. */
  credential?: string | undefined;
}

/** What is kept of a principal whose authority has to be looked at again later: by a delegation, a job, a session. */
export interface KeptPrincipal {
  principal: string;
  groups: string[];
  /** The tenant that the principal was bound to. */
  tenant?: string | undefined;
  /** Authority lent or used with one key ends with that key, whoever has the name by then. */
  credential?: string | undefined;
}

export function keptOf(principal: Principal): KeptPrincipal {
  const { id, groups, credential } = principal;
  const tenant = boundTo(principal);
  return {
    principal: id,
    groups: [...groups],
    ...(tenant === null ? {} : { tenant }),
    ...(credential === undefined ? {} : { credential }),
  };
}

/** The tenant that a principal's roles are confined to; null for whoever acts for the whole service. */
export function boundTo({ tenant, tenant_only }: Pick<Principal, "tenant" | "tenant_only">): string | null {
  return tenant_only === true ? tenant : null;
}

/** Why roles cannot be bound to this tenant, or null. Halts name tenants by globs: a name must mean itself alone. */
export function boundProblem(tenant: string | null): string | null {
  if (tenant === null) return "needs the tenant that the key is bound to; write tenant, too";
  return isGlob(tenant) ? "needs a tenant whose name has none of * ? { }" : null;
}

/** Whether what belongs to this tenant is there for the principal. */
export function seesTenant(principal: Principal, tenant: string | null): boolean {
  const own = boundTo(principal);
  return own === null || own === tenant;
}

/** The principal as it is now; null once its credential, its role or its issuer no longer counts. */
export type Today = (kept: KeptPrincipal) => Principal | null;

/** Whether work goes on that was begun by its authority: its holder still has the role; without one no role is looked at. */
export function stillHolds(
  authority: KeptPrincipal | undefined,
  today: Today | undefined,
  role: Role,
  or: (now: Principal) => boolean = () => false,
): boolean {
  if (authority === undefined || today === undefined) return true;
  const principal = today(authority);
  return principal !== null && (hasRole(principal, role) || or(principal));
}

/** Who a principal is, taken apart: two kinds, or two issuers, may know the same name. */
export interface PrincipalName {
  kind: string;
  issuer: string | null;
  name: string;
}

/** The reserved name under which the probe calls; people are not told of what it does. */
export const PROBE_ACTOR = "svc-probe";

export const keyId = (name: string): string => `key:${name}`;
export const tokenId = (issuer: string, subject: string): string => `oidc:${issuer}#${subject}`;
export const localId = (name: string): string => `local:${name}`;

export function principalName(id: string): PrincipalName {
  const [, kind = "", rest = ""] = /^([a-z]+):(.*)$/s.exec(id) ?? [];
  if (kind !== "oidc") return { kind, issuer: null, name: rest };
  // An issuer is a URL without a fragment, so the first sign is the one between the two.
  const at = rest.indexOf("#");
  return { kind, issuer: rest.slice(0, at), name: rest.slice(at + 1) };
}

/** Everybody at an open console is this one person. */
export function localPerson(role: "auditor" | "approver" | "operator"): Principal {
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

export function hasRole(principal: Principal, role: Role): boolean {
  if (role === "agent") return principal.roles.includes("agent");
  const wanted = LADDER.indexOf(role);
  return principal.roles.some((held) => LADDER.indexOf(held) >= wanted);
}

/** Whether an agent may roll back what it did itself. */
export const mayUndoOwn = (principal: Principal): boolean =>
  principal.self_rollback === true && hasRole(principal, "agent");

/** Whether a permission that the manifests declare is within what the credential may ask for. */
export function mayRequest(
  { max_permissions: caps }: Pick<Principal, "max_permissions">,
  permission: string,
): boolean {
  return caps === null || caps.includes(permission) || caps.some((cap) => globMatches(cap, permission));
}

/** What a caller without the role is told. */
export const ROLE_MESSAGES: Record<Role, string> = {
  agent: "agent role required",
  auditor: "auditor role required",
  approver: "approver role required",
  operator: "operator role required",
  admin: "admin only",
};

/** Names that the service itself uses as actors; no key may take them. */
export const RESERVED_NAMES: ReadonlySet<string> = new Set([
  "engine",
  "local-console",
  "cli",
  "svc",
  PROBE_ACTOR,
]);

/** Who the probe is where a surface asks for a principal, and in the library. */
export const PROBE_PRINCIPALS: readonly string[] = [localId(PROBE_ACTOR), `library:${PROBE_ACTOR}`];

/** Whether the probe asked. It goes by who asks and not by the name alone, which a key or a token may have, too. */
export const isProbe = (principal: string): boolean => PROBE_PRINCIPALS.includes(principal);

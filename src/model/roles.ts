/** Roles and principals. Roles are cumulative from auditor upward; agent stands apart. */

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
  /** Globs of permissions a run may ask for; null where every permission of the manifests is allowed. */
  max_permissions: readonly string[] | null;
  allow_observe: boolean;
}

export function hasRole(principal: Principal, role: Role): boolean {
  if (role === "agent") return principal.roles.includes("agent");
  const wanted = LADDER.indexOf(role);
  return principal.roles.some((held) => LADDER.indexOf(held) >= wanted);
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
export const RESERVED_NAMES: ReadonlySet<string> = new Set(["engine", "local-console", "cli", "svc"]);

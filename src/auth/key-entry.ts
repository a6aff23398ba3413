/** Parser and validation for one entry of the API key file. */
import type { ExpiringItem } from "../govern/expiry.ts";
import {
  PRINCIPAL_ROLES,
  type PrincipalRole,
  RESERVED_NAMES,
  tenantBindingProblem,
} from "../govern/roles.ts";
import { tryTimestamp } from "../kernel/duration.ts";
import { messageOf } from "../kernel/errors.ts";
import { sha256Hex } from "../kernel/hash.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import { compileGlob } from "../kernel/text/glob.ts";
import { didYouMean } from "../rules/schema-problems.ts";

/** An entry with all defaults filled in. Timestamps keep their original text. */
export interface KeyEntry {
  name: string;
  roles: PrincipalRole[];
  key_sha256: string;
  max_permissions: string[];
  groups: string[];
  tenant: string | null;
  tenant_only: boolean;
  not_before: string | null;
  expires_at: string | null;
  disabled: boolean;
  allow_observe: boolean;
  self_rollback: boolean;
  may_give: boolean;
  may_sandbox: boolean;
}

const FIELDS = [
  "name",
  "role",
  "roles",
  "key_sha256",
  "max_permissions",
  "groups",
  "tenant",
  "tenant_only",
  "not_before",
  "expires_at",
  "disabled",
  "allow_observe",
  "self_rollback",
  "may_give",
  "may_sandbox",
] as const;
/** Matches most names. Only the others need the slower check. */
const PLAIN = /^[\x21-\x7e]+$/;
const NAME_CHARS = 256;
const LIST_ENTRIES = 1_000;
/** Hashes of an unset shell variable, with and without the newline of echo. */
const HASHES_OF_NOTHING: ReadonlySet<string> = new Set(["", "\n", "\r\n"].map((text) => sha256Hex(text)));

export function keyExpiry({ expires_at }: Pick<KeyEntry, "expires_at">): ExpiringItem {
  return { expires_ms: expires_at === null ? null : tryTimestamp(expires_at)! };
}

/** Whether a key can both request calls and approve them. svc doctor warns about such keys. */
export function canRequestAndApprove({ roles }: KeyEntry): boolean {
  return roles.includes("agent") && roles.some((role) => role !== "agent" && role !== "auditor");
}

/**
 * Parses by hand instead of by schema, because a server reads files with up to 100,000 entries while it serves
 * requests.
 */
export function readEntry(value: JsonValue): { entry: KeyEntry | undefined; problems: string[] } {
  if (!isJsonObject(value)) return { entry: undefined, problems: ["must be an object"] };
  const fields = new FieldReader(value);
  const entry: KeyEntry = {
    name: fields.name(),
    roles: fields.roles(),
    key_sha256: fields.hash(),
    max_permissions: fields.permissions(),
    groups: fields.texts("groups"),
    tenant: fields.tenant(),
    tenant_only: fields.flag("tenant_only"),
    not_before: fields.timestamp("not_before"),
    expires_at: fields.timestamp("expires_at"),
    disabled: fields.flag("disabled"),
    allow_observe: fields.flag("allow_observe"),
    self_rollback: fields.flag("self_rollback"),
    may_give: fields.flag("may_give"),
    may_sandbox: fields.flag("may_sandbox"),
  };
  const { problems } = fields;
  fields.unknown();
  const unbound = entry.tenant_only ? tenantBindingProblem(entry.tenant) : null;
  if (unbound !== null) problems.push(`tenant_only: ${unbound}`);
  if (
    entry.not_before !== null &&
    entry.expires_at !== null &&
    tryTimestamp(entry.expires_at)! <= tryTimestamp(entry.not_before)!
  ) {
    problems.push("expires_at: is not after not_before, so the key is never valid");
  }
  return { entry: problems.length === 0 ? entry : undefined, problems };
}

class FieldReader {
  readonly problems: string[] = [];
  private readonly value: JsonObject;

  constructor(value: JsonObject) {
    this.value = value;
  }

  private get(field: (typeof FIELDS)[number]): JsonValue | undefined {
    return this.value[field] ?? undefined;
  }

  private fail<T>(field: string, message: string, instead: T): T {
    this.problems.push(`${field}: ${message}`);
    return instead;
  }

  name(): string {
    const name = this.get("name");
    if (typeof name !== "string" || name === "")
      return this.fail("name", "is missing; write who holds the key", "");
    if (name.length > NAME_CHARS) return this.fail("name", `must have at most ${NAME_CHARS} characters`, "");
    if (!PLAIN.test(name) && (/[\p{C}\u2028\u2029]/u.test(name) || name.trim() !== name)) {
      return this.fail("name", "must not contain control characters, or begin or end with a space", "");
    }
    if (RESERVED_NAMES.has(name))
      return this.fail("name", "is a name of the service itself; choose another", "");
    return name;
  }

  roles(): PrincipalRole[] {
    const role = this.get("role");
    const roles = this.get("roles");
    if (role !== undefined && roles !== undefined)
      return this.fail("roles", "cannot be combined with role; keep one of the two", []);
    // `role` and `roles` each accept one role or a list.
    const given = [role ?? roles ?? []].flat();
    if (given.length === 0) {
      return this.fail("roles", `is missing; write one or more of ${PRINCIPAL_ROLES.join(", ")}`, []);
    }
    const held = new Set<PrincipalRole>();
    for (const item of given) {
      if ((PRINCIPAL_ROLES as readonly JsonValue[]).includes(item)) held.add(item as PrincipalRole);
      else
        this.fail(
          "roles",
          `must be one of ${PRINCIPAL_ROLES.join(", ")}${didYouMean(item, PRINCIPAL_ROLES)}`,
          null,
        );
    }
    return [...held];
  }

  hash(): string {
    const hash = this.get("key_sha256");
    if (typeof hash !== "string" || !/^[0-9a-f]{64}$/.test(hash)) {
      return this.fail("key_sha256", "must be the SHA-256 of the key as 64 lowercase hex digits", "");
    }
    if (HASHES_OF_NOTHING.has(hash)) {
      const message = "is the hash of an empty key, which everybody has; make a key with svc keys add";
      return this.fail("key_sha256", message, "");
    }
    return hash;
  }

  permissions(): string[] {
    const list = this.texts("max_permissions");
    for (const pattern of list) {
      if (pattern.length > SERVICE_LIMITS.permission_chars)
        this.fail(
          "max_permissions",
          `an entry is longer than ${SERVICE_LIMITS.permission_chars} characters`,
          null,
        );
      if (PLAIN.test(pattern) && !/[{}]/.test(pattern)) continue;
      try {
        compileGlob(pattern);
      } catch (error) {
        this.fail("max_permissions", messageOf(error), null);
      }
    }
    return list;
  }

  texts(field: "max_permissions" | "groups"): string[] {
    const list = this.get(field);
    if (list === undefined) return [];
    const good =
      Array.isArray(list) &&
      list.length <= LIST_ENTRIES &&
      list.every((item) => typeof item === "string" && item !== "");
    return good
      ? [...(list as string[])]
      : this.fail(field, `must be a list of at most ${LIST_ENTRIES} texts`, []);
  }

  tenant(): string | null {
    const tenant = this.get("tenant");
    if (tenant === undefined) return null;
    const good =
      typeof tenant === "string" && tenant !== "" && tenant.length <= NAME_CHARS && !/\p{C}/u.test(tenant);
    return good ? tenant : this.fail("tenant", "must be a text without control characters", null);
  }

  timestamp(field: "not_before" | "expires_at"): string | null {
    const text = this.get(field);
    if (text === undefined) return null;
    if (typeof text === "string" && tryTimestamp(text) !== undefined) return text;
    return this.fail(field, "must be an ISO 8601 date or timestamp, such as 2027-01-31T00:00:00Z", null);
  }

  flag(
    field: "disabled" | "allow_observe" | "self_rollback" | "may_give" | "may_sandbox" | "tenant_only",
  ): boolean {
    const flag = this.get(field);
    if (flag === undefined) return false;
    return typeof flag === "boolean" ? flag : this.fail(field, "must be true or false", true);
  }

  /** Rejects unknown fields: a misspelled `expires_at` would make a key that never expires. */
  unknown(): void {
    for (const field of Object.keys(this.value)) {
      if ((FIELDS as readonly string[]).includes(field)) continue;
      this.problems.push(`${JSON.stringify(field.slice(0, 60))}: unknown field${didYouMean(field, FIELDS)}`);
    }
  }
}

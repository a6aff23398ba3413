/** One entry of the API key file: what it may hold, and everything that can be wrong with it. */
import { tryTimestamp } from "../kernel/duration.ts";
import { messageOf } from "../kernel/errors.ts";
import { compileGlob } from "../kernel/glob.ts";
import { sha256Hex } from "../kernel/hash.ts";
import { isJsonObject, type Json, type JsonObject } from "../kernel/json.ts";
import { LIMITS } from "../kernel/limits.ts";
import { didYouMean } from "../model/problems.ts";
import { boundProblem, RESERVED_NAMES, ROLES, type Role } from "../model/roles.ts";

/** An entry with every default filled in; timestamps stay as they were written. */
export interface KeyEntry {
  name: string;
  roles: Role[];
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
] as const;
/** Most names; only others need the slower look. */
const PLAIN = /^[\x21-\x7e]+$/;
const NAME_CHARS = 256;
const LIST_ENTRIES = 1_000;
/** What hashing a variable that was not set gives, with and without the line end of a shell's echo. */
const HASHES_OF_NOTHING: ReadonlySet<string> = new Set(["", "\n", "\r\n"].map((text) => sha256Hex(text)));

/** A key that can ask for a call and also approve it; svc doctor warns of these. */
export function asksAndApproves({ roles }: KeyEntry): boolean {
  return roles.includes("agent") && roles.some((role) => role !== "agent" && role !== "auditor");
}

/** Written by hand rather than as a schema: a file may hold 100,000 entries and is read while serving. */
export function readEntry(value: Json): { entry: KeyEntry | undefined; problems: string[] } {
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
  };
  const { problems } = fields;
  fields.unknown();
  const unbound = entry.tenant_only ? boundProblem(entry.tenant) : null;
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

  private get(field: (typeof FIELDS)[number]): Json | undefined {
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
      return this.fail("name", "must not hold control characters, nor begin or end with a space", "");
    }
    if (RESERVED_NAMES.has(name))
      return this.fail("name", "is a name of the service itself; choose another", "");
    return name;
  }

  roles(): Role[] {
    const role = this.get("role");
    const roles = this.get("roles");
    if (role !== undefined && roles !== undefined)
      return this.fail("roles", "cannot stand beside role; keep one of the two", []);
    // Either name takes one role or a list of them.
    const given = [role ?? roles ?? []].flat();
    if (given.length === 0) {
      return this.fail("roles", `is missing; write one or more of ${ROLES.join(", ")}`, []);
    }
    const held = new Set<Role>();
    for (const item of given) {
      if ((ROLES as readonly Json[]).includes(item)) held.add(item as Role);
      else this.fail("roles", `must be one of ${ROLES.join(", ")}${didYouMean(item, ROLES)}`, null);
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
      if (pattern.length > LIMITS.permission_chars)
        this.fail("max_permissions", `an entry is longer than ${LIMITS.permission_chars} characters`, null);
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

  flag(field: "disabled" | "allow_observe" | "self_rollback" | "tenant_only"): boolean {
    const flag = this.get(field);
    if (flag === undefined) return false;
    return typeof flag === "boolean" ? flag : this.fail(field, "must be true or false", true);
  }

  /** A misspelt `expires_at` would otherwise be a key that never expires. */
  unknown(): void {
    for (const field of Object.keys(this.value)) {
      if ((FIELDS as readonly string[]).includes(field)) continue;
      this.problems.push(`${JSON.stringify(field.slice(0, 60))}: unknown field${didYouMean(field, FIELDS)}`);
    }
  }
}

/**
 * Edits of the key file: atomic, one at a time across all processes, in the file's order. No edit can lock every admin
 * out. Entries that an edit does not change are written exactly as they were.
 */
import { stat } from "node:fs/promises";
import { readTextFile, writeFileAtomic } from "../config/files.ts";
import type { PrincipalRole } from "../govern/roles.ts";
import type { RuntimeEnv } from "../kernel/env.ts";
import { conflictError, invalidError, notFoundError, ProblemsError } from "../kernel/errors.ts";
import { sha256Hex } from "../kernel/hash.ts";
import type { JsonObject, JsonValue } from "../kernel/json/json.ts";
import { withEditLock } from "./edit-lock.ts";
import { type KeyEntry, readEntry } from "./key-entry.ts";
import type { KeyFile } from "./key-file.ts";
import { KeyIndexHistory } from "./key-index-history.ts";
import { type KeyList as Keys, parseKeysInSlices } from "./key-list.ts";
import { fingerprintOf, KeyRing } from "./keys.ts";

/** A key entry for display. The fingerprint distinguishes keys without helping a reader to guess one. */
export interface KeyView {
  index: number;
  name: string;
  roles: PrincipalRole[];
  groups: string[];
  tenant: string | null;
  /** Present if the roles apply within the tenant only. */
  tenant_only?: true;
  max_permissions: string[];
  not_before: string | null;
  expires_at: string | null;
  disabled: boolean;
  allow_observe: boolean;
  /** Present if the agent can roll back its own runs. */
  self_rollback?: true;
  may_give?: true;
  may_sandbox?: true;
  fingerprint: string;
}

/** The editable fields. Null removes an optional field. */
export interface KeyFields {
  role?: string | string[] | null;
  roles?: string | string[] | null;
  groups?: string[] | null;
  tenant?: string | null;
  tenant_only?: boolean | null;
  max_permissions?: string[] | null;
  not_before?: string | null;
  expires_at?: string | null;
  disabled?: boolean | null;
  allow_observe?: boolean | null;
  self_rollback?: boolean | null;
  may_give?: boolean | null;
  may_sandbox?: boolean | null;
}

const EDITABLE = [
  "role",
  "roles",
  "groups",
  "tenant",
  "tenant_only",
  "max_permissions",
  "not_before",
  "expires_at",
  "disabled",
  "allow_observe",
  "self_rollback",
  "may_give",
  "may_sandbox",
];

interface KeyManagerOptions {
  readonly env: RuntimeEnv;
  /** The active ring of this process, which sees an edit at once. Other processes see it within two seconds. */
  readonly live?: KeyFile | undefined;
  /** Whether the first key creates the file. */
  readonly create_file?: boolean;
}

interface Edited<T> {
  readonly raw: JsonObject[];
  readonly answer: T;
}

export class KeyManager {
  readonly sights = new KeyIndexHistory();
  private readonly path: string;
  private readonly options: KeyManagerOptions;
  private running: Promise<unknown> = Promise.resolve();

  constructor(path: string, options: KeyManagerOptions) {
    this.path = path;
    this.options = options;
    this.sights.look(options.live?.ring.entries.map(keyView) ?? []);
  }

  async list(): Promise<KeyView[]> {
    const keys = (await this.load()).entries.map(keyView);
    this.sights.look(keys);
    return keys;
  }

  /** Creates a key. Only this response contains the key itself. */
  async create(name: string, fields: KeyFields): Promise<KeyView & { key: string }> {
    const key = `svc_${Buffer.from(this.options.env.bytes(32)).toString("base64url")}`;
    return this.edit(({ raw }) => {
      const given = { name, ...editable(fields), key_sha256: sha256Hex(key) };
      const entry = checked(withoutNulls(given));
      return { raw: [...raw, withoutNulls(given)], answer: { ...keyView(entry, raw.length), key } };
    });
  }

  async patch(index: number, fields: KeyFields, fingerprint?: string): Promise<KeyView> {
    return this.edit(({ raw, entries }) => {
      target(entries, index, fingerprint);
      const changes = editable(fields);
      const before = { ...raw[index]! };
      // `role` and `roles` are alternatives: the one in this edit replaces the other.
      if ("role" in changes || "roles" in changes) {
        delete before["role"];
        delete before["roles"];
      }
      const after = withoutNulls({ ...before, ...changes });
      const entry = checked(after);
      this.keepAnAdmin(entries, entries.with(index, entry));
      return { raw: raw.with(index, after), answer: keyView(entry, index) };
    });
  }

  async remove(index: number, fingerprint?: string): Promise<KeyView> {
    return this.edit(({ raw, entries }) => {
      const entry = target(entries, index, fingerprint);
      this.keepAnAdmin(entries, entries.toSpliced(index, 1));
      return { raw: raw.toSpliced(index, 1), answer: keyView(entry, index) };
    });
  }

  /** Queues the edits of this process. The lock file is for those of other processes. */
  private edit<T>(change: (now: Keys) => Edited<T>): Promise<T> {
    const result = this.running.then(() => this.editNow(change));
    this.running = result.catch(() => undefined);
    return result;
  }

  private async editNow<T>(change: (now: Keys) => Edited<T>): Promise<T> {
    const answer = await withEditLock(this.path, this.options.env, async (held) => {
      const { raw, answer } = change(await this.load());
      await held.check();
      await writeFileAtomic(this.path, `${JSON.stringify(raw, null, 2)}\n`, 0o600);
      return answer;
    });
    await this.options.live?.reload();
    return answer;
  }

  private async load(): Promise<Keys> {
    if (this.options.create_file && (await stat(this.path).catch(() => undefined)) === undefined) {
      return { raw: [], entries: [] };
    }
    try {
      return await parseKeysInSlices(await readTextFile(this.path), this.path);
    } catch (error) {
      // An operator is editing the file by hand now, or broke it. Do not build on it.
      if (error instanceof ProblemsError)
        throw conflictError(
          "key_file_unreadable",
          `the key file does not load, so it cannot be edited: ${error.problems[0]}`,
        );
      throw error;
    }
  }

  private keepAnAdmin(before: readonly KeyEntry[], after: readonly KeyEntry[]): void {
    const now = this.options.env.now();
    if (hasAdmin(before, now) && !hasAdmin(after, now)) {
      throw conflictError("last_admin", "this is the last enabled admin key; make another admin first");
    }
  }
}

export function keyView(entry: KeyEntry, index: number): KeyView {
  return {
    index,
    name: entry.name,
    roles: entry.roles,
    groups: entry.groups,
    tenant: entry.tenant,
    ...(entry.tenant_only ? { tenant_only: true as const } : {}),
    max_permissions: entry.max_permissions,
    not_before: entry.not_before,
    expires_at: entry.expires_at,
    disabled: entry.disabled,
    allow_observe: entry.allow_observe,
    ...(entry.self_rollback ? { self_rollback: true as const } : {}),
    ...(entry.may_give ? { may_give: true as const } : {}),
    ...(entry.may_sandbox ? { may_sandbox: true as const } : {}),
    fingerprint: fingerprintOf(entry.key_sha256),
  };
}

/** A service-wide admin, because a tenant-bound one cannot let the others in again. */
function hasAdmin(entries: readonly KeyEntry[], now: number): boolean {
  const ring = new KeyRing(
    entries.filter(({ roles, tenant_only }) => roles.includes("admin") && !tenant_only),
  );
  return ring.entries.some(({ key_sha256 }) => typeof ring.findHash(key_sha256, now) !== "string");
}

/** Finds the key to edit. Its index may have changed since the listing, so a given fingerprint decides. */
function target(entries: readonly KeyEntry[], index: number, fingerprint: string | undefined): KeyEntry {
  const entry = Number.isInteger(index) && index >= 0 ? entries[index] : undefined;
  const wanted = fingerprint?.trim().replace(/^(?:W\/)?"(.*)"$/, "$1");
  if (
    wanted !== undefined &&
    wanted !== "*" &&
    (entry === undefined || fingerprintOf(entry.key_sha256) !== wanted)
  ) {
    throw conflictError("key_moved", "another key has this index now; list the keys again");
  }
  if (entry === undefined) throw notFoundError("no key has this index", "unknown_key");
  return entry;
}

function editable(fields: KeyFields): JsonObject {
  const out: JsonObject = {};
  for (const [name, value] of Object.entries(fields)) {
    if (!EDITABLE.includes(name)) {
      throw invalidError(
        name === "name"
          ? "the name of a key cannot be changed; make a new key"
          : `unknown field ${JSON.stringify(name)}`,
      );
    }
    if (value !== undefined) out[name] = value as JsonValue;
  }
  return out;
}

function withoutNulls(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}

function checked(raw: JsonObject): KeyEntry {
  const { entry, problems } = readEntry(raw);
  if (entry === undefined) throw new ProblemsError(problems);
  return entry;
}

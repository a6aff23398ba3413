/**
 * Edits of the key file: whole or not at all, one at a time over all processes, in the file's order, and
 * never one that would lock every admin out. What an edit did not touch is written back as it was.
 */
import { stat } from "node:fs/promises";
import { readTextFile, writeFileAtomic } from "../config/files.ts";
import type { Env } from "../kernel/env.ts";
import { conflict, invalid, notFound, ProblemsError } from "../kernel/errors.ts";
import { sha256Hex } from "../kernel/hash.ts";
import type { Json, JsonObject } from "../kernel/json.ts";
import type { Role } from "../model/roles.ts";
import { withEditLock } from "./edit-lock.ts";
import { type KeyEntry, readEntry } from "./key-entry.ts";
import type { KeyFile } from "./key-file.ts";
import { type KeyList as Keys, parseKeysGently } from "./key-list.ts";
import { KeySights } from "./key-sights.ts";
import { fingerprintOf, KeyRing } from "./keys.ts";

/** An entry as it is shown; the fingerprint tells keys apart without helping a reader to guess one. */
export interface KeyView {
  index: number;
  name: string;
  roles: Role[];
  groups: string[];
  tenant: string | null;
  /** Present where the roles hold within the tenant only. */
  tenant_only?: true;
  max_permissions: string[];
  not_before: string | null;
  expires_at: string | null;
  disabled: boolean;
  allow_observe: boolean;
  /** Present where the agent may roll back its own runs. */
  self_rollback?: true;
  fingerprint: string;
}

/** What a person may set; null takes an optional field away. */
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
];

interface KeyManagerOptions {
  readonly env: Env;
  /** The ring in force in this process, which sees an edit at once; other processes see it within two seconds. */
  readonly live?: KeyFile | undefined;
  /** The first key may make the file. */
  readonly create_file?: boolean;
}

interface Edited<T> {
  readonly raw: JsonObject[];
  readonly answer: T;
}

export class KeyManager {
  readonly sights = new KeySights();
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

  /** The key itself is in this answer and nowhere else. */
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
      // The two spellings of one thing: whichever is written now replaces the other.
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

  /** Edits of this process wait for one another here; the lock is for those of others. */
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
      return await parseKeysGently(await readTextFile(this.path), this.path);
    } catch (error) {
      // A person is editing the file by hand right now, or broke it: nothing may be built on top of that.
      if (error instanceof ProblemsError)
        throw conflict(
          "key_file_unreadable",
          `the key file does not load, so it cannot be edited: ${error.problems[0]}`,
        );
      throw error;
    }
  }

  private keepAnAdmin(before: readonly KeyEntry[], after: readonly KeyEntry[]): void {
    const now = this.options.env.now();
    if (hasAdmin(before, now) && !hasAdmin(after, now)) {
      throw conflict("last_admin", "this is the last enabled admin key; make another admin first");
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
    fingerprint: fingerprintOf(entry.key_sha256),
  };
}

/** One for the whole service: who is bound to a tenant cannot let the others back in. */
function hasAdmin(entries: readonly KeyEntry[], now: number): boolean {
  const ring = new KeyRing(
    entries.filter(({ roles, tenant_only }) => roles.includes("admin") && !tenant_only),
  );
  return ring.entries.some(({ key_sha256 }) => typeof ring.findHash(key_sha256, now) !== "string");
}

/** The index may have moved since the caller looked; the fingerprint, where given, says which key is meant. */
function target(entries: readonly KeyEntry[], index: number, fingerprint: string | undefined): KeyEntry {
  const entry = Number.isInteger(index) && index >= 0 ? entries[index] : undefined;
  const wanted = fingerprint?.trim().replace(/^(?:W\/)?"(.*)"$/, "$1");
  if (
    wanted !== undefined &&
    wanted !== "*" &&
    (entry === undefined || fingerprintOf(entry.key_sha256) !== wanted)
  ) {
    throw conflict("key_moved", "another key has this index now; list the keys again");
  }
  if (entry === undefined) throw notFound("no key has this index", "unknown_key");
  return entry;
}

function editable(fields: KeyFields): JsonObject {
  const out: JsonObject = {};
  for (const [name, value] of Object.entries(fields)) {
    if (!EDITABLE.includes(name)) {
      throw invalid(
        name === "name"
          ? "the name of a key cannot be changed; make a new key"
          : `unknown field ${JSON.stringify(name)}`,
      );
    }
    if (value !== undefined) out[name] = value as Json;
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

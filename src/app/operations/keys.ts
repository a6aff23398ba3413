/** API keys: listing and managing the entries of the key file. The ledger names the key, never its value. */
import * as z from "zod";
import type { KeyFields, KeyManager, KeyView } from "../../auth/manage.ts";
import { conflict, forbidden, notFound } from "../../kernel/errors.ts";
import type { LedgerEvent } from "../../ledger/events.ts";
import { boundTo, ROLES } from "../../model/roles.ts";
import { type App, announce } from "../app.ts";
import { isKeyShown, ownTenant } from "../door/access.ts";
import { type Caller, operation } from "../door/operation.ts";
import { noFields, nullable, text } from "./schemas.ts";

const feature = (app: App) => (app.keys === null ? "no key file is configured on this server" : null);
const manager = (app: App): KeyManager => app.keys!;

const names = z.array(text(256)).max(1_000);
/** As in the key file: one role, or a list. */
const roles = z.union([z.enum(ROLES), z.array(z.enum(ROLES)).min(1).max(64)], {
  error: `must be one of ${ROLES.join(", ")}, or a list of them`,
});
const fields = {
  role: roles.optional(),
  roles: roles.optional(),
  groups: names.optional(),
  tenant: nullable(text(256)).optional(),
  tenant_only: z.boolean().optional(),
  max_permissions: names.optional(),
  not_before: nullable(text(64)).optional(),
  expires_at: nullable(text(64)).optional(),
  disabled: z.boolean().optional(),
  allow_observe: z.boolean().optional(),
  self_rollback: z.boolean().optional(),
};

const keyShape = {
  index: z.int(),
  name: z.string(),
  roles: z.array(z.enum(ROLES)),
  groups: z.array(z.string()),
  tenant: nullable(z.string()),
  tenant_only: z.literal(true).optional(),
  max_permissions: z.array(z.string()),
  not_before: nullable(z.string()),
  expires_at: nullable(z.string()),
  disabled: z.boolean(),
  allow_observe: z.boolean(),
  self_rollback: z.literal(true).optional(),
  fingerprint: z.string(),
};
const keyView = z.strictObject(keyShape);

const index = z.int().min(0).max(999_999_999);
/** The entry's fingerprint as its list showed it. */
const fingerprint = z.string().optional();

/** The lowest index whose entry was deleted, for every process of the store and those after them. */
const MOVED = "key_indexes_moved_from";

async function record(
  { app, principal }: Caller,
  event: LedgerEvent,
  detail: string,
  deleted?: number,
): Promise<void> {
  const { core } = app;
  const written = await core.store.transact({
    needs: deleted === undefined ? [] : [["meta", MOVED]],
    run(tx) {
      if (deleted !== undefined) {
        const before = tx.get("meta", MOVED);
        if (typeof before !== "number" || deleted < before) tx.put("meta", MOVED, deleted);
      }
      return tx.append({ event, actor: principal.name, ts_ms: core.env.now(), detail });
    },
  });
  announce(core.listeners, [written]);
}

/** Keys of one name are one principal: a bound caller makes none of a name that stands for another principal elsewhere. */
async function assertFree(call: Caller, name: string): Promise<void> {
  if (boundTo(call.principal) === null) return;
  const entries = await manager(call.app).list();
  if (entries.some((entry) => entry.name === name && !isKeyShown(call.app, entry)))
    throw conflict("name_taken", `the name ${name} is taken; choose another`);
}

/**
 * To a caller that is bound to a tenant, a key's index is a number out of its fingerprint: the place in the file would tell
 * how many keys others have. It lies above every place, so that neither is taken for the other.
 */
function asShown<T extends KeyView>({ principal }: Caller, entry: T): T {
  if (boundTo(principal) === null) return entry;
  const number = Number.parseInt(entry.fingerprint.slice(0, 12), 16);
  return { ...entry, index: 100_000_000 + (number % 900_000_000) };
}

async function shownKeys(call: Caller): Promise<KeyView[]> {
  const entries = await manager(call.app).list();
  return entries.filter((entry) => isKeyShown(call.app, entry)).map((entry) => asShown(call, entry));
}

/** The entry that a request names, by its place in the file, and the fingerprint that it must have. */
async function named(call: Caller, index: number, given: string | undefined) {
  if (boundTo(call.principal) === null) return { place: index, fingerprint: await meant(call, index, given) };
  const key = (await shownKeys(call)).find((one) => one.index === index);
  if (key === undefined) throw notFound("no key has this index", "unknown_key");
  const place = (await manager(call.app).list()).findIndex((one) => one.fingerprint === key.fingerprint);
  return { place, fingerprint: given ?? key.fingerprint };
}

/** What a caller that is bound to a tenant makes and changes stays bound to it. */
function withinTenant({ principal }: Caller, given: KeyFields): KeyFields {
  const own = boundTo(principal);
  if (own === null) return given;
  if (given.tenant === null || given.tenant_only === false)
    throw forbidden(
      `this credential is bound to the tenant ${own}: its keys stay bound to it, too`,
      "tenant_bound",
    );
  return { ...given, tenant: ownTenant(principal, given.tenant)!, tenant_only: true };
}

const readerOf = ({ principal }: Caller): string => `${principal.id} ${principal.credential ?? ""}`;

/**
 * The fingerprint of the key that a request means: the one it gives, else the one that its caller last saw at this
 * index. Where neither is known and entries were deleted, the index alone could be the neighbour's.
 */
async function meant(call: Caller, index: number, given: string | undefined): Promise<string> {
  if (given !== undefined) return given;
  const keys = manager(call.app);
  const entry = (await keys.list())[index];
  if (entry === undefined) throw notFound(`there is no key entry ${index}`, "unknown_key");
  const moved_from = await call.app.core.store.get("meta", MOVED);
  if (typeof moved_from === "number") keys.sights.moved(moved_from);
  const fingerprint = keys.sights.meant(readerOf(call), entry);
  if (fingerprint !== undefined) return fingerprint;
  throw conflict(
    "key_moved",
    "keys were deleted, so this index may be another key's by now: list the keys, or send If-Match with the fingerprint of the one you mean",
  );
}

export const listKeys = operation({
  id: "list_keys",
  summary: "List key entries; no key and no hash is shown",
  role: "admin",
  within_tenant: true,
  input: noFields,
  output: z.strictObject({ keys: z.array(keyView) }),
  feature,
  async run(call) {
    const keys = await shownKeys(call);
    manager(call.app).sights.listed(readerOf(call), keys);
    return { keys };
  },
});

export const createKey = operation({
  id: "create_key",
  summary: "Make a key; its value is in this answer and nowhere else",
  role: "admin",
  within_tenant: true,
  input: z.strictObject({ name: text(256), ...fields }),
  output: z.strictObject({ ...keyShape, key: z.string() }),
  feature,
  errors: { conflict: "the key file does not load, or the name is taken by a key outside the tenant" },
  async run(call, { name, ...given }) {
    await assertFree(call, name);
    const created = await manager(call.app).create(name, withinTenant(call, given as KeyFields));
    manager(call.app).sights.told(readerOf(call), created);
    await record(
      call,
      "key_created",
      `key ${created.name} (${created.roles.join(", ")}), fingerprint ${created.fingerprint}`,
    );
    return asShown(call, created);
  },
});

export const changeKey = operation({
  id: "change_key",
  summary: "Change a key entry; its fingerprint says which one is meant, once entries were deleted",
  role: "admin",
  within_tenant: true,
  input: z.strictObject({ index, fingerprint, ...fields }),
  output: keyView,
  feature,
  errors: {
    not_found: "no such entry",
    conflict: "the entry is another one by now, or the last enabled admin",
  },
  async run(call, { index, fingerprint, ...body }) {
    const key = await named(call, index, fingerprint);
    const fields = withinTenant(call, body as KeyFields);
    const changed = await manager(call.app).patch(key.place, fields, key.fingerprint);
    const what = Object.keys(body).sort().join(", ") || "nothing";
    await record(call, "key_changed", `key ${changed.name}: ${what} changed`);
    return asShown(call, changed);
  },
});

export const deleteKey = operation({
  id: "delete_key",
  summary: "Delete a key entry; its fingerprint says which one is meant, once entries were deleted",
  role: "admin",
  within_tenant: true,
  input: z.strictObject({ index, fingerprint }),
  output: keyView,
  feature,
  errors: {
    not_found: "no such entry",
    conflict: "the entry is another one by now, or the last enabled admin",
  },
  async run(call, { index, fingerprint }) {
    const key = await named(call, index, fingerprint);
    const removed = await manager(call.app).remove(key.place, key.fingerprint);
    const detail = `key ${removed.name}, fingerprint ${removed.fingerprint}`;
    await record(call, "key_deleted", detail, removed.index);
    return asShown(call, removed);
  },
});

/** API keys: lists and manages the entries of the key file. The ledger names the key, never its value. */
import * as z from "zod";
import type { KeyFields, KeyManager, KeyView } from "../auth/key-manager.ts";
import { allRows } from "../govern/port/pages.ts";
import { devicesOf } from "../govern/push/change-devices.ts";
import { PRINCIPAL_ROLES, type StoredPrincipal, tenantBinding } from "../govern/roles.ts";
import { revokeAllPasskeys } from "../govern/signing/enrol.ts";
import { keyOwner, ownerKey } from "../govern/signing/passkey.ts";
import { conflictError, forbiddenError, notFoundError } from "../kernel/errors.ts";
import type { LedgerEvent } from "../ledger/events.ts";
import { nullableSchema } from "../rules/nullable-schema.ts";
import { announceRecords, type ServiceApp } from "./app.ts";
import { effectiveTenant, isKeyShown } from "./pipeline/access.ts";
import { type ApiCaller, defineOperation } from "./pipeline/operation.ts";
import { boundedText, noFields } from "./schemas.ts";
import { sweepConsents } from "./upstreams/upstream-access.ts";

const feature = (app: ServiceApp) => (app.keys === null ? "no key file is configured on this server" : null);
const manager = (app: ServiceApp): KeyManager => app.keys!;

/** The state of a key in the ledger's `key_changed` records. */
export const keyStateText = (isDisabled: boolean): string => (isDisabled ? "disabled" : "enabled");

const names = z.array(boundedText(256)).max(1_000);
/** As in the key file: one role, or a list. */
const roles = z.union([z.enum(PRINCIPAL_ROLES), z.array(z.enum(PRINCIPAL_ROLES)).min(1).max(64)], {
  error: `must be one of ${PRINCIPAL_ROLES.join(", ")}, or a list of them`,
});
const fields = {
  role: roles.optional(),
  roles: roles.optional(),
  groups: names.optional(),
  tenant: nullableSchema(boundedText(256)).optional(),
  tenant_only: z.boolean().optional(),
  max_permissions: names.optional(),
  not_before: nullableSchema(boundedText(64)).optional(),
  expires_at: nullableSchema(boundedText(64)).optional(),
  disabled: z.boolean().optional(),
  allow_observe: z.boolean().optional(),
  self_rollback: z.boolean().optional(),
  may_give: z.boolean().optional(),
  may_sandbox: z.boolean().optional(),
};

const keyShape = {
  index: z.int(),
  name: z.string(),
  roles: z.array(z.enum(PRINCIPAL_ROLES)),
  groups: z.array(z.string()),
  tenant: nullableSchema(z.string()),
  tenant_only: z.literal(true).optional(),
  max_permissions: z.array(z.string()),
  not_before: nullableSchema(z.string()),
  expires_at: nullableSchema(z.string()),
  disabled: z.boolean(),
  allow_observe: z.boolean(),
  self_rollback: z.literal(true).optional(),
  may_give: z.literal(true).optional(),
  may_sandbox: z.literal(true).optional(),
  fingerprint: z.string(),
};
const keyView = z.strictObject(keyShape);

const index = z.int().min(0).max(999_999_999);
/** The entry's fingerprint from the listing. */
const fingerprint = z.string().optional();

/** Lowest index of a deleted entry, shared by all processes of the store. */
const MOVED = "key_indexes_moved_from";

async function record(
  { app, principal }: ApiCaller,
  event: LedgerEvent,
  detail: string,
  { deleted, ended, moved }: { deleted?: KeyView; ended?: KeyView; moved?: KeyView } = {},
): Promise<void> {
  const { core } = app;
  const owner = deleted === undefined ? null : keyOwner(deleted.fingerprint);
  const gone = deleted ?? ended;
  const devices = gone === undefined ? [] : [devicesOf(keyOwner(gone.fingerprint))];
  const written = await core.store.transact({
    needs: owner === null ? devices : [["meta", MOVED], ["passkeys", ownerKey(owner)], ...devices],
    run(tx) {
      for (const [table, key] of devices) if (tx.get(table, key) !== undefined) tx.delete(table, key);
      if (deleted !== undefined) {
        const before = tx.get("meta", MOVED);
        if (typeof before !== "number" || deleted.index < before) tx.put("meta", MOVED, deleted.index);
      }
      const record = tx.append({ event, actor: principal.name, ts_ms: core.env.now(), detail });
      return owner === null ? [record] : [record, ...revokeAllPasskeys(core, tx, owner, principal.name)];
    },
  });
  announceRecords(core.listeners, written);
  if (moved !== undefined) await moveBelongings(app, moved);
}

const bindingOf = ({ tenant, tenant_only }: KeyView) => tenantBinding({ tenant, tenant_only });

const isMoved = (before: KeyView, after: KeyView): boolean =>
  before.tenant !== after.tenant || bindingOf(before) !== bindingOf(after);

/**
 * Moves what belongs to a key to its new tenant. Otherwise the admins of the old one would see it, and its person would
 * not.
 */
async function moveBelongings({ core: { store } }: ServiceApp, key: KeyView): Promise<void> {
  const tenant = bindingOf(key);
  const held = ({ tenant: _, ...holder }: StoredPrincipal): StoredPrincipal =>
    tenant === null ? holder : { ...holder, tenant };
  const own = ownerKey(keyOwner(key.fingerprint));
  await store.transact({
    needs: [
      ["push_devices", own],
      ["passkeys", own],
    ],
    run(tx) {
      const devices = tx.get("push_devices", own);
      if (devices !== undefined)
        tx.put("push_devices", own, { ...devices, tenant, holder: held(devices.holder) });
      const passkeys = tx.get("passkeys", own);
      if (passkeys !== undefined)
        tx.put("passkeys", own, { ...passkeys, tenant, holder: held(passkeys.holder) });
    },
  });
  for await (const { key: id, doc: known } of allRows(store, "upstream_consents"))
    if (known.holder?.credential === key.fingerprint)
      await store.transact({
        needs: [["upstream_consents", id]],
        run(tx) {
          const doc = tx.get("upstream_consents", id);
          if (doc?.holder?.credential !== key.fingerprint) return;
          tx.put("upstream_consents", id, { ...doc, tenant: key.tenant, holder: held(doc.holder) });
        },
      });
}

/** Keys with the same name are one principal, so a tenant-bound caller cannot use a name taken outside its tenant. */
async function assertFree(call: ApiCaller, name: string): Promise<void> {
  if (tenantBinding(call.principal) === null) return;
  const entries = await manager(call.app).list();
  if (entries.some((entry) => entry.name === name && !isKeyShown(call.app, entry)))
    throw conflictError("name_taken", `the name ${name} is taken; choose another`);
}

/**
 * For a tenant-bound caller, derives a key's index from its fingerprint, because the position in the file would reveal
 * how many keys others have. The result is larger than any position, so the two cannot be confused.
 */
function asShown<T extends KeyView>({ principal }: ApiCaller, entry: T): T {
  if (tenantBinding(principal) === null) return entry;
  const number = Number.parseInt(entry.fingerprint.slice(0, 12), 16);
  return { ...entry, index: 100_000_000 + (number % 900_000_000) };
}

async function shownKeys(call: ApiCaller): Promise<KeyView[]> {
  const entries = await manager(call.app).list();
  return entries.filter((entry) => isKeyShown(call.app, entry)).map((entry) => asShown(call, entry));
}

/** Position in the file of the entry that a request names, and the fingerprint it must have. */
async function named(call: ApiCaller, index: number, given: string | undefined) {
  if (tenantBinding(call.principal) === null)
    return { place: index, fingerprint: await meant(call, index, given) };
  const key = (await shownKeys(call)).find((one) => one.index === index);
  if (key === undefined) throw notFoundError("no key has this index", "unknown_key");
  const place = (await manager(call.app).list()).findIndex((one) => one.fingerprint === key.fingerprint);
  return { place, fingerprint: given ?? key.fingerprint };
}

/** Keys that a tenant-bound caller creates or changes stay bound to its tenant. */
function withinTenant({ principal }: ApiCaller, given: KeyFields): KeyFields {
  const own = tenantBinding(principal);
  if (own === null) return given;
  if (given.tenant === null || given.tenant_only === false)
    throw forbiddenError(
      `this credential is bound to the tenant ${own}: its keys stay bound to that tenant too`,
      "tenant_bound",
    );
  return { ...given, tenant: effectiveTenant(principal, given.tenant)!, tenant_only: true };
}

const readerOf = ({ principal }: ApiCaller): string => `${principal.id} ${principal.credential ?? ""}`;

/**
 * Fingerprint of the key that a request means: the given one, or the one that its caller last saw at this index. If
 * neither is known and entries were deleted, the index could name a different key, which is a conflict.
 */
async function meant(call: ApiCaller, index: number, given: string | undefined): Promise<string> {
  if (given !== undefined) return given;
  const keys = manager(call.app);
  const entry = (await keys.list())[index];
  if (entry === undefined) throw notFoundError(`there is no key entry ${index}`, "unknown_key");
  const moved_from = await call.app.core.store.get("meta", MOVED);
  if (typeof moved_from === "number") keys.sights.moved(moved_from);
  const fingerprint = keys.sights.meant(readerOf(call), entry);
  if (fingerprint !== undefined) return fingerprint;
  throw conflictError(
    "key_moved",
    "keys were deleted, so this index may now belong to another key: list the keys, or send If-Match with the fingerprint of your key",
  );
}

export const listKeys = defineOperation({
  id: "list_keys",
  summary: "List key entries, without keys and hashes",
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

export const createKey = defineOperation({
  id: "create_key",
  summary: "Create a key; its value is only in this response",
  role: "admin",
  within_tenant: true,
  input: z.strictObject({ name: boundedText(256), ...fields }),
  output: z.strictObject({ ...keyShape, key: z.string() }),
  feature,
  errors: { conflict: "the key file does not load, or the name is taken by a key outside the tenant" },
  async run(call, { name, ...given }) {
    await assertFree(call, name);
    const created = await manager(call.app).create(name, withinTenant(call, given as KeyFields));
    manager(call.app).sights.noteShown(readerOf(call), created);
    await record(
      call,
      "key_created",
      `key ${created.name} (${created.roles.join(", ")}), fingerprint ${created.fingerprint}`,
    );
    return asShown(call, created);
  },
});

export const changeKey = defineOperation({
  id: "change_key",
  summary: "Change a key entry; once entries were deleted, its fingerprint identifies it",
  role: "admin",
  within_tenant: true,
  input: z.strictObject({ index, fingerprint, ...fields }),
  output: keyView,
  feature,
  errors: {
    not_found: "no such entry",
    conflict: "the index now belongs to another entry, or the entry is the last enabled admin",
  },
  async run(call, { index, fingerprint, ...body }) {
    const key = await named(call, index, fingerprint);
    const fields = withinTenant(call, body as KeyFields);
    const before = (await manager(call.app).list()).find((one) => one.fingerprint === key.fingerprint);
    const changed = await manager(call.app).patch(key.place, fields, key.fingerprint);
    const given = Object.keys(body).sort().join(", ") || "nothing";
    const what = given === "disabled" ? keyStateText(changed.disabled) : `${given} changed`;
    const ended = changed.disabled ? { ended: changed } : {};
    const moved = before !== undefined && isMoved(before, changed) ? { moved: changed } : {};
    await record(call, "key_changed", `key ${changed.name}: ${what}`, { ...ended, ...moved });
    if (changed.disabled) await sweepConsents(call.app, call.principal.name);
    return asShown(call, changed);
  },
});

export const deleteKey = defineOperation({
  id: "delete_key",
  summary: "Delete a key entry; once entries were deleted, its fingerprint identifies it",
  role: "admin",
  within_tenant: true,
  input: z.strictObject({ index, fingerprint }),
  output: keyView,
  feature,
  errors: {
    not_found: "no such entry",
    conflict: "the index now belongs to another entry, or the entry is the last enabled admin",
  },
  async run(call, { index, fingerprint }) {
    const key = await named(call, index, fingerprint);
    const removed = await manager(call.app).remove(key.place, key.fingerprint);
    const detail = `key ${removed.name}, fingerprint ${removed.fingerprint}`;
    await record(call, "key_deleted", detail, { deleted: removed });
    await sweepConsents(call.app, call.principal.name);
    return asShown(call, removed);
  },
});

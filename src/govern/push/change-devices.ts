/** Adds, changes and removes the devices of people. Nothing of it is recorded in the ledger. */
import { conflictError, forbiddenError, notFoundError, type SvcError } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { EngineCore } from "../core.ts";
import type { StoreTx, UnitOfWork } from "../port/store.ts";
import { type CallerPrincipal, hasRole, tenantBinding, toStoredPrincipal } from "../roles.ts";
import { ownerKey, passkeyOwner } from "../signing/passkey.ts";
import { deviceId, deviceOwnerKey, type PersonDevices, type PushDevice, type PushTarget } from "./device.ts";

export interface DeviceChange {
  person: PersonDevices;
  device: PushDevice;
}

export interface NewDevice extends PushTarget {
  label: string;
  server_key: string;
}

export const unknownDevice = (): SvcError => notFoundError("unknown device", "unknown_device");

/** Owner of the caller's devices. Throws for callers who did not sign in. */
export function requireDeviceOwner(principal: CallerPrincipal): string {
  const owner = passkeyOwner(principal);
  if (owner !== null) return owner;
  throw forbiddenError(
    "push messages go to a person: sign in with your own key, or at the issuer",
    "push_needs_person",
  );
}

/** Adds a device, or renews it under the same id. */
export function addDeviceUnit(
  core: EngineCore,
  principal: CallerPrincipal,
  given: NewDevice,
): UnitOfWork<DeviceChange> {
  const owner = requireDeviceOwner(principal);
  const key = ownerKey(owner);
  return {
    needs: [["push_devices", key]],
    run(tx) {
      const id = deviceId(owner, given.endpoint);
      const known = tx.get("push_devices", key)?.devices ?? [];
      const before = known.find((one) => one.id === id);
      const rest = known.filter((one) => one.id !== id);
      if (rest.length >= SERVICE_LIMITS.push_devices)
        throw conflictError(
          "push_full",
          `you have ${SERVICE_LIMITS.push_devices} devices; remove one before you add another`,
        );
      const device: PushDevice = {
        session: null,
        quiet: null,
        added_ms: core.env.now(),
        shown: [],
        held: false,
        last_ok_ms: null,
        last_error: null,
        ...before,
        ...given,
        id,
      };
      const person: PersonDevices = {
        owner,
        name: principal.name,
        tenant: tenantBinding(principal),
        holder: toStoredPrincipal(principal),
        devices: [...rest, device],
      };
      tx.put("push_devices", key, person);
      return { person, device };
    },
  };
}

type DeviceFields = Partial<Omit<PushDevice, keyof NewDevice | "id" | "added_ms">>;

/** Changes a device. Returns null if it is gone. */
export function changeDeviceUnit(
  id: string,
  change: (device: PushDevice) => DeviceFields | null,
): UnitOfWork<DeviceChange | null> {
  const key = deviceOwnerKey(id) ?? "";
  return {
    needs: [["push_devices", key]],
    run(tx) {
      const person = tx.get("push_devices", key);
      const device = person?.devices.find((one) => one.id === id);
      if (person === undefined || device === undefined) return null;
      const fields = change(device);
      if (fields === null) return null;
      const changed = { ...device, ...fields };
      const next = { ...person, devices: person.devices.map((one) => (one.id === id ? changed : one)) };
      tx.put("push_devices", key, next);
      return { person: next, device: changed };
    },
  };
}

/** Changes a device of the caller. */
export function changeOwnDeviceUnit(
  principal: CallerPrincipal,
  id: string,
  fields: DeviceFields,
): UnitOfWork<DeviceChange> {
  const own = passkeyOwner(principal);
  const unit = changeDeviceUnit(id, () => fields);
  return {
    ...unit,
    run(tx) {
      if (own === null || deviceOwnerKey(id) !== ownerKey(own)) throw unknownDevice();
      const changed = unit.run(tx);
      if (changed === null) throw unknownDevice();
      return changed;
    },
  };
}

/** Removes a device, as its person or an admin. */
export function removeDeviceUnit(principal: CallerPrincipal, id: string): UnitOfWork<DeviceChange> {
  const key = deviceOwnerKey(id) ?? "";
  return {
    needs: [["push_devices", key]],
    run(tx) {
      const person = tx.get("push_devices", key);
      const device = person?.devices.find((one) => one.id === id);
      if (person === undefined || device === undefined) throw unknownDevice();
      if (passkeyOwner(principal) !== person.owner && !hasRole(principal, "admin")) throw unknownDevice();
      dropFrom(tx, key, (one) => one.id !== id);
      return { person, device };
    },
  };
}

/** Removes a device that its push service no longer knows. The same endpoint can have been added again since. */
export function forgetDeviceUnit(id: string, auth: string): UnitOfWork<void> {
  const key = deviceOwnerKey(id) ?? "";
  return {
    needs: [["push_devices", key]],
    run: (tx) => dropFrom(tx, key, (one) => one.id !== id || one.auth !== auth),
  };
}

/** Removes a browser from a person, because another person added it. */
export function dropEndpointUnit(owner: string, endpoint: string): UnitOfWork<void> {
  const key = ownerKey(owner);
  return {
    needs: [["push_devices", key]],
    run: (tx) => dropFrom(tx, key, (one) => one.endpoint !== endpoint),
  };
}

/** Removes the person's devices that were added in this console session. */
export function endSessionUnit(owner: string, session: string): UnitOfWork<void> {
  const key = ownerKey(owner);
  return {
    needs: [["push_devices", key]],
    run: (tx) => dropFrom(tx, key, (one) => one.session !== session),
  };
}

/** Removes all devices of a credential. */
export function endDevicesUnit(owner: string): UnitOfWork<void> {
  const [table, key] = devicesOf(owner);
  return {
    needs: [[table, key]],
    run: (tx) => dropFrom(tx, key, () => false),
  };
}

/** Document of the devices of a credential, to remove them with it. */
export const devicesOf = (owner: string): ["push_devices", string] => ["push_devices", ownerKey(owner)];

function dropFrom(tx: StoreTx, key: string, keeps: (device: PushDevice) => boolean): void {
  const person = tx.get("push_devices", key);
  if (person === undefined) return;
  const devices = person.devices.filter(keeps);
  if (devices.length === 0) tx.delete("push_devices", key);
  else if (devices.length < person.devices.length) tx.put("push_devices", key, { ...person, devices });
}

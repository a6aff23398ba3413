/** Devices of people that get push messages: add, list, change, test and remove them. */
import { createECDH } from "node:crypto";
import * as z from "zod";
import {
  addDeviceUnit,
  changeOwnDeviceUnit,
  dropEndpointUnit,
  endDevicesUnit,
  endSessionUnit,
  forgetDeviceUnit,
  removeDeviceUnit,
  requireDeviceOwner,
  unknownDevice,
} from "../../govern/push/change-devices.ts";
import { deviceOwnerKey, isTimeZone, type PersonDevices, type PushDevice } from "../../govern/push/device.ts";
import { type CallerPrincipal, hasRole, type StoredPrincipal } from "../../govern/roles.ts";
import { ownerKey, passkeyOwner } from "../../govern/signing/passkey.ts";
import { invalidError, messageOf } from "../../kernel/errors.ts";
import { deliverPush } from "../../notify/deliver.ts";
import { loadSealer } from "../../notify/push/message.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import { unconfinedStore } from "../../store/tenant-store.ts";
import type { ServiceApp } from "../app.ts";
import { countOpenRequests } from "../documents.ts";
import { defineOperation } from "../pipeline/operation.ts";
import { givenId, noFields } from "../schemas.ts";
import { peopleWithDevices } from "./audience.ts";
import { isGone } from "./personal.ts";
import { pushOff, serverKeys } from "./server-keys.ts";

const LABEL_CHARS = 100;
const TIME = z.string().regex(/^(?:[01]\d|2[0-3]):[0-5]\d$/, "must be a time such as 22:00");
const quietHours = z
  .strictObject({
    from: TIME.meta({ description: "first minute without messages" }),
    to: TIME.meta({ description: "first minute with messages again; on the next day if not after from" }),
    zone: z
      .string()
      .max(64)
      .refine(isTimeZone, "must be a time zone such as Europe/Berlin")
      .meta({ description: "IANA time zone" }),
  })
  .refine(({ from, to }) => from !== to, "from and to must differ");

const deviceShape = z.strictObject({
  id: z.string(),
  name: z.string().meta({ description: "the person" }),
  label: z.string().meta({ description: "what the person calls the device" }),
  service: z.string().meta({ description: "host of the push service" }),
  quiet: nullableSchema(
    z.strictObject({
      from: z.string().meta({ description: "first minute without messages" }),
      to: z.string().meta({ description: "first minute with messages again" }),
      zone: z.string().meta({ description: "IANA time zone" }),
    }),
  ).meta({ description: "hours without messages; null for none" }),
  current: z
    .boolean()
    .meta({ description: "false if the browser has to subscribe again: this service's key changed" }),
  added_ms: z.int(),
  last_ok_ms: nullableSchema(z.int()).meta({
    description: "when a message was accepted last; null if never",
  }),
  last_error: nullableSchema(z.string()).meta({
    description: "why the last message was not accepted; null if it was",
  }),
  mine: z.boolean().meta({ description: "true for your own devices" }),
});
export type DeviceView = z.output<typeof deviceShape>;

const device_id = givenId("psh_<id>");

interface Viewer {
  principal: CallerPrincipal;
  server_key: string | null;
}

function deviceView(
  { principal, server_key }: Viewer,
  { owner, name }: PersonDevices,
  device: PushDevice,
): DeviceView {
  const { id, label, endpoint, quiet, added_ms, last_ok_ms, last_error } = device;
  return {
    id,
    name,
    label,
    service: new URL(endpoint).host,
    quiet,
    current: device.server_key === server_key,
    added_ms,
    last_ok_ms,
    last_error,
    mine: passkeyOwner(principal) === owner,
  };
}

async function viewerOf(app: ServiceApp, principal: CallerPrincipal): Promise<Viewer> {
  const off = pushOff(app) !== null;
  return { principal, server_key: off ? null : (await serverKeys(app)).public_key };
}

/** The store for a person's own devices, which stay theirs when their tenant changes. */
const ownStore = ({ core }: Pick<ServiceApp, "core">) => unconfinedStore(core.store);

function isOwn(principal: CallerPrincipal, device_id: string): boolean {
  const own = passkeyOwner(principal);
  return own !== null && deviceOwnerKey(device_id) === ownerKey(own);
}

async function ownDevices(app: ServiceApp, principal: CallerPrincipal): Promise<PersonDevices | undefined> {
  const own = passkeyOwner(principal);
  return own === null ? undefined : await ownStore(app).get("push_devices", ownerKey(own));
}

const binary = (bytes: number, what: string) =>
  z
    .string()
    .max(200)
    .refine((text) => /^[A-Za-z0-9_-]+=*$/.test(text) && Buffer.from(text, "base64url").length === bytes, {
      message: `must be ${bytes} bytes as base64url`,
    })
    .meta({ description: what });

/** Throws unless the key is a point of the curve, which encryption needs. */
function assertPublicKey(p256dh: string): void {
  const pair = createECDH("prime256v1");
  pair.generateKeys();
  try {
    pair.computeSecret(Buffer.from(p256dh, "base64url"));
  } catch {
    throw invalidError("keys.p256dh: must be a public key of P-256");
  }
}

/** One spelling of each endpoint, so that a browser is one device of one person. */
function plainEndpoint(endpoint: string): string | null {
  if (!URL.canParse(endpoint)) return null;
  const url = new URL(endpoint);
  url.hash = "";
  url.hostname = url.hostname.replace(/(?<!\.)\.+$/, "");
  return url.href;
}

/** The endpoint in its one spelling. Throws for endpoints that messages would not be sent to. */
async function checkedEndpoint(app: ServiceApp, given: string): Promise<string> {
  const endpoint = plainEndpoint(given);
  if (endpoint === null || !endpoint.startsWith("https:"))
    throw invalidError("endpoint: must be an https URL");
  const refused = await app.pushEgress.check(endpoint);
  if (refused !== null) throw invalidError(`endpoint: ${refused.message}`);
  return endpoint;
}

export const addDevice = defineOperation({
  id: "add_push",
  summary: "Send push messages to a browser of yours, or renew it",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({
    endpoint: z.string().max(2_000).meta({ description: "URL of the subscription at its push service" }),
    expirationTime: z
      .unknown()
      .optional()
      .meta({ description: "part of a browser's subscription; not used" }),
    keys: z
      .strictObject({
        p256dh: binary(65, "the browser's public key, base64url"),
        auth: binary(16, "the browser's secret, base64url"),
      })
      .meta({ description: "keys of the subscription" }),
    label: z
      .string()
      .trim()
      .min(1)
      .max(LABEL_CHARS)
      .regex(/^[^\p{C}\u2028\u2029]*$/u, "must not hold control or invisible characters")
      .optional()
      .meta({ description: "what you call the device" }),
  }),
  output: deviceShape,
  feature: pushOff,
  errors: { conflict: "you have too many devices" },
  async run({ app, principal }, { endpoint: named, keys, label }) {
    const owner = requireDeviceOwner(principal);
    assertPublicKey(keys.p256dh);
    const endpoint = await checkedEndpoint(app, named);
    const { public_key } = await serverKeys(app);
    const { p256dh, auth } = keys;
    const given = { endpoint, p256dh, auth, server_key: public_key, label: label ?? "browser" };
    const change = await ownStore(app).transact(addDeviceUnit(app.core, principal, given));
    await takeOver(app, owner, endpoint);
    return deviceView({ principal, server_key: public_key }, change.person, change.device);
  },
});

/** A browser shows the messages of the person who added it last, regardless of the tenants of the others. */
async function takeOver({ core }: ServiceApp, owner: string, endpoint: string): Promise<void> {
  const store = unconfinedStore(core.store);
  for (const other of await peopleWithDevices({ core: { ...core, store } }))
    if (other.owner !== owner && other.devices.some((device) => device.endpoint === endpoint))
      await store.transact(dropEndpointUnit(other.owner, endpoint));
}

export const listDevices = defineOperation({
  id: "list_push",
  summary: "List your devices that get push messages; an admin sees those of everybody",
  role: "auditor",
  within_tenant: true,
  input: noFields,
  output: z.strictObject({
    key: nullableSchema(z.string()).meta({
      description:
        "public key of this service, for `applicationServerKey`; null if it sends no push messages",
    }),
    devices: z.array(deviceShape).meta({ description: "devices, newest first" }),
  }),
  async run({ app, principal }) {
    const viewer = await viewerOf(app, principal);
    const own = await ownDevices(app, principal);
    const all = hasRole(principal, "admin") ? await peopleWithDevices(app) : [];
    const others = all.filter(({ owner }) => owner !== passkeyOwner(principal));
    const seen = own === undefined ? others : [own, ...others];
    const devices = seen.flatMap((person) =>
      person.devices.map((device) => deviceView(viewer, person, device)),
    );
    return { key: viewer.server_key, devices: devices.sort((a, b) => b.added_ms - a.added_ms) };
  },
});

export const changeDevice = defineOperation({
  id: "change_push",
  summary: "Set the quiet hours of your device",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({
    device_id,
    quiet: nullableSchema(quietHours).meta({ description: "hours without messages; null for none" }),
  }),
  output: deviceShape,
  errors: { not_found: "unknown device" },
  async run({ app, principal }, { device_id, quiet }) {
    const change = await ownStore(app).transact(changeOwnDeviceUnit(principal, device_id, { quiet }));
    return deviceView(await viewerOf(app, principal), change.person, change.device);
  },
});

export const removeDevice = defineOperation({
  id: "remove_push",
  summary: "Remove your device or, as an admin, any device",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({ device_id }),
  output: deviceShape,
  errors: { not_found: "unknown device" },
  async run({ app, principal }, { device_id }) {
    const store = isOwn(principal, device_id) ? ownStore(app) : app.core.store;
    const change = await store.transact(removeDeviceUnit(principal, device_id));
    return deviceView(await viewerOf(app, principal), change.person, change.device);
  },
});

const testResult = z.strictObject({
  ok: z.boolean().meta({ description: "true if the push service accepted the message" }),
  error: nullableSchema(z.string()).meta({ description: "why it was not accepted; null if it was" }),
});

export const testDevice = defineOperation({
  id: "test_push",
  summary: "Send a test message to your device",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({ device_id }),
  output: testResult,
  feature: pushOff,
  errors: { not_found: "unknown device" },
  async run({ app, principal }, { device_id }) {
    const person = await ownDevices(app, principal);
    const device = person?.devices.find(({ id }) => id === device_id);
    if (device === undefined) throw unknownDevice();
    return sendPushTest(app, device);
  },
});

type TestParts = Pick<ServiceApp, "core" | "settings" | "pushEgress">;

/** Sends one message at once. A device that its push service no longer knows is removed. */
export async function sendPushTest(app: TestParts, device: PushDevice): Promise<z.output<typeof testResult>> {
  const keys = await serverKeys(app);
  if (keys.public_key !== device.server_key)
    return { ok: false, error: "this service's key changed; turn the messages on again in that browser" };
  try {
    const seal = await loadSealer();
    const waiting = await countOpenRequests(app);
    const message = { type: "test", id: "test", rule: null, agent: null, waiting } as const;
    await deliverPush(seal(message, device, { keys, keep_s: TEST_KEEP_S, urgency: "high" }), {
      egress: app.pushEgress,
    });
    return { ok: true, error: null };
  } catch (error) {
    if (isGone(error)) await app.core.store.transact(forgetDeviceUnit(device.id, device.auth));
    const gone = isGone(error) ? "; the device was removed" : "";
    return { ok: false, error: `${messageOf(error)}${gone}` };
  }
}

const TEST_KEEP_S = 60;

/** Ties a device of the caller to a console session, so that signing out removes it. */
export async function bindDevice(
  app: ServiceApp,
  principal: CallerPrincipal,
  id: string,
  session: string,
): Promise<void> {
  await ownStore(app).transact(changeOwnDeviceUnit(principal, id, { session }));
}

/** The caller's device with this endpoint. */
export async function deviceAt(
  app: ServiceApp,
  principal: CallerPrincipal,
  endpoint: string,
): Promise<PushDevice | undefined> {
  const person = await ownDevices(app, principal);
  const plain = plainEndpoint(endpoint);
  return person?.devices.find((one) => plainEndpoint(one.endpoint) === plain);
}

/** Removes the devices of people whose key was disabled or has expired. */
export async function endPushOfKeys(
  app: Pick<ServiceApp, "core">,
  hasEnded: (holder: StoredPrincipal) => boolean,
): Promise<void> {
  for (const { owner, holder } of await peopleWithDevices(app))
    if (hasEnded(holder)) await app.core.store.transact(endDevicesUnit(owner));
}

/** Removes the devices of a console session that ends. */
export async function endPushSession(
  app: ServiceApp,
  principal: CallerPrincipal,
  session: string,
): Promise<void> {
  const owner = passkeyOwner(principal);
  if (owner !== null) await ownStore(app).transact(endSessionUnit(owner, session));
}

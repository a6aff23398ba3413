/**
 * Acts on security events of an identity provider: halts the agent whose session or credential ended, and removes the
 * devices that get the person's push messages.
 */
import type { ReceivedEvent } from "../auth/security-events.ts";
import { HALTS_KEY } from "../govern/document-keys.ts";
import { haltUnit } from "../govern/halts/halts.ts";
import { incidentNeeds } from "../govern/incidents/join-incident.ts";
import type { DocKey } from "../govern/port/store.ts";
import { devicesOf } from "../govern/push/change-devices.ts";
import { tokenId } from "../govern/roles.ts";
import { sha256Hex } from "../kernel/hash.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import { announceRecords, type ServiceApp } from "./app.ts";
import { joinOnHalt, type NamedSubject, subjectsOfHalt } from "./incidents/subjects.ts";

/** How long an event's id is kept. Older events are refused. */
const KEPT_MS = 10 * 365 * 86_400_000;

const REASONS: Readonly<Record<ReceivedEvent["halts"][number]["event"], string>> = {
  "session-revoked": "the identity provider revoked the session",
  "credential-change": "the identity provider reports a changed credential",
};

interface WantedHalt {
  actor: string;
  reason: string;
  subjects: readonly NamedSubject[];
}

/**
 * Halts the actors that the event names, by `caep:<issuer>`. Each event counts once, and an actor that this issuer
 * halted already stays halted by that halt. `names` is the issuer whose subjects are actors here.
 */
export async function applySecurityEvent(
  app: ServiceApp,
  event: ReceivedEvent,
  names: string,
): Promise<void> {
  const { core } = app;
  const wanted: WantedHalt[] = [];
  const devices: DocKey[] = [];
  for (const { event: type, subject } of event.halts) {
    if (subject.iss !== names) continue;
    const subjects = await subjectsOfHalt(app, { actor: subject.sub }, true);
    devices.push(devicesOf(tokenId(subject.iss, subject.sub)));
    wanted.push({ actor: subject.sub, reason: REASONS[type], subjects });
  }
  const by = `caep:${event.issuer}`;
  const key = `caep:${sha256Hex(JSON.stringify([event.issuer, event.jti]))}`;
  const records = await core.store.transact({
    needs: [
      ["replies", key],
      ["halts", HALTS_KEY],
      ...devices,
      ...incidentNeeds(wanted.flatMap(({ subjects }) => subjects)),
    ],
    run(tx) {
      if (tx.get("replies", key) !== undefined) return [];
      const at_ms = core.env.now() + KEPT_MS;
      tx.put("replies", key, { run_id: "", request_hash: "", body: null, at_ms });
      for (const [table, id] of devices) if (tx.get(table, id) !== undefined) tx.delete(table, id);
      const written: LedgerRecord[] = [];
      for (const { actor, reason, subjects } of wanted) {
        const active = tx.get("halts", HALTS_KEY)?.active ?? [];
        if (active.some((halt) => halt.by === by && halt.scope.actor === actor)) continue;
        const done = haltUnit(core, by, { actor, reason, literal: true }).run(tx);
        joinOnHalt(core, tx, done.halt, subjects);
        written.push(...done.records);
      }
      return written;
    },
  });
  announceRecords(core.listeners, records);
}

/**
 * All ledger events. Metrics, spans, labels and searches are typed over this table, so a new event does not compile
 * until each of them handles it.
 */
export const LEDGER_EVENTS = {
  blocked: "call refused",
  would_block: "call would be refused",
  approved: "approved",
  denied: "denied",
  intended: "call accepted",
  succeeded: "call succeeded",
  failed: "call failed",
  uncertain: "outcome unknown",
  compensating: "undo begun",
  compensated: "undone",
  compensation_failed: "undo failed",
  verified: "undo read back",
  verification_failed: "read-back did not match",
  unverified: "undo not read back",
  purged: "working data deleted",
  approval_expired: "approval expired",
  approval_escalated: "approval escalated",
  delegated: "authority delegated",
  delegation_revoked: "delegation revoked",
  granted: "calls granted ahead",
  grant_revoked: "grant revoked",
  plan_proposed: "plan proposed",
  plan_approved: "plan approved",
  plan_denied: "plan denied",
  halted: "halted",
  resumed: "resumed",
  key_created: "key created",
  key_changed: "key changed",
  key_deleted: "key deleted",
  passkey_added: "passkey added",
  passkey_revoked: "passkey revoked",
  upstream_connected: "upstream connected",
  upstream_revoked: "upstream revoked",
  manifest_published: "manifest published",
  manifest_approved: "manifest approved",
  manifest_deprecated: "manifest deprecated",
  policy_activated: "policy activated",
  reloaded: "configuration reloaded",
  witnessed: "checkpoint cosigned",
  probed: "guarantees probed",
  contained: "agent contained",
  drill_passed: "undo proven",
  drill_failed: "undo not proven",
  reconciled: "calls compared",
  effect_missing: "effect missing",
} as const;

export type LedgerEvent = keyof typeof LEDGER_EVENTS;

export const EVENT_NAMES = Object.keys(LEDGER_EVENTS) as LedgerEvent[];

export function isLedgerEvent(name: string): name is LedgerEvent {
  return Object.hasOwn(LEDGER_EVENTS, name);
}

/** Readable names of ledger events, as pages and exports show them. */
import { waitsForApproval } from "../govern/decide/approval-stage.ts";
import { isLedgerEvent, LEDGER_EVENTS } from "../ledger/events.ts";

export const HELD_CALL_WORDS = "waits for approval";

/** A call that is held for approval is not called refused. */
export function eventWords(event: string, detail: string | undefined): string {
  if (event === "blocked" && waitsForApproval(detail)) return HELD_CALL_WORDS;
  return isLedgerEvent(event) ? LEDGER_EVENTS[event] : event;
}

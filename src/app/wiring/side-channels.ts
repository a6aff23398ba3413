/**
 * Everything that listens to decisions: traces, metrics, capture, notifications. They hear of what was
 * already decided and recorded; whatever goes wrong in them is a warning and nothing more.
 */
import type { Listeners } from "../../engine/core.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { Logger } from "../../telemetry/log.ts";

export class SideChannels implements Listeners {
  private readonly listeners: Partial<Listeners>[] = [];
  private readonly log: Logger;

  constructor(log: Logger) {
    this.log = log;
  }

  add(listener: Partial<Listeners>): void {
    this.listeners.push(listener);
  }

  recorded: Listeners["recorded"] = (records, traceparent) => this.tell("recorded", records, traceparent);
  approvalRequested: Listeners["approvalRequested"] = (approval) => this.tell("approvalRequested", approval);
  planProposed: Listeners["planProposed"] = (plan) => this.tell("planProposed", plan);
  intentDecided: Listeners["intentDecided"] = (call) => this.tell("intentDecided", call);
  outcomeReported: Listeners["outcomeReported"] = (call) => this.tell("outcomeReported", call);

  private tell<K extends keyof Listeners>(event: K, ...facts: Parameters<Listeners[K]>): void {
    for (const listener of this.listeners) {
      try {
        (listener[event] as ((...facts: unknown[]) => void) | undefined)?.(...facts);
      } catch (error) {
        this.log.warn("a side channel failed", { event, error: messageOf(error) });
      }
    }
  }
}

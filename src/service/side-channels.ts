/**
 * Listeners to decisions: traces, metrics, capture, notifications. They receive decisions that are already recorded;
 * any failure in them is only a warning.
 */
import type { EngineListeners } from "../govern/core.ts";
import { messageOf } from "../kernel/errors.ts";
import type { ServiceLogger } from "../telemetry/log.ts";

export class SideChannels implements EngineListeners {
  private readonly listeners: Partial<EngineListeners>[] = [];
  private readonly log: ServiceLogger;

  constructor(log: ServiceLogger) {
    this.log = log;
  }

  add(listener: Partial<EngineListeners>): void {
    this.listeners.push(listener);
  }

  recorded: EngineListeners["recorded"] = (records, traceparent) =>
    this.tell("recorded", records, traceparent);
  approvalRequested: EngineListeners["approvalRequested"] = (approval) =>
    this.tell("approvalRequested", approval);
  planProposed: EngineListeners["planProposed"] = (plan) => this.tell("planProposed", plan);
  intentDecided: EngineListeners["intentDecided"] = (call) => this.tell("intentDecided", call);
  outcomeReported: EngineListeners["outcomeReported"] = (call) => this.tell("outcomeReported", call);

  private tell<K extends keyof EngineListeners>(event: K, ...facts: Parameters<EngineListeners[K]>): void {
    for (const listener of this.listeners) {
      try {
        (listener[event] as ((...facts: unknown[]) => void) | undefined)?.(...facts);
      } catch (error) {
        this.log.warn("a side channel failed", { event, error: messageOf(error) });
      }
    }
  }
}

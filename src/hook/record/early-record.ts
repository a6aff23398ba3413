/**
 * The record of a command, opened while the service decides, because both take time. A command that must wait or does
 * not run gives it back.
 */
import type { CallContext } from "../resident/services.ts";
import { type CallToOpen, type OpenedCall, openCall, type RecordPlace } from "./recorded-call.ts";

export class EarlyRecord {
  private readonly context: CallContext;
  private opening: Promise<OpenedCall | null> | null;

  constructor(context: CallContext, place: RecordPlace, call: CallToOpen) {
    // A record that was given back must not ask the carrier to wait.
    const extend = (ms: number) => {
      if (this.opening !== null) context.extend(ms);
    };
    this.context = context;
    // The request to the service goes out first.
    this.opening = new Promise((resolve) => setImmediate(resolve)).then(() =>
      this.opening === null ? null : openCall({ ...context, extend }, place, call),
    );
    this.opening.catch(ignore);
  }

  /** The record, for the command that now runs. Null after it was given back. */
  async take(): Promise<OpenedCall | null> {
    const opened = await this.opening;
    this.opening = null;
    return opened;
  }

  /** Gives the record back. Does nothing after `take`. */
  giveBack(): void {
    const { opening, context } = this;
    this.opening = null;
    void opening?.then((opened) => {
      if (opened?.window != null) context.records?.withdraw(opened.window);
    }, ignore);
  }
}

/** A record that failed fails the call that takes it. */
const ignore = (): void => {};

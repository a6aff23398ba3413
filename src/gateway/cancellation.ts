/** Whether the client still wants the answer. Lighter than an AbortSignal, because every call has one. */
export class Cancellation {
  private over = false;
  private readonly acts = new Set<() => void>();

  static of(signal: AbortSignal): Cancellation {
    const cancellation = new Cancellation();
    cancellation.follow(signal);
    return cancellation;
  }

  /** Is cancelled with the signal, until the answered function is called: a signal may outlive many calls. */
  follow(signal: AbortSignal): () => void {
    const act = (): void => this.cancel();
    if (signal.aborted) act();
    else signal.addEventListener("abort", act, { once: true });
    return () => signal.removeEventListener("abort", act);
  }

  get cancelled(): boolean {
    return this.over;
  }

  cancel(): void {
    if (this.over) return;
    this.over = true;
    for (const act of this.acts) act();
    this.acts.clear();
  }

  /** Calls `act` when it is cancelled; answers a function that takes that back. */
  onCancel(act: () => void): () => void {
    if (this.over) act();
    else this.acts.add(act);
    return () => this.acts.delete(act);
  }

  /** The same as a signal, for those who need one. */
  get signal(): AbortSignal {
    const controller = new AbortController();
    this.onCancel(() => controller.abort());
    return controller.signal;
  }
}

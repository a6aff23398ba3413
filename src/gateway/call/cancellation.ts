/** Tracks whether the client still wants the answer. Cheaper than an AbortSignal, because every call has one. */
export class CallCancellation {
  private over = false;
  private readonly acts = new Set<() => void>();

  static of(signal: AbortSignal): CallCancellation {
    const cancellation = new CallCancellation();
    cancellation.follow(signal);
    return cancellation;
  }

  /**
   * Cancels together with the signal. Returns a function that stops following, because a signal can outlive many calls.
   */
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

  /** Calls `act` on cancellation. Returns a function that unregisters it. */
  onCancel(act: () => void): () => void {
    if (this.over) act();
    else this.acts.add(act);
    return () => this.acts.delete(act);
  }

  /** The cancellation as an AbortSignal, for code that needs one. */
  get signal(): AbortSignal {
    const controller = new AbortController();
    this.onCancel(() => controller.abort());
    return controller.signal;
  }
}

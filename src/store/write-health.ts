/**
 * Tracks whether the store can write. After startup and after any failed write the answer is unknown, and the store is
 * not ready until a test write succeeds.
 */
export class WriteHealth {
  private failures = 0;
  /** The number of failures before the last successful test write. */
  private settled = -1;
  private running: Promise<void> | undefined;

  raise(): void {
    this.failures++;
  }

  /**
   * Runs a test write if the answer is unknown. Concurrent callers share it; a failure during the test needs a new one.
   */
  async settle(trial: () => Promise<unknown>): Promise<void> {
    if (this.settled === this.failures) return;
    this.running ??= this.run(trial).finally(() => {
      this.running = undefined;
    });
    await this.running;
  }

  private async run(trial: () => Promise<unknown>): Promise<void> {
    const { failures } = this;
    await trial();
    this.settled = failures;
  }
}

/** A document that does not exist. Deleting it is a durable write without an effect. */
export const WRITE_TEST_KEY = "trial";

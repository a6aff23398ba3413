/**
 * Whether recording works is known from having recorded. At the start, and after every attempt that failed, it is in
 * doubt, and readiness is not told before a trial has gone through.
 */
export class Doubt {
  private failures = 0;
  /** How many failures there had been when the last trial went through. */
  private settled = -1;
  private running: Promise<void> | undefined;

  raise(): void {
    this.failures++;
  }

  /** Runs the trial if there is any doubt, however many ask for it; what fails meanwhile is doubted anew. */
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

/** A document that does not exist: deleting it is written and made durable like anything else, and leaves nothing. */
export const TRIAL_KEY = "trial";

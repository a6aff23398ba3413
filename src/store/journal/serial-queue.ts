/** A serial queue: runs one task at a time, in order of arrival. */
export class SerialQueue {
  private last: Promise<unknown> = Promise.resolve();

  take<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.last.then(work, work);
    this.last = turn.catch(() => {});
    return turn;
  }

  /** Resolves when every task queued so far has succeeded or failed. */
  async idle(): Promise<void> {
    await this.last;
  }
}

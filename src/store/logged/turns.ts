/** One at a time, in the order of asking. */
export class Turns {
  private last: Promise<unknown> = Promise.resolve();

  take<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.last.then(work, work);
    this.last = turn.catch(() => {});
    return turn;
  }

  /** When everything that was asked for so far has ended, well or not. */
  async idle(): Promise<void> {
    await this.last;
  }
}

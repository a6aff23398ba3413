/**
 * Paces reads that are answered from memory. Such a read never waits for a device, so a caller that makes thousands of
 * them in a row would keep the event loop to itself.
 */

/** Reads and rows that one turn of the event loop answers. */
const UNITS_PER_TURN = 500;

export class ReadPacer {
  private spent = 0;
  private turn: Promise<void> | undefined;

  /** Counts reads or rows. Returns the next turn if this one has answered enough, or else undefined. */
  spend(units: number): Promise<void> | undefined {
    this.spent += units;
    this.turn ??= new Promise((resolve) =>
      setImmediate(() => {
        this.spent = 0;
        this.turn = undefined;
        resolve();
      }),
    );
    return this.spent < UNITS_PER_TURN ? undefined : this.turn;
  }
}

/**
 * Pausable work: a generator that yields after a bounded number of units. The caller runs short work at once, and long
 * work in slices with other work between them.
 */
export type PausableWork<T> = Generator<void, T, void>;

/** The number of values, or pieces of text, that work processes between two pauses. */
export const UNITS_PER_PAUSE = 4_096;
/** The number of characters that cost as much as one value. */
const CHARS_PER_UNIT = 64;

/** Returns the cost of processing a text, in units. */
export const textUnits = (text: string): number => 1 + Math.floor(text.length / CHARS_PER_UNIT);

export function runAtOnce<T>(work: PausableWork<T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

/**
 * Work that can pause: a generator that yields at places of its own choosing, each after a bounded number of units. It
 * is done at once where it is short, and in turns, with room for other work between them, where it may be long.
 */
export type Paced<T> = Generator<void, T, void>;

/** Values, or stretches of text, that are looked at between two pauses. */
export const UNITS_A_PAUSE = 4_096;
/** How many characters of a text count like one value. */
const CHARS_A_UNIT = 64;

/** The units that looking at a text costs. */
export const textUnits = (text: string): number => 1 + Math.floor(text.length / CHARS_A_UNIT);

export function doAtOnce<T>(work: Paced<T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

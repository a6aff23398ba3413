/**
 * How tests wait: for a condition, however long a busy machine takes over it. What never comes true ends with a
 * message that names it, a little before the test's own limit (vitest.config.ts) would end it without one.
 */
export const PATIENCE_MS = 540_000;
/** At first; later a twentieth of the time that has passed, so that a long wait leaves the processor to others. */
const LOOK_EVERY_MS = 5;
const LOOK_AT_LEAST_EVERY_MS = 250;

/** The real one, also where a test has put its own clock in its place. */
const { setTimeout: later } = globalThis;
const sleep = (ms: number) => new Promise<void>((resolve) => later(resolve, ms));

export async function until(
  condition: () => unknown,
  what: string,
  patience_ms = PATIENCE_MS,
): Promise<void> {
  const begin = performance.now();
  while (!(await condition())) {
    const waited = performance.now() - begin;
    if (waited > patience_ms) throw new Error(`waited in vain for ${what}`);
    await sleep(Math.min(Math.max(LOOK_EVERY_MS, waited / 20), LOOK_AT_LEAST_EVERY_MS));
  }
}

/** Time for what must not happen to happen. What must happen is waited for with `until`. */
export function aMoment(ms = 50): Promise<void> {
  return sleep(ms);
}

/**
 * How tests wait: for a condition, however long a busy machine takes over it. What never comes true ends with a
 * message that names it, a little before the test's own limit (vitest.config.ts) would end it without one.
 */
export const PATIENCE_MS = 540_000;
const LOOK_EVERY_MS = 5;

/** The real one, also where a test has put its own clock in its place. */
const { setTimeout: later } = globalThis;
const sleep = (ms: number) => new Promise<void>((resolve) => later(resolve, ms));

export async function until(
  condition: () => unknown,
  what: string,
  patience_ms = PATIENCE_MS,
): Promise<void> {
  const end = performance.now() + patience_ms;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`waited in vain for ${what}`);
    await sleep(LOOK_EVERY_MS);
  }
}

/** Time for what must not happen to happen. What must happen is waited for with `until`. */
export function aMoment(ms = 50): Promise<void> {
  return sleep(ms);
}

/**
 * Runs before every test file: an assertion that waits does so as long as `until`. Vitest's own second is over
 * sooner than a busy machine is done.
 */
import { vi } from "vitest";
import { PATIENCE_MS } from "./until.ts";

const { waitFor } = vi;

// Files that share a process share `vi` as well, and must not wrap it again and again.
if (waitFor.name !== "waitPatiently") {
  vi.waitFor = function waitPatiently(callback, options = {}) {
    const given = typeof options === "number" ? { timeout: options } : options;
    return waitFor(callback, { timeout: PATIENCE_MS, ...given });
  };
}

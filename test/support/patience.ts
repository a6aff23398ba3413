/**
 * Runs before every test file: what waits for an assertion waits as long as `until` does. Vitest's own second is
 * sooner over than a busy machine is done.
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

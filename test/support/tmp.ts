/**
 * Temporary folders for tests. They go when the test file ends, and with the whole run's folder in
 * the global teardown if the file was killed; SVC_TEST_KEEP=1 keeps them for a look.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

const made: string[] = [];

afterAll(() => {
  if (process.env.SVC_TEST_KEEP) return;
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
});

export function tempDir(label = "t"): string {
  const folder = mkdtempSync(join(process.env.SVC_TEST_TMP ?? tmpdir(), `${label}-`));
  made.push(folder);
  return folder;
}

/** A file with this text in its own temporary folder; answers its path. */
export function tempFile(name: string, text: string): string {
  const path = join(tempDir(), name);
  writeFileSync(path, text);
  return path;
}

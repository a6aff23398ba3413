/** A proof as anybody would start it: `node stress/run.mjs <name> ...`. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { ROOT } from "../support/files.ts";

const run = promisify(execFile);

export async function runProof(
  name: string,
  args: readonly string[],
): Promise<{ code: number; out: string; err: string }> {
  const script = join(ROOT, "stress", "run.mjs");
  try {
    const { stdout, stderr } = await run(process.execPath, [script, name, ...args], { cwd: ROOT });
    return { code: 0, out: stdout, err: stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, out: stdout, err: stderr };
  }
}

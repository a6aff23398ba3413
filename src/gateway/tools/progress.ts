/** Progress of a wait, for clients that asked to hear of it. */
import type { Env } from "../../kernel/env.ts";

/** Often enough for clients that give up early unless they hear something. */
const PROGRESS_MS = 5_000;

export type Progress = (told: { progress: number; total: number; message: string }) => void;

/** Does the work, and tells of the seconds that it took so far. */
export async function tellingProgress<T>(
  env: Env,
  progress: Progress | undefined,
  total: number,
  work: () => Promise<T>,
  message: () => string = () => "waiting for a person's decision",
): Promise<T> {
  if (progress === undefined) return work();
  const from = env.elapsed();
  const tell = () => {
    const waited = Math.min(total, Math.round((env.elapsed() - from) / 1_000));
    progress({ progress: waited, total, message: message() });
  };
  tell();
  const timer = setInterval(tell, PROGRESS_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

/** Progress reports during a wait, for clients that requested them. */
import type { RuntimeEnv } from "../../kernel/env.ts";

/** Short enough for clients that time out without progress. */
const PROGRESS_MS = 5_000;

export type ReportProgress = (told: { progress: number; total: number; message: string }) => void;

/** Does the work, and reports the elapsed seconds while it runs. */
export async function withProgress<T>(
  env: RuntimeEnv,
  progress: ReportProgress | undefined,
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

/** The manifests' sentences on the calls of a run, for outputs that name its steps. */
import { escapeControls } from "./io.ts";

export function stepLines(
  steps: readonly { step: number; line?: string | undefined }[],
): Map<number, string> {
  return new Map(steps.flatMap(({ step, line }) => (line === undefined ? [] : [[step, line]])));
}

/** A step's number, with its sentence if there is one. */
export function namedStep(step: number, lines: ReadonlyMap<number, string>): string {
  const line = lines.get(step);
  return line === undefined ? String(step) : `${step} (${escapeControls(line)})`;
}

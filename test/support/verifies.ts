/**
 * Says which statements of the interface a test verifies. The gate reads these calls from the source,
 * so the ids must be written as string literals; the type makes a wrong one fail to compile.
 */
import type { RequirementId } from "../requirements/index.ts";

/** Call it inside the test, or put its answer into a title. */
export function verifies(...ids: [RequirementId, ...RequirementId[]]): string {
  return `(${ids.join(", ")})`;
}

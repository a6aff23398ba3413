/** Input of a card: the call, its run, the rules in force and the values that are kept. */
import type { Manifest } from "../manifest/types.ts";
import type { Policy } from "../policy/compile.ts";
import type { ApprovalValues, AskedCall } from "./types.ts";

export interface CardFacts {
  call: AskedCall;
  run: { reason: string | null; salt: string; environment: string | null };
  manifest: Manifest | null;
  /** Whose `before` is shown: the manifest itself; of an undo that of the call which it takes back. */
  read_for: Manifest | null;
  policy: Pick<Policy, "doc" | "risk">;
  /** Undefined where they are not kept, or no longer. */
  values: Pick<ApprovalValues, "args" | "before" | "restored" | "unread" | "undeclared"> | undefined;
}

/** Input of a card: the call, its run, the active policy and the stored values. */
import type { ToolManifest } from "../../rules/manifest/types.ts";
import type { CompiledPolicy } from "../../rules/policy/compile.ts";
import type { ApprovalValues, RequestedCall } from "./types.ts";

export interface CardFacts {
  call: RequestedCall;
  run: { reason: string | null; salt: string; environment: string | null };
  manifest: ToolManifest | null;
  /** Manifest that declares the `before` read. For an undo, this is the manifest of the call to undo. */
  read_for: ToolManifest | null;
  policy: Pick<CompiledPolicy, "doc" | "risk">;
  /** Undefined if the values were never stored or have been deleted. */
  values: Pick<ApprovalValues, "args" | "before" | "restored" | "unread" | "undeclared"> | undefined;
}

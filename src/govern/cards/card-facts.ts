/** Input of a card: the call, its run, the rules that apply to it, and the stored values. */
import type { ToolManifest } from "../../rules/manifest/types.ts";
import type { ApprovalValues, CardContent, RequestedCall } from "./types.ts";

/** Everything about a card except the values. Plain data, which can be sent to a thread. */
export interface CardSubject {
  call: RequestedCall;
  run: { reason: string | null; salt: string; environment: string | null };
  manifest: ToolManifest | null;
  /** Manifest that declares the `before` read. For an undo, this is the manifest of the call to undo. */
  read_for: ToolManifest | null;
  /** Manifest of the tool that makes the `before` read. */
  reader: Pick<ToolManifest, "audit"> | null;
  rule: CardContent["rule"];
  /** The policy shows approvers only the names of the arguments. */
  names_only: boolean;
}

export interface CardFacts extends Omit<CardSubject, "reader" | "names_only"> {
  /** Undefined if the values were never stored or have been deleted. */
  values: Pick<ApprovalValues, "args" | "before" | "restored" | "unread" | "undeclared"> | undefined;
}

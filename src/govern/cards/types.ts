/** Content of the card that an approver sees for a pending call, and the data it is built from. */
import type * as z from "zod";
import type { JsonValue } from "../../kernel/json/json.ts";
import type { RiskFactor } from "../../rules/policy/checks/default-weights.ts";
import type { cardContentSchema, cardContextSchema } from "./card-schema.ts";

/** Why the call requires approval: each cause in the words of its rule, and the parts of the risk score. */
export interface ApprovalCauses {
  causes: { rule: string | null; reason: string }[];
  risk: { score: number; factors: Record<RiskFactor, number> } | null;
}

/** For an undo: the tool of the call to undo, the extent, and the residue. */
export interface RequestedUndo {
  of: string;
  kind: "inverse" | "compensation";
  residue: string[];
  read_back: boolean;
}

/** The call as the agent requested it. Approval requests and the calls of a plan have this shape. */
export interface RequestedCall {
  kind: "call" | "compensation";
  tool: string;
  step: number | null;
  args_hash: string;
  arg_names: readonly string[];
  reason: string;
  rule: string | null;
  /** Absent in requests of earlier versions. */
  because?: ApprovalCauses | undefined;
  undo?: RequestedUndo | undefined;
}

/**
 * Values of a call, stored while an approver can decide it or the agent can use the decision. Not part of the ledger.
 */
export interface ApprovalValues {
  run_id: string;
  /** Arguments without credentials, masked as the manifest requires. */
  args: JsonValue;
  /** State that the call would change, read when the request was opened. */
  before?: JsonValue | undefined;
  /** For an undo: the state before the call, which the undo restores. */
  restored?: JsonValue | undefined;
  /** The manifest declares a `before` read, but the read failed. */
  unread?: true | undefined;
  /** Paths of members that the upstream's input schema does not declare; absent if the schema is unknown. */
  undeclared?: string[] | undefined;
  /** The line of the call, if its manifest has one. */
  line?: string | undefined;
  /** For a counter-proposal: its arguments as the run's principal must send them. */
  offer?: JsonValue | undefined;
}

export type CardContent = z.output<typeof cardContentSchema>;
export type CardContext = z.output<typeof cardContextSchema>;
export type CardField = CardContent["fields"][number];
export type SentencePart = CardContent["parts"][number];
export type CardChange = CardContent["changes"][number];
export type CardRisk = NonNullable<CardContent["risk"]>;
export type UndoSummary = CardContent["way_back"];

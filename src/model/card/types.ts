/** What a person is shown of a call that waits for a decision, and what the card is made from. */
import type { DiffLine } from "../../kernel/diff.ts";
import type { Json } from "../../kernel/json.ts";
import type { RiskFactor } from "../policy/risk-weights.ts";
import type { CardFormat } from "./template.ts";

/** Why a person is asked: what spoke, in its own words, and what the score is made of. */
export interface Because {
  causes: { rule: string | null; reason: string }[];
  risk: { score: number; factors: Record<RiskFactor, number> } | null;
}

/** Of an undo: the tool whose call it takes back, how far, and what it leaves. */
export interface AskedUndo {
  of: string;
  kind: "inverse" | "compensation";
  residue: string[];
  read_back: boolean;
}

/** The call as it was asked for. A request for approval has all of it, and so has a call of a plan. */
export interface AskedCall {
  kind: "call" | "compensation";
  tool: string;
  step: number | null;
  args_hash: string;
  arg_names: readonly string[];
  reason: string;
  rule: string | null;
  /** Requests of earlier versions do not say. */
  because?: Because | undefined;
  undo?: AskedUndo | undefined;
}

/** The values of a call while a person may still decide it, or its agent use the decision; working data. */
export interface ApprovalValues {
  run_id: string;
  /** As far as they may be shown: without credentials, and masked where the manifest says so. */
  args: Json;
  /** What the call would change, as it was read when the request was opened. */
  before?: Json | undefined;
  /** Of an undo: what was there before the call, and would be again. */
  restored?: Json | undefined;
  /** It was to be read, and could not be. */
  unread?: true | undefined;
  /** Paths of the members that the upstream's input schema does not declare; absent where no schema is known. */
  undeclared?: string[] | undefined;
  /** Of an offer: its arguments as they must be sent, for the run's principal. */
  offer?: Json | undefined;
}

export interface CardField {
  label: string;
  path: string;
  as: CardFormat;
  /** The whole value, fit to be shown anywhere: characters that would move or hide other text are escaped. */
  text: string;
  /** Of `diff`: what was and what would be, line by line. */
  lines?: DiffLine[];
  /** The diff leaves unchanged lines out; `text` has all of them. */
  abridged?: true;
  /** Counts where the value is long: `40 recipients`, `3,120 characters`. */
  size?: string;
  /** Neither the manifest nor the input schema of the tool names this argument. */
  undeclared?: true;
  /** Remarks for the person who decides, such as that the name is not declared. */
  remarks?: string[];
  /** Members of the value that the diff does not cover, each in full. */
  uncovered?: CardField[];
}

/** A sentence in pieces: what the manifest says, and the call's own values between. */
export interface SentencePart {
  text: string;
  value: boolean;
}

export interface CardChange {
  label: string;
  /** The argument that makes the change; absent for an undo. */
  path?: string;
  before: string;
  after: string;
  /** Empty where the two are too long to compare; then both are shown. */
  lines: DiffLine[];
  remarks?: string[];
}

export interface CardRisk {
  score: number;
  factors: { factor: RiskFactor; label: string; points: number }[];
  /** The factors in words; they add up to the score that is shown. */
  text: string;
}

export interface WayBack {
  tool: string | null;
  residue: string[];
  text: string;
}

/** The part of a card that is judged, and that its hash stands for. */
export interface JudgedCard {
  sentence: string;
  parts: SentencePart[];
  fields: CardField[];
  /** Arguments that neither the sentence nor the fields show in full: no part of a call is out of sight. */
  more: CardField[];
  changes: CardChange[];
  note: string | null;
  reason: string;
  run_reason: string | null;
  rule: { id: string; reason: string | null } | null;
  causes: string[];
  risk: CardRisk | null;
  irreversible: boolean;
  way_back: WayBack;
}

/** What the card says beside what is judged; it may change while the request waits. */
export interface CardSurroundings {
  /** Of the same run so far. */
  so_far: { calls: number; last: { step: number; tool: string; status: string }[] };
  /** What became of earlier requests of the same agent for the same tool. */
  like: { approved: number; denied: number };
  /** When the undo was last proven, and until when it can be made; null where nothing is known of it. */
  proof: string | null;
  closes: string | null;
}

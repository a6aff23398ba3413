/** Summarizes in one sentence how the call can be undone. */
import { visibleOneLine } from "../../kernel/text/escape-invisible.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import type { RequestedCall, RequestedUndo, UndoSummary } from "./types.ts";

export const NO_UNDO_TEXT = "This cannot be undone.";

export function summarizeUndo(
  { kind, step, undo }: Pick<RequestedCall, "kind" | "step" | "undo">,
  manifest: ToolManifest | null,
): UndoSummary {
  const none = (text: string): UndoSummary => ({ tool: null, residue: [], text });
  if (kind === "compensation") {
    const itself = `This call is itself the undo of step ${step ?? "?"}`;
    if (undo === undefined) return none(`${itself}.`);
    const { of, residue } = undo;
    return { tool: null, residue, text: `${itself} (${visibleOneLine(of)}): it ${howFar(undo)}.` };
  }
  if (manifest === null) return none("Unknown: no manifest describes this tool.");
  const { compensation, verification, effect } = manifest;
  if (compensation === null)
    return none(effect === "irreversible" ? NO_UNDO_TEXT : "There is nothing to undo.");
  const how = howFar({ kind: compensation.kind, read_back: verification !== null });
  const asks = compensation.requires_approval ? "; the undo needs its own approval" : "";
  return {
    tool: compensation.tool,
    residue: [...compensation.residue],
    text: `${compensation.tool} ${how}${asks}.`,
  };
}

/** What an undo of this kind does, as the end of a sentence that begins with its tool. */
export const undoKindText = (kind: RequestedUndo["kind"] | null): string =>
  kind === "inverse" ? "restores the exact state" : "offsets the effect";

const howFar = ({ kind, read_back }: Pick<RequestedUndo, "kind" | "read_back">): string =>
  read_back ? `${undoKindText(kind)}, and is read back` : undoKindText(kind);

/** What can be done if the call turns out to be wrong, in a sentence. */
import { visibleWholeLine } from "../../kernel/visible.ts";
import type { Manifest } from "../manifest/types.ts";
import type { AskedCall, AskedUndo, WayBack } from "./types.ts";

export const NO_WAY_BACK = "Nothing can take it back.";

export function wayBackOf(
  { kind, step, undo }: Pick<AskedCall, "kind" | "step" | "undo">,
  manifest: Manifest | null,
): WayBack {
  const none = (text: string): WayBack => ({ tool: null, residue: [], text });
  if (kind === "compensation") {
    const itself = `This call is itself the undo of step ${step ?? "?"}`;
    if (undo === undefined) return none(`${itself}.`);
    const { of, residue } = undo;
    return { tool: null, residue, text: `${itself} (${visibleWholeLine(of)}): it ${howFar(undo)}.` };
  }
  if (manifest === null) return none("Unknown: no manifest describes this tool.");
  const { compensation, verification, effect } = manifest;
  if (compensation === null)
    return none(effect === "irreversible" ? NO_WAY_BACK : "There is nothing to undo.");
  const how = howFar({ kind: compensation.kind, read_back: verification !== null });
  const asks = compensation.requires_approval ? "; that needs an approval of its own" : "";
  return {
    tool: compensation.tool,
    residue: [...compensation.residue],
    text: `${compensation.tool} ${how}${asks}.`,
  };
}

function howFar({ kind, read_back }: Pick<AskedUndo, "kind" | "read_back">): string {
  const how = kind === "inverse" ? "restores the exact state" : "makes amends";
  return read_back ? `${how}, and is read back` : how;
}

/** What can be done if the call turns out to be wrong, in a sentence. */
import type { Manifest } from "../manifest/types.ts";
import type { AskedCall, WayBack } from "./types.ts";

export const NO_WAY_BACK = "Nothing can take it back.";

export function wayBackOf(
  { kind, step }: Pick<AskedCall, "kind" | "step">,
  manifest: Manifest | null,
): WayBack {
  const none = (text: string): WayBack => ({ tool: null, residue: [], text });
  if (kind === "compensation") return none(`This call is itself the undo of step ${step ?? "?"}.`);
  if (manifest === null) return none("Unknown: no manifest describes this tool.");
  const { compensation, verification, effect } = manifest;
  if (compensation === null)
    return none(effect === "irreversible" ? NO_WAY_BACK : "There is nothing to undo.");
  const how = compensation.kind === "inverse" ? "restores the exact state" : "makes amends";
  const checked = verification === null ? "" : ", and is read back";
  const asks = compensation.requires_approval ? "; that needs an approval of its own" : "";
  return {
    tool: compensation.tool,
    residue: [...compensation.residue],
    text: `${compensation.tool} ${how}${checked}${asks}.`,
  };
}

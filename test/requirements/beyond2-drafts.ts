/** Undos that `svc init` proposes for any tool server. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyond2Drafts = section("beyond", "Proposed undos", {
  "beyond.draft.pairs": [42, "svc init proposes undos for pairs of opposite tools, with argument mapping and confidence"],
  "beyond.draft.update-with-read": [42, "an update with a read of the same thing is undone by the values read before"],
  "beyond.draft.several-actions": [42, "a tool whose description names several actions is never drafted as a read"],
});

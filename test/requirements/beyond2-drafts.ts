/** Undos that `svc init` proposes for any tool server. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyond2Drafts = section("beyond", "Proposed undos", {
  "beyond.draft.pairs": [42, "svc init proposes undos for pairs of opposite tools, with argument mapping and confidence"],
  "beyond.draft.update-with-read": [42, "an update with a read of the same thing is undone by the values read before"],
  "beyond.draft.names": [42, "a word that all tools of a server begin with, articles, and ids named after their kind do not hide a pair"],
  "beyond.draft.disposable": [42, "`svc drill --draft` makes real calls only on the upstream that `--disposable` names"],
  "beyond.draft.tried": [42, "it makes each drafted call in a run, undoes it, and compares what the server's reading tools answer"],
  "beyond.draft.written": [42, "it writes into the manifests what held; the manifests stay drafts"],
  "beyond.draft.liars": [42, "an undo that answers success and does nothing is found out and taken out of the manifest"],
  "beyond.draft.several-actions": [42, "a tool whose description names several actions is never drafted as a read"],
});

/** The library where an agent's own process waits for people, looks ahead and goes on with a run. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyondLibrary = section("beyond", "3.10 and 7.1 Library", {
  "beyond.library.wait": [18, "`run.call(.., {wait_for_approval})` waits for a person and makes the call once it is approved, embedded and remote"],
  "beyond.library.wait-denied": [18, "a call whose request is denied, or not decided in time, is not made"],
  "beyond.library.attach": [18, "`svc.attach(run_id)` goes on with a run of one's own, and with nobody else's"],
  "beyond.library.preview": [18, "`run.preview(intent)` answers `allow`, `needs_approval` or `block` with reasons, and leaves nothing behind"],
  "beyond.library.approvals": [18, "`svc.approvals.get | wait | approve | deny` decides with the person's own credential"],
});

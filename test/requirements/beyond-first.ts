/** Statements on what a newcomer meets: the demo, the console's frame, the command line's answers. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyondFirst = section("beyond", "At first sight", {
  "beyond.first.story": [24, "`npm start` shows an agent's work, made by real calls: refunds, mails, edits, a request that waits, a call that a flow blocked, an alert, a run that can be taken back"],
  "beyond.first.empty": [24, "`npm start -- --empty` starts without it"],
  "beyond.first.link": [24, "the demo prints a link that logs in as somebody who is no admin, in the demo only"],
  "beyond.first.link-spent": [24, "opening the link spends nothing; its button spends it, once, within ten minutes, on this machine only"],
});

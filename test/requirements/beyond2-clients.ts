/** Statements that the real coding agents are driven for. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyond2Clients = section("beyond", "Real coding agents", {
  "beyond.clients.installed": [36, "the tests install the real Claude Code, Codex and Gemini CLI from the registry at exact versions; a client that cannot be installed is a failing test with the reason"],
  "beyond.clients.governed": [36, "a call of a real client is decided before it happens; a refused call does not happen"],
  "beyond.clients.held": [36, "a call of a real client that needs approval happens once a person approved it, and not before"],
  "beyond.clients.undone": [36, "a rollback restores what a real client's edits changed byte for byte"],
  "beyond.clients.reconciled": [36, "the transcript that a real client keeps names the calls of its run, and no others"],
  "beyond.clients.refused-when-down": [36, "a real client makes no call while the service cannot be reached"],
  "beyond.clients.ways": [36, "each way around the hook that was found once is refused or asks when a real client tries it, and has no effect"],
  "beyond.clients.sub-agents": [36, "the calls of a real client's sub-agent are in a child run of the session's run, where the client names its sub-agents; one rollback undoes both"],
  "beyond.clients.tool-list": [36, "every tool that a real client offers its model is in the tables, with every field of its input"],
});

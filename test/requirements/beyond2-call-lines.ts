/** Statements on the line of a call. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyond2Lines = section("beyond", "Lines of calls", {
  "beyond.line.manifest": [36, "a manifest may hold `card.line`, a sentence with places for arguments; a wrong place is a load error"],
  "beyond.line.run": [36, "`svc show`, `svc plan`, `svc rollback`, the run's page and its report print the line; a tool without one is shown by its name"],
  "beyond.line.requests": [36, "`svc approvals list` and the console's list print the line to those who may open the card, and to nobody else"],
  "beyond.line.never": [36, "`GET /v1/approvals`, notifications, bundles, the period report and the ledger never carry the line"],
  "beyond.line.masked": [36, "credentials and redacted paths are masked in the line, also those that the card reveals; it is cut at 200 characters and stays one line"],
  "beyond.line.deleted": [36, "the line is deleted with the run"],
  "beyond.line.pack": [36, "the coding-agents pack has lines such as `Edit src/a.ts` and `Run npm test`"],
  "beyond.line.conflicts": [36, "conflicts name the file"],
  "beyond.line.plan-text": [36, "plans show the text of a text file, and `binary, n bytes` otherwise"],
});

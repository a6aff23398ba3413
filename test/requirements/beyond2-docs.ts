/** Statements on the documentation. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyond2Docs = section("beyond", "Documentation", {
  "beyond.docs.guides-run": [35, "the commands of a task guide print what the page shows"],
});

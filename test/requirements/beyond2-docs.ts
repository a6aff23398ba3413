/** Statements on the documentation. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyond2Docs = section("beyond", "Documentation", {
  "beyond.docs.guides-run": [35, "the commands of a task guide print what the page shows"],
  "beyond.docs.yaml-loads": [35, "the YAML that a page shows loads as manifests, a policy or settings"],
  "beyond.docs.commands-exist": [35, "the commands and options that a page shows are those of `svc`"],
  "beyond.docs.messages-exist": [35, "a message that a page lists as a symptom is one that the code has"],
  "beyond.docs.routes-exist": [35, "the routes that a page names are those of the server"],
});

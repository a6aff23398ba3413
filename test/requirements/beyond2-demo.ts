/** Statements on the demo of `npm start`, containment previews, policy authors and the console's polish. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyond2Demo = section("beyond", "The demo acts on decisions", {
  "beyond.demo.approve": [37, "approving the demo's refund makes its agent refund it, and the shop's page shows it without a reload"],
  "beyond.demo.deny": [37, "after a denial the demo's agent refunds nothing and explains why on the shop's page"],
  "beyond.demo.offer": [37, "after a denial with other arguments the demo's agent makes the offered refund"],
  "beyond.demo.restart": [37, "a restarted demo waits for the same decision and acts on it once"],
  "beyond.demo.halt": [37, "a halt holds the approved refund; after it is lifted the agent makes the refund"],
  "beyond.demo.rollback": [37, "rolling back the refund's run in the console shows the money back on the shop's page"],
  "beyond.demo.shop": [37, "the shop's page is on its own loopback port, is linked from the start text, passes an accessibility check and fits a phone, light and dark"],
  "beyond.demo.escaped": [37, "text of the agent stays text on the shop's page"],
  "beyond.demo.screen": [37, "the demo's start text fits one screen"],
  "beyond.demo.empty": [37, "`npm start -- --empty` has neither the shop nor the agent"],
  "beyond.demo.effect": [37, "the Approvals page shows the effect of your latest decisions, and follows it, also where the call needed no approval"],
  "beyond.demo.run-page": [37, "a run's page shows its state, and the status of the request that held a call"],
  "beyond.demo.once": [37, "a second demo of one clone is refused and changes nothing of the first"],
});

// biome-ignore format: one statement a line
export const beyond2Authors = section("beyond", "Policy authors", {
  "beyond.authors.new-questions": [37, "`svc policy new` asks questions on a terminal and writes a policy that loads and whose tests pass"],
  "beyond.authors.new-example": [37, "`svc policy new --example <name>` copies an example; an unknown name and a missing terminal list the names"],
  "beyond.authors.new-keeps": [37, "`svc policy new` replaces no file without `--force`"],
  "beyond.authors.new-quoting": [37, "answers are quoted in the written policy: they add no keys of their own"],
  "beyond.authors.init-example": [37, "`svc init` without a tool server writes files with which a server with a console starts, and replaces none"],
  "beyond.authors.schema-words": [37, "every field in the JSON schemas of policies, manifests and settings has a description"],
  "beyond.authors.undeclared-first": [37, "the playground shows that no manifest declares a tool before it shows the decision"],
});

// biome-ignore format: one statement a line
export const beyond2Previews = section("beyond", "Exact previews", {
  "beyond.previews.deadline": [37, "preview and report of a containment name an undo whose time is over, with the time"],
  "beyond.previews.program": [37, "the preview lists the undos whose command cannot be started, and a server without a reader previews undos that are not read back"],
  "beyond.previews.approval": [37, "the preview lists undos that need approval, and what waits for them"],
  "beyond.previews.differences": [37, "the report of a containment compares each step with the preview from before its first undo, and lists the ones that ended otherwise"],
  "beyond.previews.shown": [37, "`svc contain` prints the steps that ended otherwise than previewed"],
});

// biome-ignore format: one statement a line
export const beyond2Polish = section("beyond", "Console polish", {
  "beyond.polish.palette": [37, "Ctrl K opens a palette that goes to pages, runs, tools and actions by keyboard"],
  "beyond.polish.palette-pages": [37, "the palette offers pages that no menu lists, such as Incidents, and opens by a button, for phones"],
  "beyond.polish.palette-safe": [37, "the palette keeps the content security policy, passes an accessibility check, shows only what the person may see, and presses no button"],
  "beyond.polish.decide-role": [37, "the overview says `Decide` only while a request is open and to users who can decide"],
  "beyond.polish.tables-fit": [37, "every table fits in its card at a width of 1280 pixels"],
  "beyond.polish.live-rollback": [37, "while a rollback runs, the run's page shows the step being undone and the undos to go, without a reload"],
  "beyond.polish.labels": [37, "no two neighbouring fields, facts or columns of a page have one label"],
  "beyond.polish.empty-action": [37, "an empty place on a page has at most one next action"],
  "beyond.polish.folded-runs": [37, "the pages of an agent and of an incident fold long lists of runs"],
  "beyond.polish.card-gaps": [37, "the cards of an agent's and of an incident's page stand apart, on a desktop and on a phone"],
  "beyond.polish.chart": [37, "the overview's chart has a pattern for each decision, and its numbers as a table"],
  "beyond.polish.plan-fits": [37, "the rollback plan of a run whose undo is left in part fits a phone"],
  "beyond.polish.hours": [37, "pages show the time of day in 24 hours whatever the browser's language"],
  "beyond.polish.risk": [37, "risk is shown as a word with the labels that carry it, such as `High: external, financial`"],
});

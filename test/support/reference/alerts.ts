/** Reference page of the alerts. */
import { ALERT_KINDS } from "../../../src/alerts/kinds.ts";
import { apiDocument } from "./http.ts";
import { codeSpan, generatedNote, markdownTable } from "./markdown.ts";
import { typeText } from "./type-text.ts";

export function alertsPage(): string {
  const kinds = Object.entries(ALERT_KINDS);
  const shape = apiDocument().components.schemas["list_alerts_answer"]!;
  return `# Alerts

${generatedNote("src/alerts/kinds.ts")}

Takeback raises an alert when a condition needs attention. Active alerts are at \`GET /v1/alerts\`, on the console's **Alerts**
page, and in your [notification channels](notifications.md). An alert notifies once, again every \`alerts.remind\` (default
one hour) while it is active, and once when it clears.

For Prometheus rules, see [metrics](metrics.md) and [monitoring](../operations/monitor.md).

## When alerts fire and clear

${markdownTable(
  ["Kind", "Severity", "Fires when", "Clears"],
  kinds.map(([kind, { severity, fires, clears }]) => [codeSpan(kind), severity, fires, clears]),
)}
## Your next step

${markdownTable(
  ["Kind", "Title", "Do this"],
  kinds.map(([kind, { title, to_do }]) => [codeSpan(kind), title, to_do]),
)}
## Fields

\`GET /v1/alerts\` returns:

\`\`\`ts
${typeText(shape)}
\`\`\`

An alert, its reminders and its resolution have the same \`id\`.
`;
}

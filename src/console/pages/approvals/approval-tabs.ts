/** Tabs that connect the approval pages. */
import { countPendingPlans } from "../../../operations/documents.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import type { PageContext } from "../../page-context.ts";

const TABS = [
  ["waiting", "/console/approvals", "Waiting"],
  ["decided", "/console/approvals/decided", "Decided"],
  ["plans", "/console/plans", "Plans"],
  ["grants", "/console/grants", "Grants"],
  ["oversight", "/console/oversight", "Oversight"],
] as const;

/** The Plans tab shows how many plans are pending. */
export async function approvalTabs(
  { app }: PageContext,
  at: (typeof TABS)[number][0],
): Promise<HtmlFragment> {
  const plans = await countPendingPlans(app);
  const waiting = safeHtml` <span class="count">${plans}<span class="unseen"> waiting</span></span>`;
  const links = TABS.map(
    ([id, path, label]) =>
      safeHtml`<a href="${path}"${id === at ? safeHtml` aria-current="page"` : null}>${label}${id === "plans" && plans > 0 ? waiting : emptyHtml}</a>`,
  );
  return safeHtml`<nav class="tabs" aria-label="Approvals">${links}</nav>`;
}

/** The way between the pages that are about people's decisions. */
import type { Ctx } from "../ctx.ts";
import { type Html, html, nothing } from "../html.ts";

const TABS = [
  ["waiting", "/console/approvals", "Waiting"],
  ["decided", "/console/approvals/decided", "Decided"],
  ["plans", "/console/plans", "Plans"],
  ["grants", "/console/grants", "Grants"],
  ["oversight", "/console/oversight", "Oversight"],
] as const;

/** A plan waits as a request does, and is counted where it is found. */
export async function approvalTabs({ app }: Ctx, at: (typeof TABS)[number][0]): Promise<Html> {
  const plans = await app.core.store.count("plans", { tag: "pending" });
  const waiting = html` <span class="count">${plans}<span class="unseen"> waiting</span></span>`;
  const links = TABS.map(
    ([id, path, label]) =>
      html`<a href="${path}"${id === at ? html` aria-current="page"` : null}>${label}${id === "plans" && plans > 0 ? waiting : nothing}</a>`,
  );
  return html`<nav class="tabs" aria-label="Approvals">${links}</nav>`;
}

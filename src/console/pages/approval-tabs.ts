/** The way between the pages that are about people's decisions. */
import { type Html, html } from "../html.ts";

const TABS = [
  ["waiting", "/console/approvals", "Waiting"],
  ["decided", "/console/approvals/decided", "Decided"],
  ["plans", "/console/plans", "Plans"],
  ["grants", "/console/grants", "Grants"],
] as const;

export function approvalTabs(at: (typeof TABS)[number][0]): Html {
  const links = TABS.map(
    ([id, path, label]) =>
      html`<a href="${path}"${id === at ? html` aria-current="page"` : null}>${label}</a>`,
  );
  return html`<nav class="tabs" aria-label="Approvals">${links}</nav>`;
}

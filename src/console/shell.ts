/** Page frame: navigation, user, halt banner and ledger head. */
import type { StoredHalt } from "../govern/approvals/approval.ts";
import { PRINCIPAL_ROLES } from "../govern/roles.ts";
import type { ServiceApp } from "../operations/app.ts";
import { containAgent as containOp } from "../operations/contain/contain.ts";
import { haltCalls as haltOp, liftHalts as resumeOp } from "../operations/halts.ts";
import { ASSET_VERSION } from "./assets/index.ts";
import type { HeaderStatus } from "./header-status.ts";
import { emptyHtml, type HtmlFragment, joinHtml, safeHtml, type TemplateValue } from "./html.ts";
import type { ConsolePage, NavId, PageContext } from "./page-context.ts";
import { noticeBox as noticeBlock } from "./parts/blocks.ts";
import { formElement, submitButton } from "./parts/forms.ts";
import { haltedCalls, haltForm, haltsAll, scopeText } from "./parts/halt-form.ts";
import { navIcon } from "./parts/icons.ts";
import { hashText } from "./parts/ids.ts";
import { formatAgo, formatTime } from "./parts/time.ts";
import type { PageNotice } from "./session/session.ts";

const NAV: readonly (readonly [NavId, path: string, label: string, key: string])[] = [
  ["overview", "/console", "Overview", "o"],
  ["approvals", "/console/approvals", "Approvals", "a"],
  ["runs", "/console/runs", "Runs", "r"],
  ["alerts", "/console/alerts", "Alerts", "l"],
  ["tools", "/console/tools", "Tools", "t"],
  ["drills", "/console/drills", "Drills", "d"],
  ["policy", "/console/policy", "Policy", "p"],
  ["impact", "/console/impact", "Impact", "i"],
  ["evidence", "/console/evidence", "Evidence", "e"],
  ["settings", "/console/settings", "Settings", "s"],
];
/** Pages that other pages lead to. The palette offers them. */
const FURTHER_PAGES: readonly (readonly [path: string, label: string])[] = [
  ["/console/incidents", "Incidents"],
  ["/console/plans", "Plans"],
  ["/console/grants", "Grants"],
  ["/console/oversight", "Oversight"],
];

/** The navigation lists Drills only if the settings allow drills. */
const shown = ({ settings }: ServiceApp, id: NavId) =>
  id !== "drills" || settings.drills.environments.length > 0;
/** Pages in the bar at the bottom of a phone. A "More" link leads to the others. */
const QUICK: readonly NavId[] = ["overview", "approvals", "runs", "alerts"];

/** The page is first painted after its script folded the long values. If the script does not load, they stay open. */
function htmlHead(title: string): HtmlFragment {
  return safeHtml`<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>${title} · svc</title>
<link rel="icon" href="/console/assets/icon.svg?v=${ASSET_VERSION}" type="image/svg+xml">
<link rel="manifest" href="/console/manifest.webmanifest">
<link rel="apple-touch-icon" href="/console/assets/apple-180.png">
<meta name="theme-color" content="#12211b"><meta name="apple-mobile-web-app-title" content="Takeback">
<link rel="stylesheet" href="/console/assets/console.css?v=${ASSET_VERSION}">
<script src="/console/assets/console.js?v=${ASSET_VERSION}" defer blocking="render"></script></head>`;
}

export function framedPage(
  ctx: PageContext,
  seen: HeaderStatus,
  page: ConsolePage,
  said: PageNotice | null,
): HtmlFragment {
  const live = page.live ?? "/console/edge";
  return safeHtml`<!doctype html>
<html lang="en">${htmlHead(page.title)}
<body data-pulse="${seen.pulse}" data-live-from="${live}" data-waiting="${seen.pending}">
<a class="skip" href="#main">Skip to content</a>
<div id="halted" data-live aria-live="assertive">${haltBanner(ctx, seen)}</div>
<div class="frame">
<aside class="side">${brand(ctx.app)}${navigation(ctx.app, page.nav, seen)}${foot(ctx, seen)}</aside>
<div class="pane">${top(ctx)}<main id="main" tabindex="-1">${said === null ? null : safeHtml`<div class="said-now">${noticeBlock(said.kind, said.text)}</div>`}${page.body}</main></div>
</div>
${quickBar(page.nav, seen)}
</body></html>`;
}

function brand({ settings }: ServiceApp): HtmlFragment {
  return safeHtml`<a class="brand" href="/console"><svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true"><path class="link-a" d="M9.5 14.5 14.5 9.5"/><path class="link-b" d="M11 6.6l1.6-1.6a4.5 4.5 0 0 1 6.4 6.4L17.4 13M13 17.4 11.4 19A4.5 4.5 0 0 1 5 12.6L6.6 11"/></svg><span>svc</span>${
    settings.environment === null ? null : safeHtml`<span class="environment">${settings.environment}</span>`
  }</a>`;
}

function navigation(app: ServiceApp, current: NavId | null, seen: HeaderStatus): HtmlFragment {
  const items = NAV.filter(([id]) => shown(app, id)).map(
    ([id, path, label, key]) =>
      safeHtml`<li><a href="${path}" data-key="${key}"${id === current ? safeHtml` aria-current="page"` : emptyHtml}>${navIcon(id)}${label}${badge(id, seen)}</a></li>`,
  );
  return safeHtml`<nav id="nav" data-live aria-label="Pages"><ul>${items}</ul></nav>`;
}

function badge(id: NavId, { pending }: HeaderStatus): HtmlFragment {
  if (id !== "approvals" || pending === 0) return emptyHtml;
  return safeHtml` <span class="count">${pending}<span class="unseen"> waiting</span></span>`;
}

function foot(ctx: PageContext, { head, records }: HeaderStatus): HtmlFragment {
  const role = PRINCIPAL_ROLES.toReversed().find((one) => ctx.principal.roles.includes(one)) ?? "";
  return safeHtml`<div class="side-foot">
<div id="chain" data-live class="chain" title="Ledger head">${hashText(head, "the ledger head", 8)}<span>${records.toLocaleString("en")} records</span></div>
<div class="who"><span class="who-name">${ctx.principal.name}</span><span class="who-role">${role}${ctx.mode === "open" ? ", no login" : ""}</span></div>
${ctx.mode === "open" ? null : formElement(ctx, { action: "/console/logout", class: "logout" }, submitButton("Log out"))}
${furtherPages(ctx)}<button type="button" class="js-only go-to" data-go-to>Go to a page</button>
<span class="js-only keys-hint">Ctrl K to go anywhere, ? for shortcuts</span>
</div>`;
}

function furtherPages(ctx: PageContext): HtmlFragment {
  const contain = ctx.may(containOp) ? ([["/console/contain", "Contain an agent"]] as const) : [];
  const links = [...FURTHER_PAGES, ...contain].map(
    ([path, label]) => safeHtml`<a href="${path}">${label}</a>`,
  );
  return safeHtml`<template id="further-pages">${links}</template>`;
}

function quickBar(current: NavId | null, seen: HeaderStatus): HtmlFragment {
  const items = NAV.filter(([id]) => QUICK.includes(id)).map(
    ([id, path, label]) =>
      safeHtml`<li><a href="${path}"${id === current ? safeHtml` aria-current="page"` : emptyHtml}>${navIcon(id)}${label}${badge(id, seen)}</a></li>`,
  );
  return safeHtml`<nav id="quick" class="quick" data-live aria-label="Quick"><ul>${items}<li><a href="#nav">${navIcon("more")}More</a></li></ul></nav>`;
}

/** Top bar: search, and the halt button for users who can halt. */
function top(ctx: PageContext): HtmlFragment {
  return safeHtml`<header class="top"><form method="get" action="/console/search" role="search" aria-label="Everything">${navIcon("search")}<input type="search" name="q" id="find" value="" maxlength="512" aria-label="Find anything" placeholder="Find runs, tools, actors, requests, records" autocomplete="off"><kbd class="js-only" aria-hidden="true">/</kbd></form>${
    ctx.may(haltOp)
      ? safeHtml`<a class="button danger halt-now" href="/console/evidence#halt" data-dialog="halt-form">${navIcon("halt")}Halt</a><template id="halt-form" data-title="Halt new calls">${haltForm(ctx)}</template>`
      : emptyHtml
  }</header>`;
}

/** Banner for active halts. A halt of all calls stays in view; a partial one is a line that opens and scrolls away. */
function haltBanner(ctx: PageContext, { halts, kill_file }: HeaderStatus): HtmlFragment {
  const now = ctx.app.core.env.now();
  const line = (halt: StoredHalt): HtmlFragment =>
    safeHtml`<li><b>${scopeText(halt)}</b> ${halt.reason} <span class="by">by ${halt.by}, since ${formatTime(halt.created_ms)} (${formatAgo(halt.created_ms, now)})</span>${liftForm(ctx, halt)}</li>`;
  const file =
    kill_file === null
      ? []
      : [
          safeHtml`<li><b>Every call.</b> ${kill_file} <span class="by">the kill-switch file exists; remove it to resume</span></li>`,
        ];
  const whole = [...halts.filter(haltsAll).map(line), ...file];
  const parts = halts.filter((halt) => !haltsAll(halt));
  const details = safeHtml`<a href="/console/evidence#halt">Details</a>`;
  const all =
    whole.length === 0
      ? emptyHtml
      : safeHtml`<section class="halted whole" aria-label="Halted"><p class="halted-title">Halted: all new calls are blocked</p><ul>${whole}</ul>${details}</section>`;
  if (parts.length === 0) return all;
  const what =
    parts.length === 1 ? `${haltedCalls(parts[0]!)} are blocked` : `${parts.length} halts block some calls`;
  return safeHtml`${all}<section class="halted" aria-label="Halted in part"><details><summary class="halted-title">Halted: ${what}</summary><ul>${parts.map(line)}</ul>${details}</details></section>`;
}

function liftForm(ctx: PageContext, { id }: StoredHalt): HtmlFragment {
  if (!ctx.may(resumeOp)) return emptyHtml;
  return safeHtml` ${formElement(
    ctx,
    { action: "/console/evidence/resume", class: "inline lift" },
    safeHtml`<input type="hidden" name="id" value="${id}">`,
    submitButton("Lift"),
  )}`;
}

/** Page without the frame, for visitors who are not signed in or not admitted. */
export function barePage(title: string, ...body: TemplateValue[]): HtmlFragment {
  return safeHtml`<!doctype html>
<html lang="en">${htmlHead(title)}
<body class="bare"><main id="main"><div class="bare-brand"><svg viewBox="0 0 24 24" width="34" height="34" aria-hidden="true"><path class="link-a" d="M9.5 14.5 14.5 9.5"/><path class="link-b" d="M11 6.6l1.6-1.6a4.5 4.5 0 0 1 6.4 6.4L17.4 13M13 17.4 11.4 19A4.5 4.5 0 0 1 5 12.6L6.6 11"/></svg><span>svc</span></div>${joinHtml(body, "\n")}</main></body></html>`;
}

/** The frame around every page: the way to the other pages, who one is, the halt banner, the ledger's head. */
import type { App } from "../app/app.ts";
import { halt as haltOp, resume as resumeOp } from "../app/operations/halts.ts";
import type { Halt } from "../model/approval.ts";
import { ROLES } from "../model/roles.ts";
import { ASSET_VERSION } from "./assets/index.ts";
import type { Ctx, NavId, Page } from "./ctx.ts";
import type { Glance } from "./glance.ts";
import { type Html, html, joined, nothing, type Part } from "./html.ts";
import { notice as noticeBlock } from "./parts/blocks.ts";
import { button, form } from "./parts/forms.ts";
import { haltedCalls, haltForm, haltsAll, scopeText } from "./parts/halt-form.ts";
import { icon } from "./parts/icons.ts";
import { hashText } from "./parts/ids.ts";
import { ago, when } from "./parts/time.ts";
import type { Notice } from "./session.ts";

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
/** Drills have their place where they may run. */
const shown = ({ settings }: App, id: NavId) => id !== "drills" || settings.drills.environments.length > 0;
/** What a thumb reaches on a phone; the rest is one jump away. */
const QUICK: readonly NavId[] = ["overview", "approvals", "runs", "alerts"];

export function head(title: string): Html {
  return html`<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>${title} · svc</title>
<link rel="icon" href="/console/assets/icon.svg?v=${ASSET_VERSION}" type="image/svg+xml">
<link rel="stylesheet" href="/console/assets/console.css?v=${ASSET_VERSION}">
<script src="/console/assets/console.js?v=${ASSET_VERSION}" defer></script></head>`;
}

export function shell(ctx: Ctx, seen: Glance, page: Page, said: Notice | null): Html {
  const live = page.live ?? "/console/edge";
  return html`<!doctype html>
<html lang="en">${head(page.title)}
<body data-pulse="${seen.pulse}" data-live-from="${live}">
<a class="skip" href="#main">Skip to the content</a>
<div id="halted" data-live aria-live="assertive">${haltBanner(ctx, seen)}</div>
<div class="frame">
<aside class="side">${brand(ctx.app)}${navigation(ctx.app, page.nav, seen)}${foot(ctx, seen)}</aside>
<div class="pane">${top(ctx)}<main id="main" tabindex="-1">${said === null ? null : html`<div class="said-now">${noticeBlock(said.kind, said.text)}</div>`}${page.body}</main></div>
</div>
${quickBar(page.nav, seen)}
</body></html>`;
}

function brand({ settings }: App): Html {
  return html`<a class="brand" href="/console"><svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true"><path class="link-a" d="M9.5 14.5 14.5 9.5"/><path class="link-b" d="M11 6.6l1.6-1.6a4.5 4.5 0 0 1 6.4 6.4L17.4 13M13 17.4 11.4 19A4.5 4.5 0 0 1 5 12.6L6.6 11"/></svg><span>svc</span>${
    settings.environment === null ? null : html`<span class="environment">${settings.environment}</span>`
  }</a>`;
}

function navigation(app: App, current: NavId | null, seen: Glance): Html {
  const items = NAV.filter(([id]) => shown(app, id)).map(
    ([id, path, label, key]) =>
      html`<li><a href="${path}" data-key="${key}"${id === current ? html` aria-current="page"` : nothing}>${icon(id)}${label}${badge(id, seen)}</a></li>`,
  );
  return html`<nav id="nav" data-live aria-label="Pages"><ul>${items}</ul></nav>`;
}

function badge(id: NavId, { pending }: Glance): Html {
  if (id !== "approvals" || pending === 0) return nothing;
  return html` <span class="count">${pending}<span class="unseen"> waiting</span></span>`;
}

function foot(ctx: Ctx, { head, records }: Glance): Html {
  const role = ROLES.toReversed().find((one) => ctx.principal.roles.includes(one)) ?? "";
  return html`<div class="side-foot">
<div id="chain" data-live class="chain" title="The head of the ledger">${hashText(head, "the head of the ledger", 8)}<span>${records.toLocaleString("en")} records</span></div>
<div class="who"><span class="who-name">${ctx.principal.name}</span><span class="who-role">${role}${ctx.mode === "open" ? ", no login" : ""}</span></div>
${ctx.mode === "open" ? null : form(ctx, { action: "/console/logout", class: "logout" }, button("Log out"))}
<span class="js-only keys-hint">? for the keyboard</span>
</div>`;
}

function quickBar(current: NavId | null, seen: Glance): Html {
  const items = NAV.filter(([id]) => QUICK.includes(id)).map(
    ([id, path, label]) =>
      html`<li><a href="${path}"${id === current ? html` aria-current="page"` : nothing}>${icon(id)}${label}${badge(id, seen)}</a></li>`,
  );
  return html`<nav id="quick" class="quick" data-live aria-label="Quick"><ul>${items}<li><a href="#nav">${icon("more")}More</a></li></ul></nav>`;
}

/** Finding anything from anywhere, and stopping everything, for those who may. */
function top(ctx: Ctx): Html {
  return html`<header class="top"><form method="get" action="/console/search" role="search" aria-label="Everything">${icon("search")}<input type="search" name="q" id="find" value="" maxlength="512" aria-label="Find anything" placeholder="Find runs, tools, actors, requests, records" autocomplete="off"><kbd class="js-only" aria-hidden="true">/</kbd></form>${
    ctx.may(haltOp)
      ? html`<a class="button danger halt-now" href="/console/evidence#halt" data-dialog="halt-form">${icon("halt")}Halt</a><template id="halt-form" data-title="Halt new calls">${haltForm(ctx)}</template>`
      : nothing
  }</header>`;
}

/** A halt of everything stays in sight. One of a part is a line that opens, and scrolls away. */
function haltBanner(ctx: Ctx, { halts, kill_file }: Glance): Html {
  const now = ctx.app.core.env.now();
  const line = (halt: Halt): Html =>
    html`<li><b>${scopeText(halt)}</b> ${halt.reason} <span class="by">by ${halt.by}, since ${when(halt.created_ms)} (${ago(halt.created_ms, now)})</span>${liftForm(ctx, halt)}</li>`;
  const file =
    kill_file === null
      ? []
      : [
          html`<li><b>Every call.</b> ${kill_file} <span class="by">the kill-switch file exists; removing it lifts this</span></li>`,
        ];
  const whole = [...halts.filter(haltsAll).map(line), ...file];
  const parts = halts.filter((halt) => !haltsAll(halt));
  const details = html`<a href="/console/evidence#halt">Details</a>`;
  const all =
    whole.length === 0
      ? nothing
      : html`<section class="halted whole" aria-label="Halted"><p class="halted-title">Halted: all new calls are blocked</p><ul>${whole}</ul>${details}</section>`;
  if (parts.length === 0) return all;
  const what =
    parts.length === 1 ? `${haltedCalls(parts[0]!)} are blocked` : `${parts.length} halts block some calls`;
  return html`${all}<section class="halted" aria-label="Halted in part"><details><summary class="halted-title">Halted: ${what}</summary><ul>${parts.map(line)}</ul>${details}</details></section>`;
}

function liftForm(ctx: Ctx, { id }: Halt): Html {
  if (!ctx.may(resumeOp)) return nothing;
  return html` ${form(
    ctx,
    { action: "/console/evidence/resume", class: "inline lift" },
    html`<input type="hidden" name="id" value="${id}">`,
    button("Lift"),
  )}`;
}

/** A page without the frame: for those who are not logged in, or not let in. */
export function bare(title: string, ...body: Part[]): Html {
  return html`<!doctype html>
<html lang="en">${head(title)}
<body class="bare"><main id="main"><div class="bare-brand"><svg viewBox="0 0 24 24" width="34" height="34" aria-hidden="true"><path class="link-a" d="M9.5 14.5 14.5 9.5"/><path class="link-b" d="M11 6.6l1.6-1.6a4.5 4.5 0 0 1 6.4 6.4L17.4 13M13 17.4 11.4 19A4.5 4.5 0 0 1 5 12.6L6.6 11"/></svg><span>svc</span></div>${joined(body, "\n")}</main></body></html>`;
}

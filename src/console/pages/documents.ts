/** Reports, bundles and trails for people who are logged in here and hold no key for the API. */
import { Content } from "../../app/door/operation.ts";
import { bundleLedger, bundleRun, evidenceKey } from "../../app/operations/bundles.ts";
import { ledgerCheckpoint } from "../../app/operations/checkpoints.ts";
import { exportRun } from "../../app/operations/export.ts";
import { periodReport, runReport, runReportAsPdf } from "../../app/operations/reports.ts";
import type { PeriodFormat } from "../../evidence/report/period-formats.ts";
import { type Answer, type ConsoleRoute, type Ctx, get } from "../ctx.ts";

const run = (ctx: Ctx) => ({ run_id: ctx.params["id"]! });

export const documentRoutes: readonly ConsoleRoute[] = [
  // Shown in the browser, as a document that may do nothing, instead of being saved.
  get("/runs/:id/report", async (ctx) => ({ content: await ctx.call(runReport, run(ctx)), document: true })),
  get("/runs/:id/report.pdf", async (ctx) => ({ content: await ctx.call(runReportAsPdf, run(ctx)) })),
  get("/runs/:id/bundle", async (ctx) => ({ content: await ctx.call(bundleRun, run(ctx)) })),
  get("/runs/:id/trail", trail),
  get("/evidence/bundle", async (ctx) => ({ content: await ctx.call(bundleLedger, {}) })),
  get("/evidence/key", publicKey),
  get("/evidence/checkpoint", async (ctx) => ({ content: await ctx.call(ledgerCheckpoint, {}) })),
  get("/evidence/report", period),
];

async function trail(ctx: Ctx): Promise<Answer> {
  const { type, body } = (await ctx.call(exportRun, run(ctx))) as Content;
  return { content: new Content(type, body, `${ctx.params["id"]}.jsonl`) };
}

async function publicKey(ctx: Ctx): Promise<Answer> {
  const { public_key } = await ctx.call(evidenceKey, {});
  return { content: new Content("application/x-pem-file", public_key, "evidence.pub") };
}

const FORMATS = { html: true, md: false, json: false };

async function period(ctx: Ctx): Promise<Answer> {
  const { since = "7d", format = "html" } = ctx.query;
  const content = await ctx.call(periodReport, { since, format: format as PeriodFormat | "pdf" });
  const document = format in FORMATS && FORMATS[format as keyof typeof FORMATS];
  return { content: new Content(content.type, content.body, `report.${format}`), document };
}

/** Downloads of reports, bundles and trails for console users, who need no API key for them. */
import type { PeriodFormat } from "../../evidence/report/period/period-formats.ts";
import { bundleLedger, bundleRun, evidenceKey } from "../../operations/evidence/bundles.ts";
import { ledgerCheckpoint } from "../../operations/evidence/checkpoints.ts";
import { exportRun } from "../../operations/evidence/export.ts";
import { periodReport, runReport, runReportAsPdf } from "../../operations/evidence/reports.ts";
import { DocumentContent } from "../../operations/pipeline/operation.ts";
import { type ConsoleRoute, getRoute, type PageAnswer, type PageContext } from "../page-context.ts";

const run = (ctx: PageContext) => ({ run_id: ctx.params["id"]! });

export const documentRoutes: readonly ConsoleRoute[] = [
  // Opens in the browser as a sandboxed document instead of being downloaded.
  getRoute("/runs/:id/report", async (ctx) => ({
    content: await ctx.call(runReport, run(ctx)),
    document: true,
  })),
  getRoute("/runs/:id/report.pdf", async (ctx) => ({ content: await ctx.call(runReportAsPdf, run(ctx)) })),
  getRoute("/runs/:id/bundle", async (ctx) => ({ content: await ctx.call(bundleRun, run(ctx)) })),
  getRoute("/runs/:id/trail", trail),
  getRoute("/evidence/bundle", async (ctx) => ({ content: await ctx.call(bundleLedger, {}) })),
  getRoute("/evidence/key", publicKey),
  getRoute("/evidence/checkpoint", async (ctx) => ({ content: await ctx.call(ledgerCheckpoint, {}) })),
  getRoute("/evidence/report", period),
];

async function trail(ctx: PageContext): Promise<PageAnswer> {
  const { type, body } = (await ctx.call(exportRun, run(ctx))) as DocumentContent;
  return { content: new DocumentContent(type, body, `${ctx.params["id"]}.jsonl`) };
}

async function publicKey(ctx: PageContext): Promise<PageAnswer> {
  const { public_key } = await ctx.call(evidenceKey, {});
  return { content: new DocumentContent("application/x-pem-file", public_key, "evidence.pub") };
}

const FORMATS = { html: true, md: false, json: false };

async function period(ctx: PageContext): Promise<PageAnswer> {
  const { since = "7d", format = "html" } = ctx.query;
  const content = await ctx.call(periodReport, { since, format: format as PeriodFormat | "pdf" });
  const document = format in FORMATS && FORMATS[format as keyof typeof FORMATS];
  return { content: new DocumentContent(content.type, content.body, `report.${format}`), document };
}

/** Reports, bundles and trails for people who are logged in here and hold no key for the API. */
import { Content } from "../../app/operation.ts";
import { type Answer, type ConsoleRoute, type Ctx, get } from "../ctx.ts";
import type { OpName } from "../ops.ts";

interface Document {
  path: string;
  op: OpName;
  /** Shown in the browser, as a document that may do nothing, instead of being saved. */
  shown?: boolean;
  filename?(ctx: Ctx): string;
}

const DOCUMENTS: readonly Document[] = [
  { path: "/runs/:id/report", op: "GET /v1/runs/{id}/report", shown: true },
  { path: "/runs/:id/report.pdf", op: "GET /v1/runs/{id}/report.pdf" },
  { path: "/runs/:id/bundle", op: "GET /v1/runs/{id}/bundle" },
  { path: "/runs/:id/trail", op: "GET /v1/runs/{id}/export", filename: (ctx) => `${ctx.params["id"]}.jsonl` },
  { path: "/evidence/bundle", op: "GET /v1/ledger/bundle" },
  { path: "/evidence/key", op: "GET /v1/evidence/key", filename: () => "evidence.pub" },
];

export const documentRoutes: readonly ConsoleRoute[] = [
  ...DOCUMENTS.map((document) => get(document.path, (ctx) => send(ctx, document))),
  get("/evidence/report", periodReport),
];

async function send(ctx: Ctx, { op, shown, filename }: Document): Promise<Answer> {
  const answer = await ctx.call<unknown>(op, { params: op.includes("{id}") ? { id: ctx.params["id"] } : {} });
  if (answer instanceof Content) {
    const name = filename?.(ctx) ?? answer.filename;
    return { content: new Content(answer.type, answer.body, name), document: shown ?? false };
  }
  const { public_key } = answer as { public_key: string };
  return { content: new Content("application/x-pem-file", public_key, filename?.(ctx)) };
}

const FORMATS = { html: true, md: false, json: false };

async function periodReport(ctx: Ctx): Promise<Answer> {
  const { since = "7d", format = "html" } = ctx.query;
  const content = await ctx.call<Content>("GET /v1/report", { query: { since, format } });
  const document = format in FORMATS && FORMATS[format as keyof typeof FORMATS];
  return { content: new Content(content.type, content.body, `report.${format}`), document };
}

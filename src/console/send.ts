/** Sends the response of a page or form: HTML under a strict content policy, a redirect, or a document as it is. */
import { Readable } from "node:stream";
import type { FastifyReply } from "fastify";
import type { DocumentContent } from "../operations/pipeline/operation.ts";
import type { HtmlFragment } from "./html.ts";

/** Content policy for pages: no external or inline content, no framing, no forms to other sites. */
const POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "worker-src 'self'",
  "manifest-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join("; ");
/** Content policy for reports: a separate document with inline styles and no scripts, forms or requests. */
const DOCUMENT_POLICY =
  "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; base-uri 'none'";

export function setSecurityHeaders(reply: FastifyReply): void {
  reply.headers({
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
  });
}

export function sendHtml(reply: FastifyReply, status: number, page: HtmlFragment | Buffer): FastifyReply {
  const body = Buffer.isBuffer(page) ? page : page.toString();
  return reply.code(status).type("text/html; charset=utf-8").send(body);
}

export function sendContent(reply: FastifyReply, content: DocumentContent, document: boolean): FastifyReply {
  const { body, filename } = content;
  reply.type(content.type);
  if (document) reply.header("content-security-policy", DOCUMENT_POLICY);
  else
    reply.header(
      "content-disposition",
      filename === undefined
        ? "attachment"
        : `attachment; filename="${filename.replaceAll(/[^\w.-]/g, "_")}"`,
    );
  return reply.send(typeof body === "string" || body instanceof Uint8Array ? body : Readable.from(body));
}

/** Sending what a page or a form answered: HTML under a strict policy, a redirect, or a document as it is. */
import { Readable } from "node:stream";
import type { FastifyReply } from "fastify";
import type { Content } from "../app/door/operation.ts";
import type { Html } from "./html.ts";

/** Nothing from elsewhere, nothing inline, no frame around it, no form to another place. */
const POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join("; ");
/** A report is a document of its own, with its styles inside; it may do nothing at all. */
const DOCUMENT_POLICY =
  "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; base-uri 'none'";

export function secure(reply: FastifyReply): void {
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

export function sendHtml(reply: FastifyReply, status: number, page: Html): FastifyReply {
  return reply.code(status).type("text/html; charset=utf-8").send(page.toString());
}

export function sendContent(reply: FastifyReply, content: Content, document: boolean): FastifyReply {
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

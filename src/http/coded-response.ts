/** Every answer of 400 and above names its cause in a header, whoever wrote it: a route, the router, or the MCP SDK. */
import { type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from "node:http";
import { ERROR_CODE_HEADER } from "../api/row.ts";
import { codeOfStatus } from "./refusal.ts";

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[];

export class CodedResponse extends ServerResponse {
  override writeHead(status: number, message?: string | Headers, headers?: Headers): this {
    const given = typeof message === "object" ? message : headers;
    if (status >= 400 && !this.hasHeader(ERROR_CODE_HEADER) && !names(given))
      this.setHeader(ERROR_CODE_HEADER, codeOfStatus(status));
    if (typeof message === "string") return super.writeHead(status, message, headers);
    return super.writeHead(status, given);
  }
}

function names(headers: Headers | undefined): boolean {
  if (headers === undefined) return false;
  return Array.isArray(headers)
    ? headers.includes(ERROR_CODE_HEADER)
    : Object.hasOwn(headers, ERROR_CODE_HEADER);
}

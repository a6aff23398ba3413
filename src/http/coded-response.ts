/**
 * Response that names its cause in a header if the status is 400 or above. Routes, the router and the MCP SDK all write
 * their responses through this class.
 */
import { type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from "node:http";
import { ERROR_CODE_HEADER } from "./api/http-row.ts";
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

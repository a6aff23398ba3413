/** The caller of an operation over HTTP. */
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { CallerPrincipal } from "../../govern/roles.ts";
import type { ServiceApp } from "../../operations/app.ts";
import type { ApiCaller } from "../../operations/pipeline/operation.ts";
import { REPLAYED_HEADER } from "../api/http-row.ts";

export class HttpCaller implements ApiCaller {
  readonly app: ServiceApp;
  readonly principal: CallerPrincipal;
  readonly again: () => CallerPrincipal | Promise<CallerPrincipal>;
  private readonly headers: IncomingHttpHeaders;
  private readonly response: ServerResponse;
  private gone: AbortSignal | undefined;

  constructor(
    app: ServiceApp,
    principal: CallerPrincipal,
    again: HttpCaller["again"],
    headers: IncomingHttpHeaders,
    response: ServerResponse,
  ) {
    this.app = app;
    this.principal = principal;
    this.again = again;
    this.headers = headers;
    this.response = response;
  }

  get traceparent(): string | undefined {
    const given = this.headers["traceparent"];
    return typeof given === "string" ? given : undefined;
  }

  replayed(): void {
    this.response.setHeader(REPLAYED_HEADER, "true");
  }

  /** Created on first use, so operations that finish at once do not pay for it. */
  get signal(): AbortSignal {
    this.gone ??= goneSignal(this.response);
    return this.gone;
  }
}

/** Aborts when the client disconnects. Listens to the response, because one connection carries many requests. */
function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  if (response.destroyed) gone.abort();
  else response.once("close", () => gone.abort());
  return gone.signal;
}

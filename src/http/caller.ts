/** Whoever calls an operation over HTTP. */
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { REPLAYED_HEADER } from "../api/row.ts";
import type { App } from "../app/app.ts";
import type { Caller } from "../app/door/operation.ts";
import type { Principal } from "../model/roles.ts";

export class HttpCaller implements Caller {
  readonly app: App;
  readonly principal: Principal;
  readonly again: () => Principal | Promise<Principal>;
  private readonly headers: IncomingHttpHeaders;
  private readonly response: ServerResponse;
  private gone: AbortSignal | undefined;

  constructor(
    app: App,
    principal: Principal,
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

  /** Made when it is asked for: an operation that is over at once pays nothing for it. */
  get signal(): AbortSignal {
    this.gone ??= goneSignal(this.response);
    return this.gone;
  }
}

/** Aborts when the client leaves. It hangs on the answer, not on a connection that carries many of them. */
function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  if (response.destroyed) gone.abort();
  else response.once("close", () => gone.abort());
  return gone.signal;
}

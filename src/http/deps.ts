/** The dependencies of the HTTP surface, and the facts that it reports about each answered request. */
import type { CallerPrincipal } from "../govern/roles.ts";
import type { ServiceApp } from "../operations/app.ts";
import type { ServiceMetrics } from "../telemetry/metrics.ts";

export interface AnsweredRequest {
  method: string;
  path: string;
  /** The route's pattern, with its parameters unfilled. */
  route: string;
  status: number;
  ms: number;
  principal: string | null;
  /** The value of the response header `x-request-id`. */
  request_id: string;
  /** Code and message of the refusal. Undefined if the request succeeded. */
  code?: string | undefined;
  error?: string | undefined;
}

/** Resolves a credential to a principal, synchronously if possible, or rejects with `unauthenticated`. */
type Authenticate = (authorization: string | undefined) => CallerPrincipal | Promise<CallerPrincipal>;

export interface HttpDeps {
  app: ServiceApp;
  authenticate: Authenticate;
  metrics: ServiceMetrics;
  /** Finds the principal of a chat user by the name of its key. Without this function, chat actions fail. */
  named?(name: string): CallerPrincipal | undefined;
  /** Called once for each answered request. */
  answered?(request: AnsweredRequest): void;
  /** Sends every request through the router. Tests use this to compare the router with the fast path. */
  router_only?: boolean;
  /** Further readiness checks, such as the gateway's upstreams. Each problem keeps `/readyz` at 503. */
  readiness?(): Promise<{ problems: string[]; facts: Record<string, unknown> }>;
}

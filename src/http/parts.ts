/** What the HTTP surface is built from, and what it tells about each answered request. */
import type { App } from "../app/app.ts";
import type { Principal } from "../model/roles.ts";
import type { Metrics } from "../telemetry/metrics.ts";

export interface Answered {
  method: string;
  path: string;
  /** The route's pattern, with its parameters unfilled. */
  route: string;
  status: number;
  ms: number;
  principal: string | null;
  /** What the answer's x-request-id says. */
  request_id: string;
  /** Why it was refused: the cause's code and the message; undefined where it was not. */
  code?: string | undefined;
  error?: string | undefined;
}

/** Turns a credential into a principal, at once where it can, or rejects with `unauthenticated`. */
type Authenticate = (authorization: string | undefined) => Principal | Promise<Principal>;

export interface HttpParts {
  app: App;
  authenticate: Authenticate;
  metrics: Metrics;
  /** Knows principals by the name of their key, for chat users; without it there are no chat actions. */
  named?(name: string): Principal | undefined;
  /** Told once per answered request. */
  answered?(request: Answered): void;
  /** Every request goes through the router: for whoever holds the two ways against each other. */
  router_only?: boolean;
  /** What else must work before this process is ready, as problems; the gateway's upstreams, for one. */
  readiness?(): Promise<{ problems: string[]; facts: Record<string, unknown> }>;
}

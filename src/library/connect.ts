/** The same client shape against a remote server. */
import { randomUUID } from "node:crypto";
import { createEgress } from "../egress/egress.ts";
import type { Decision } from "../engine/decide/verdict.ts";
import { ERRORS, type ErrorCode, SvcError } from "../kernel/errors.ts";
import type { Json } from "../kernel/json.ts";
import type { OutcomeStatus } from "../model/run.ts";
import type { RollbackPlan } from "../rollback/plan.ts";
import type { RunOptions, Svc } from "./open.ts";
import { remoteRollback } from "./remote-rollback.ts";
import type { Request } from "./request.ts";
import { Run } from "./run.ts";

export interface ConnectOptions {
  url: string;
  key: string;
  timeout_ms?: number;
}

/** `actor` is the key's own name on a remote server, so it may be left out. */
export interface RemoteSvc extends Omit<Svc, "run"> {
  run(options: Omit<RunOptions, "actor" | "tenant"> & { actor?: string }): Promise<Run>;
}

const ATTEMPTS = 3;

export async function connect({ url, key, timeout_ms = 30_000 }: ConnectOptions): Promise<RemoteSvc> {
  const base = url.replace(/\/+$/, "");
  // The caller chose this server; only the rules that always hold apply to it.
  const egress = createEgress({ block_private: false }, {});
  const send = async (
    method: string,
    path: string,
    body: Json | undefined,
    headers: Record<string, string>,
  ) => {
    const response = await egress.request(base + path, {
      method,
      timeout_ms,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer = JSON.parse(Buffer.from(response.body).toString("utf8")) as Json;
    if (response.status < 400) return answer;
    throw new SvcError(
      codeFor(response.status),
      String((answer as { error?: Json } | null)?.error ?? `status ${response.status}`),
    );
  };
  const request: Request = async (method, path, body, headers = {}) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await send(method, path, body, headers);
      } catch (error) {
        // Only what carries a key of its own may be sent again: the server then answers as the first time.
        const safe =
          headers["idempotency-key"] !== undefined &&
          !(error instanceof SvcError && error.code !== "unavailable");
        if (!safe || attempt === ATTEMPTS) throw error;
      }
    }
  };
  return {
    async run({ actor: _actor, ...body }) {
      const opened = (await request("POST", "/v1/runs", body as unknown as Json)) as {
        run_id: string;
        scope_seal: string;
      };
      return remoteRun(request, opened.run_id, opened.scope_seal);
    },
    close: () => egress.close(),
  };
}

function remoteRun(request: Request, run_id: string, seal: string): Run {
  const at = `/v1/runs/${encodeURIComponent(run_id)}`;
  const once = () => ({ "idempotency-key": randomUUID() });
  const plan = () => request("GET", `${at}/plan`) as unknown as Promise<RollbackPlan>;
  return new Run(run_id, seal, {
    intent: (intent) =>
      request("POST", `${at}/intents`, intent as unknown as Json, once()) as unknown as Promise<Decision>,
    outcome: (step, outcome) =>
      request(
        "POST",
        `${at}/steps/${step}/outcome`,
        outcome as unknown as Json,
        once(),
      ) as unknown as Promise<{
        step: number;
        status: OutcomeStatus;
      }>,
    plan,
    rollback: (options) => remoteRollback(request, run_id, plan, options),
  });
}

function codeFor(status: number): ErrorCode {
  const found = (Object.keys(ERRORS) as ErrorCode[]).find((code) => ERRORS[code].http === status);
  return found ?? (status >= 500 ? "unavailable" : "invalid");
}

/** A server whose approvals are signed, and people with passkeys on it. */
import { type SoftAlgorithm, SoftPasskey } from "./passkeys.ts";
import { type TestServer, type TestServerOptions, testServer } from "./server.ts";

export const SIGN_AT = "https://svc.example.com";
export const LEDGER = "example.com/ledger";

const MANIFESTS = `
- {tool: pay.refund, effect: compensable, permission: pay, compensation: {tool: pay.reclaim, args: {id: $result.id}, requires_approval: true}}
- {tool: pay.plain, effect: idempotent, permission: pay}
- {tool: pay.free, effect: idempotent, permission: pay}
`;
export const SIGNED_POLICY = `version: 1
rules:
  - {id: refunds, match: {tool: pay.refund}, action: require_approval, approval: {signed: true}}
  - {id: plain, match: {tool: pay.plain}, action: require_approval}
`;

export interface SigningServer extends TestServer {
  people: Record<string, SoftPasskey>;
  /** Adds a passkey and has another admin confirm it. */
  enrol(key: string, alg?: SoftAlgorithm): Promise<SoftPasskey>;
  /** Opens a run and asks for a call; answers the request's id. */
  ask(tool?: string, args?: object): Promise<{ run_id: string; id: string }>;
  challenge(
    key: string,
    body: object,
  ): Promise<{ status: number; body: { payload: object; options: object } }>;
  /** Asks what to sign, and signs it. */
  signed(key: string, body: object): Promise<object>;
}

export async function signingServer(options: TestServerOptions = {}): Promise<SigningServer> {
  const s = await testServer({
    manifests: MANIFESTS,
    policy: SIGNED_POLICY,
    ...options,
    config: `console_url: ${SIGN_AT}\nledger_origin: ${LEDGER}\n${options.config ?? ""}`,
    keys: [
      { name: "ann", role: "approver" },
      { name: "bob", role: "approver" },
      { name: "admin2", role: "admin" },
      ...(options.keys ?? []),
    ],
  });
  const people: Record<string, SoftPasskey> = {};
  let n = 0;
  const challenge: SigningServer["challenge"] = (key, body) => s.call(key, "POST", "/v1/challenges", body);
  return Object.assign(s, {
    people,
    challenge,
    async enrol(key: string, alg: SoftAlgorithm = "ES256") {
      const soft = new SoftPasskey(SIGN_AT, { alg });
      const made = (await s.call(key, "POST", "/v1/passkeys/options", {})).body;
      const { id } = (await s.call(key, "POST", "/v1/passkeys", { response: soft.create(made) })).body;
      const other = key === "admin" ? "admin2" : "admin";
      const done = await s.call(other, "POST", `/v1/passkeys/${id}/confirm`, { code: soft.code });
      if (done.status !== 200) throw new Error(done.text);
      people[key] = soft;
      return soft;
    },
    async ask(tool = "pay.refund", args: object = { amount: 900, id: ++n }) {
      const run_id = `signed-${n++}`;
      await s.call("agent", "POST", "/v1/runs", { run_id, permissions: ["pay"] });
      const asked = await s.call("agent", "POST", `/v1/runs/${run_id}/intents`, {
        tool,
        args,
        reason: "because",
      });
      return { run_id, id: /apr_[0-9a-f-]{36}/.exec(asked.text)?.[0] ?? asked.text };
    },
    async signed(key: string, body: object) {
      const asked = await challenge(key, body);
      if (asked.status !== 200) throw new Error(JSON.stringify(asked.body));
      return people[key]!.sign(asked.body);
    },
  });
}

/** Attacks and bad inputs as data: the bytes to send to a real process, the expected answer, and whether anything may change. */
import { asBytes, type Plain } from "./requests.ts";

export interface Attack {
  name: string;
  on: "server" | "gateway";
  /** Sent one after the other; each must be answered like this. */
  send: readonly (Buffer | string)[];
  status: readonly number[];
  message: RegExp;
  /** A decision is recorded also when it is a refusal; everything else must leave no trace. */
  changes?: true;
}

/** Occurs in arguments, and must be found nowhere else. */
export const CANARY = "canary-5c1f09";
const RUN = "/v1/runs/attacked";

const call = (plain: Omit<Plain, "key"> & { key?: string }): Buffer => asBytes({ key: "agent", ...plain });
const intent = (body: string | Buffer, more: Partial<Plain> = {}): Buffer =>
  call({ method: "POST", path: `${RUN}/intents`, body, ...more });
const wanted = (tool: string, args: unknown, more: object = {}): Buffer =>
  intent(JSON.stringify({ tool, args, reason: "why", ...more }));
const raw = (head: string, body = ""): string => `${head.replaceAll("\n", "\r\n")}\r\n\r\n${body}`;
const get = (path: string): Buffer => call({ method: "GET", path });
const mcp = (body: unknown, headers: Record<string, string> = {}, key = "agent"): Buffer =>
  asBytes({
    key,
    method: "POST",
    path: "/mcp",
    body: JSON.stringify(body),
    headers: { accept: "application/json, text/event-stream", ...headers },
  });

const BAD = [400] as const;
const GOOD_BODY = `{"tool":"crm.get","args":{"id":"${CANARY}"},"reason":"why"}`;
const INITIALIZE = {
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "c", version: "1" } },
};

export const ATTACKS: readonly Attack[] = [
  {
    name: "two bodies that a sloppy reader takes for one",
    on: "server",
    send: [
      `{"a":1,"a":2}`,
      `{"__proto__":{"a":"${CANARY}"}}`,
      "9007199254740993",
      "1e400",
      "[1e308]",
      `"\\ud800"`,
    ].map((args) => intent(`{"tool":"crm.get","args":${args},"reason":"why"}`)),
    status: BAD,
    message: /invalid JSON: /,
  },
  {
    name: "an amount that is no number, past a rule that compares it",
    on: "server",
    send: ["5000", [5000], {}, "5,000", { valueOf: 1 }, null, true].map((amount) =>
      wanted("pay.refund", { amount, note: CANARY }),
    ),
    status: [200],
    message: /"decision":"block".*could not compare \$args\.amount/,
    changes: true,
  },
  {
    name: "tools that look like another",
    on: "server",
    send: [
      "delete_user ",
      "d\u0435lete_user",
      "Delete_user",
      "delete_user\u0000",
      "delete_user\u200b",
      "delete_user/../crm.get",
    ].map((tool) => wanted(tool, { id: CANARY })),
    status: [200],
    message: /"decision":"block".*no manifest is registered/,
    changes: true,
  },
  {
    name: "one's own calls, approved ahead of time under four eyes",
    on: "server",
    send: [2_000, 5].map((amount) =>
      call({
        key: "both",
        method: "POST",
        path: "/v1/runs/own/approvals",
        body: JSON.stringify({ tool: "pay.refund", args: { amount, note: CANARY } }),
      }),
    ),
    status: [403],
    message: /you cannot decide your own request/,
  },
  {
    name: "a key's index with another key's fingerprint",
    on: "server",
    send: ["DELETE", "PATCH"].flatMap((method) =>
      ["0000000000000000", '"0"', ""].map((fingerprint) =>
        call({
          ...{ key: "admin", method, path: "/v1/keys/1", headers: { "if-match": fingerprint } },
          ...(method === "PATCH" ? { body: '{"disabled":true}' } : {}),
        }),
      ),
    ),
    status: [409],
    message: /another key has this index now/,
  },
  {
    name: "a wider scope, or another mode, for a run that is open",
    on: "server",
    send: [
      { permissions: ["*"] },
      { permissions: ["crm.read", "user.delete"] },
      { permissions: ["crm.read"], mode: "observe" },
    ].map((more) =>
      call({ method: "POST", path: "/v1/runs", body: JSON.stringify({ run_id: "attacked", ...more }) }),
    ),
    status: [409],
    message: /attacked/,
  },
  {
    name: "a policy whose pattern never ends, from an auditor",
    on: "server",
    send: ["^(a+)+$", "(x+x+)+y", "^(([a-z])+.)+[A-Z]([a-z])+$"].map((pattern) =>
      call({
        key: "auditor",
        method: "POST",
        path: "/v1/speculate",
        body: JSON.stringify({
          policy: `version: 1\nrules:\n  - {id: r, action: deny, when: [{path: $args.t, op: matches, value: "${pattern}"}]}\n`,
          plans: [{ name: "p", calls: [{ tool: "crm.get", args: { t: `${"a".repeat(5_000)}!` } }] }],
        }),
      }),
    ),
    status: [200],
    message: /"recommended"/,
  },
  {
    name: "bodies that are no object",
    on: "server",
    send: ["", "null", "[]", '"x"', "5", "true", "{", "[{}]", "{}{}"].map((body) => intent(body)),
    status: BAD,
    message: /"error":"(?:invalid JSON|body: must be|tool: is required)/,
  },
  {
    name: "bodies in other encodings",
    on: "server",
    send: [
      Buffer.from(`\ufeff${GOOD_BODY}`),
      Buffer.from(GOOD_BODY, "utf16le"),
      Buffer.concat([Buffer.from('{"tool":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')]),
      Buffer.from([0xff, 0xfe, 0x00]),
    ].map((body) => intent(body)),
    status: BAD,
    message: /UTF-8|invalid JSON/,
  },
  {
    name: "other content types, and compressed bodies",
    on: "server",
    send: [
      intent(GOOD_BODY, { headers: { "content-type": "text/plain" } }),
      intent(GOOD_BODY, { headers: { "content-type": "application/xml" } }),
      intent(GOOD_BODY, { headers: { "content-encoding": "gzip" } }),
      intent(GOOD_BODY, { headers: { "content-encoding": "br" } }),
    ],
    status: [415],
    message: /application\/json|compressed bodies/,
  },
  {
    name: "nesting without end",
    on: "server",
    send: [65, 5_000, 500_000].map((depth) =>
      intent(`{"tool":"crm.get","args":${"[".repeat(depth)}${"]".repeat(depth)},"reason":"why"}`),
    ),
    status: BAD,
    message: /nesting is deeper than 64 levels/,
  },
  {
    name: "a body of one byte too many, with its length and without",
    on: "server",
    send: [
      intent(`"${"x".repeat(1_048_576)}"`),
      raw(
        `POST ${RUN}/intents HTTP/1.1\nhost: x\nauthorization: Bearer agent\ncontent-type: application/json\ntransfer-encoding: chunked`,
        `100001\r\n"${"x".repeat(0x100001 - 2)}"\r\n0\r\n\r\n`,
      ),
    ],
    status: [413],
    message: /over 1 MB/,
  },
  {
    name: "two lengths for one body",
    on: "server",
    send: [
      raw("POST /v1/runs HTTP/1.1\nhost: x\ncontent-length: 4\ntransfer-encoding: chunked", "0\r\n\r\n"),
      raw("POST /v1/runs HTTP/1.1\nhost: x\ncontent-length: 4\ncontent-length: 5", "{}{}"),
      raw("POST /v1/runs HTTP/1.1\nhost: x\n content-length: 4", "{}"),
      raw("POST /v1/runs HTTP/1.1\nhost: x\ncontent-length : 4", "{}"),
      raw("POST /v1/runs HTTP/1.1\nhost: x\ncontent-length: +4", "{}"),
      raw("POST /v1/runs HTTP/1.1\nhost: x\ntransfer-encoding: chunked, identity", "0\r\n\r\n"),
      raw("GET /v1/runs HTTP/1.1\nhost: a\nx: \u0001"),
      "GET /v1/runs HTTP/1.1\nhost: a\n\n",
      "GARBAGE\r\n\r\n",
    ],
    status: BAD,
    message: /^\{"error":"[^"]+"\}$/,
  },
  {
    name: "a header twice that must be there once",
    on: "server",
    send: [
      "authorization: Bearer agent\nauthorization: Bearer admin",
      "authorization: Bearer agent\nsvc-run-id: a\nsvc-run-id: b",
    ].map((headers) => raw(`GET /v1/runs HTTP/1.1\nhost: x\n${headers}`)),
    status: BAD,
    message: /more than one/,
  },
  {
    name: "credentials that are none",
    on: "server",
    send: [
      "Bearer",
      "Bearer ",
      "Basic YWdlbnQ6",
      "agent",
      "Bearer agent admin",
      `Bearer ${"x".repeat(8_000)}`,
      "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.",
    ].map((authorization) => asBytes({ method: "GET", path: "/v1/runs", headers: { authorization } })),
    status: [401],
    message: /credential/,
  },
  {
    name: "step numbers that are none",
    on: "server",
    send: ["01", "1e0", "-1", "1.0", "9007199254740992", "%00", "0x0", "1%2f2", "9".repeat(400)].map((n) =>
      call({ method: "POST", path: `${RUN}/steps/${n}/outcome`, body: '{"status":"succeeded"}' }),
    ),
    status: BAD,
    message: /step number|path/,
  },
  {
    name: "run ids that lead elsewhere",
    on: "server",
    send: [
      "x".repeat(129),
      ".hidden",
      "a%2f..%2fb",
      "%00",
      "a%0a",
      "..%2f..%2fetc%2fpasswd",
      "%ff",
      "a%20b",
    ].flatMap((id) => [
      get(`/v1/runs/${id}`),
      call({ key: "auditor", method: "GET", path: `/v1/runs/${id}/export` }),
    ]),
    status: [400, 404],
    message: /^\{"error":"[^"]+"\}$/,
  },
  {
    name: "run ids that no run may have",
    on: "server",
    send: ["", "x".repeat(129), ".a", "a/b", "a\u0000", "a\n", "ä", "../x", " "].map((run_id) =>
      call({ method: "POST", path: "/v1/runs", body: JSON.stringify({ run_id, permissions: [] }) }),
    ),
    status: BAD,
    message: /run_id: /,
  },
  {
    name: "steps that a call cannot depend on",
    on: "server",
    send: [
      [-1],
      [0.5],
      ["0"],
      [99],
      [Number.MAX_SAFE_INTEGER],
      { length: 1 },
      "0",
      null,
      Array.from({ length: 100_000 }, (_, i) => i),
    ].map((depends_on) => wanted("crm.get", { id: CANARY }, { depends_on })),
    status: BAD,
    message: /depends_on/,
  },
  {
    name: "members that no request has",
    on: "server",
    send: [
      wanted("crm.get", { id: CANARY }, { objections: [], force: true }),
      wanted("crm.get", { id: CANARY }, { mode: "observe" }),
      call({ method: "POST", path: "/v1/runs", body: '{"permissions":[],"principal":"key:admin"}' }),
      get("/v1/runs?admin=1"),
    ],
    status: BAD,
    message: /unknown|unrecognized|not a known/i,
  },
  {
    name: "an archive among the service's own files",
    on: "server",
    send: ["data", "../", "/", "data/../keys.json", "archive/../../x", "a\u0000b"].map((archive_dir) =>
      call({
        key: "admin",
        method: "POST",
        path: "/v1/retention/apply",
        body: JSON.stringify({ archive_dir }),
      }),
    ),
    status: [400, 404],
    message: /archive_dir|no retention settings/,
  },
  {
    name: "the gateway under another host name, or from another site",
    on: "gateway",
    send: [
      mcp(INITIALIZE, { host: "evil.example" }),
      mcp(INITIALIZE, { host: "localhost.evil.example" }),
      mcp(INITIALIZE, { origin: "https://evil.example" }),
      mcp(INITIALIZE, { origin: "null" }),
    ],
    status: [403],
    message: /Host|Origin/,
  },
  {
    name: "sessions that are not there",
    on: "gateway",
    send: ["x", "../../x", "00000000-0000-4000-8000-000000000000"].map((id) =>
      mcp({ jsonrpc: "2.0", id: 1, method: "ping" }, { "mcp-session-id": id }),
    ),
    status: [404],
    message: /unknown session/,
  },
  {
    name: "messages that are none",
    on: "gateway",
    send: [
      null,
      5,
      "x",
      {},
      { jsonrpc: "1.0" },
      { jsonrpc: "2.0", id: {}, method: "ping" },
      { jsonrpc: "2.0", id: 1, method: "ping", extra: CANARY },
    ].map((body) => mcp(body, { "mcp-session-id": "x" })),
    status: BAD,
    message: /JSON-RPC 2\.0/,
  },
  {
    name: "the wrong role at an endpoint",
    on: "gateway",
    send: ["auditor", "approver", "operator"].map((key) => mcp(INITIALIZE, {}, key)),
    status: [403],
    message: /agent role required/,
  },
];

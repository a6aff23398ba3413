/** Groups of routes, one page each, and an example body for each request that needs one. */

export interface RouteGroup {
  readonly page: string;
  readonly title: string;
  readonly about: string;
  /** Matches the paths of the group, without `/v1/`. The first group that matches a path has it. */
  readonly paths: RegExp;
}

export const ROUTE_GROUPS: readonly RouteGroup[] = [
  {
    page: "undo",
    title: "Undo and containment over HTTP",
    about:
      "Preview and start rollbacks, undo steps as a remote worker, contain an agent, follow incidents, and run drills.",
    paths: /^(runs\/\{id\}\/(plan|rollback)$|runs\/.*\/compensation|horizon|contain|drills|incidents|actors)/,
  },
  {
    page: "evidence",
    title: "Evidence and reports over HTTP",
    about: "Export records, download reports and signed bundles, and verify the ledger.",
    paths:
      /^(runs\/\{id\}\/(export|report|report\.pdf|bundle)$|ledger|evidence|anchor|report|search\/records)/,
  },
  {
    page: "approvals",
    title: "Approvals over HTTP",
    about: "Decide requests and plans, approve similar calls in advance, and delegate your authority.",
    paths: /^(approvals|plans|grants|delegations|challenges|runs\/\{id\}\/(approvals|plans)$)/,
  },
  {
    page: "policy",
    title: "Policies and simulation over HTTP",
    about: "Publish manifests and policies, and try them on past or planned calls.",
    paths: /^(registry|simulate|speculate|impact|policy|runs\/\{id\}\/replay$)/,
  },
  {
    page: "runs",
    title: "Runs and calls over HTTP",
    about: "Open runs, ask for decisions, report outcomes, and search runs. Agents need only this page.",
    paths: /^(runs|stream$|search\/runs|agents)/,
  },
  {
    page: "operations",
    title: "Operations over HTTP",
    about: "Read the status and the alerts, halt calls, and manage keys, holds and retention.",
    paths:
      /^(alerts|status|connectors|http-tools|halts?$|resume|reload|holds|retention|keys|passkeys|push|upstreams)/,
  },
  {
    page: "authzen",
    title: "AuthZEN over HTTP",
    about: "Ask for decisions by the AuthZEN Authorization API, and poll the ones that wait for approval.",
    paths: /^\/access\//,
  },
  {
    page: "open",
    title: "Routes outside the API",
    about: "Health checks, metrics, the API description, and the callback of chat buttons.",
    paths: /^\//,
  },
];

const TERMS = {
  match: { tool: "payments.refund", actor: "billing-bot" },
  rules: ["big-refunds"],
  when: [{ path: "$args.amount", op: "lte", value: 900 }],
  max_uses: 20,
  expires_at: "2026-01-02T18:00:00Z",
  reason: "returns of the winter sale",
};
const REFUND = { tool: "payments.refund", args: { order_id: "o-77", amount: 600 } };
const AUTHZEN = {
  subject: { type: "agent", id: "billing-bot" },
  action: { name: REFUND.tool },
  resource: { type: "tool", id: REFUND.tool, properties: REFUND.args },
};
const CARD_HASH = `sha256:${"0".repeat(64)}`;
const POLICY = "version: 1\nrules:\n  - {id: no-mail, match: {tool: mail.send}, action: deny}\n";

/** Bodies by operation. A request that is not listed has an empty body. */
export const EXAMPLE_BODIES: Readonly<Record<string, object>> = {
  evaluate_access: {
    ...AUTHZEN,
    context: { run_id: "ticket-4826", reason: "customer was charged twice", commit: true },
  },
  evaluate_accesses: { ...AUTHZEN, evaluations: [{}, { action: { name: "mail.send" } }] },
  request_access: { ...AUTHZEN, denial: { evaluation_id: "apr_0b7e2f9c-1111-4222-8333-444455556666" } },
  open_run: { permissions: ["payments.refund", "mail.send"], run_id: "ticket-4826", reason: "ticket 4826" },
  give_texts: { texts: ["Refund the second charge of order 4711, please"] },
  intent: { ...REFUND, reason: "customer was charged twice" },
  preview_intent: { ...REFUND, reason: "customer was charged twice" },
  outcome: { status: "succeeded", result: { refund_id: "re-9" } },
  report_agents: {
    agents: [
      {
        client: "claude-code",
        version: "2.1.327",
        workspace: "/home/ann/shop",
        governed: "yes",
        missing: [],
        last_seen_ms: 1_767_348_000_000,
      },
    ],
  },
  reconcile: {
    source: "claude-code",
    calls: [{ ref: "toolu_1", tool: "Bash", at_ms: 1_767_348_000_000, ran: true }],
  },
  resolve: { status: "succeeded", note: "The refund is on the bank statement" },
  start_rollback: { retries: 3, confirm: true },
  complete_compensation: { status: "succeeded", attempts: 1 },
  approve: { note: "agreed with the customer", card_hash: CARD_HASH },
  deny: { note: "too much", offer: { args: { order_id: "o-77", amount: 60 } } },
  break_glass: { reason: "outage, nobody else can be reached" },
  pre_approve: { ...REFUND, note: "agreed with the customer", ttl: "4h" },
  create_delegation: {
    to: "ben",
    tools: "payments.*",
    expires_at: "2026-01-09T18:00:00Z",
    reason: "vacation",
  },
  propose_plan: {
    reason: "refund the order and notify the customer",
    calls: [REFUND, { tool: "mail.send", args: { to: "a@example.com" } }],
  },
  approve_plan: { note: "agreed with the customer", card_hash: CARD_HASH },
  deny_plan: { note: "ask the customer first" },
  create_grant: TERMS,
  preview_grant: TERMS,
  simulate: { policy: POLICY, since: "7d" },
  replay: { changes: [{ tool: "payments.refund", path: "$args.amount", value: 900 }] },
  speculate: { plans: [{ name: "refund", calls: [REFUND] }], actor: "billing-bot" },
  diff_policy: { b: POLICY },
  halt: { actor: "billing-bot", reason: "investigating refunds" },
  resume: { id: "<halt id>" },
  contain: { actor: "billing-bot", since: "24h", reason: "wrong refunds", confirm: true },
  add_incident_note: { text: "The refunds stopped after the halt" },
  assign_incident: { to: "ann" },
  close_incident: { reason: "The customer keeps the refund" },
  start_drills: { due: true },
  publish_manifest: { yaml: "tool: mail.send\neffect: irreversible\n" },
  publish_policy: { yaml: POLICY, note: "Stop mail" },
  place_hold: { tenant: "acme", reason: "case 2026-17" },
  retention_apply: { dry_run: true },
  create_key: { name: "billing-bot", roles: ["agent"], max_permissions: ["payments.*"] },
  change_key: { disabled: true },
  add_passkey: {
    response: {
      id: "kOm2",
      rawId: "kOm2",
      type: "public-key",
      response: { clientDataJSON: "eyJ0eXBl", attestationObject: "o2NmbXQ" },
    },
  },
  add_push: {
    endpoint: "https://push.example.com/send/4f1c",
    keys: {
      p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
      auth: "BTBZMqHH6r4Tts7J_aSIgg",
    },
    label: "Ann's phone",
  },
  change_push: { quiet: { from: "22:00", to: "07:00", zone: "Europe/Berlin" } },
  confirm_passkey: { code: "1f0c9a3b" },
  open_challenge: { kind: "passkey", id: "psk_4f1c", decision: "confirm" },
};

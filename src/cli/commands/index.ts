/**
 * All commands, in the order of the help. Each command's code is loaded when it is called, so that starting `svc` does
 * not load the server, PDF or gateway libraries.
 */
import type { RegisterCommand } from "../context.ts";

interface CommandRow {
  name: string;
  summary: string;
  load(): Promise<RegisterCommand>;
}

const row = (name: string, summary: string, load: () => Promise<RegisterCommand>): CommandRow => ({
  name,
  summary,
  load,
});

export const COMMAND_TABLE: readonly CommandRow[] = [
  row(
    "server",
    "Start the HTTP API and the console",
    async () => (await import("./server/server.ts")).registerServer,
  ),
  row(
    "gateway",
    "Govern the calls between MCP clients and tool servers",
    async () => (await import("./server/gateway.ts")).registerGateway,
  ),
  row(
    "proxy",
    "Govern the HTTP requests of agents",
    async () => (await import("./server/proxy.ts")).registerProxy,
  ),
  row(
    "run",
    "Start an agent confined to its workspace and the proxy",
    async () => (await import("./agents/run.ts")).registerRun,
  ),
  row(
    "init",
    "Draft the gateway files for a tool server",
    async () => (await import("./agents/init.ts")).registerInit,
  ),
  row(
    "connect",
    "Connect an MCP client or a coding agent",
    async () => (await import("./agents/connect.ts")).registerConnect,
  ),
  row("hook", "Answer a coding agent's hook", async () => (await import("./agents/hook.ts")).registerHook),
  row(
    "console",
    "Open the console on this machine",
    async () => (await import("./server/console.ts")).registerConsole,
  ),
  row(
    "validate",
    "Check tool manifests",
    async () => (await import("./policy/validate.ts")).registerValidate,
  ),
  row(
    "policy",
    "Check, test and compare policies",
    async () => (await import("./policy/policy.ts")).registerPolicy,
  ),
  row(
    "registry",
    "Publish and activate manifests and policies",
    async () => (await import("./policy/registry.ts")).registerRegistry,
  ),
  row("login", "Store the key for a server", async () => (await import("./keys/login.ts")).registerLogin),
  row("keys", "Create and list API keys", async () => (await import("./keys/keys.ts")).registerKeys),
  row(
    "passkeys",
    "List and revoke passkeys",
    async () => (await import("./keys/passkeys.ts")).registerPasskeys,
  ),
  row(
    "upstreams",
    "Connect people to tool servers, list and revoke",
    async () => (await import("./keys/upstreams.ts")).registerUpstreams,
  ),
  row(
    "push",
    "List and remove devices that get push messages",
    async () => (await import("./keys/push.ts")).registerPush,
  ),
  row(
    "approvers",
    "Manage the file of the people who sign approvals",
    async () => (await import("./keys/approvers.ts")).registerApprovers,
  ),
  row("runs", "List runs", async () => (await import("./runs/runs.ts")).registerRuns),
  row("show", "Show what a run did", async () => (await import("./runs/show.ts")).registerShow),
  row(
    "export",
    "Print ledger records as JSON lines",
    async () => (await import("./runs/export.ts")).registerExport,
  ),
  row(
    "backup",
    "Back up the data while the service runs",
    async () => (await import("./server/backup.ts")).registerBackup,
  ),
  row("verify", "Verify the ledger", async () => (await import("./evidence/verify.ts")).registerVerify),
  row("keygen", "Create a signing key pair", async () => (await import("./keys/keygen.ts")).registerKeygen),
  row("bundle", "Write a signed bundle", async () => (await import("./evidence/bundle.ts")).registerBundle),
  row(
    "verify-bundle",
    "Verify a signed bundle",
    async () => (await import("./evidence/verify-bundle.ts")).registerVerifyBundle,
  ),
  row(
    "anchor",
    "Publish and verify anchors",
    async () => (await import("./evidence/anchor.ts")).registerAnchor,
  ),
  row(
    "witness",
    "Cosign checkpoints of other ledgers",
    async () => (await import("./evidence/witness.ts")).registerWitness,
  ),
  row(
    "report",
    "Report on a run or a period",
    async () => (await import("./evidence/report.ts")).registerReport,
  ),
  row(
    "lineage",
    "List which results fed which calls",
    async () => (await import("./runs/lineage.ts")).registerLineage,
  ),
  row("horizon", "List undos that expire", async () => (await import("./runs/horizon.ts")).registerHorizon),
  row(
    "oversight",
    "Report how approvers decide requests",
    async () => (await import("./approvals/oversight.ts")).registerOversight,
  ),
  row("plan", "Preview a rollback", async () => (await import("./runs/plan.ts")).registerPlan),
  row(
    "rollback",
    "Undo the steps of a run",
    async () => (await import("./runs/rollback.ts")).registerRollback,
  ),
  row(
    "resolve",
    "Record the outcome of a step",
    async () => (await import("./runs/resolve.ts")).registerResolve,
  ),
  row(
    "approvals",
    "List and decide approval requests",
    async () => (await import("./approvals/approvals.ts")).registerApprovals,
  ),
  row(
    "plans",
    "List and decide plans that agents propose",
    async () => (await import("./approvals/plans.ts")).registerPlans,
  ),
  row(
    "grants",
    "Manage standing approvals",
    async () => (await import("./approvals/grants.ts")).registerGrants,
  ),
  row("halt", "Halt new calls and lift halts", async () => (await import("./stop/halt.ts")).registerHalt),
  row(
    "contain",
    "Stop an agent and undo its work",
    async () => (await import("./stop/contain.ts")).registerContain,
  ),
  row(
    "incidents",
    "List incidents, take notes, assign and close",
    async () => (await import("./stop/incidents.ts")).registerIncidents,
  ),
  row(
    "actor",
    "Show what an agent can do and did",
    async () => (await import("./stop/actor.ts")).registerActor,
  ),
  row("drill", "Test that undos work", async () => (await import("./agents/drill.ts")).registerDrill),
  row(
    "capture",
    "List and delete captured calls",
    async () => (await import("./retention/capture.ts")).registerCapture,
  ),
  row(
    "simulate",
    "Test a policy on captured calls",
    async () => (await import("./policy/simulate.ts")).registerSimulate,
  ),
  row(
    "replay",
    "Replay a captured run with changes",
    async () => (await import("./policy/replay.ts")).registerReplay,
  ),
  row(
    "impact",
    "Preview the decision, risk and undo of a call",
    async () => (await import("./policy/impact.ts")).registerImpact,
  ),
  row(
    "speculate",
    "Try plans in a sandbox and rank them",
    async () => (await import("./policy/speculate.ts")).registerSpeculate,
  ),
  row(
    "retention",
    "Delete the working data of old runs",
    async () => (await import("./retention/retention.ts")).registerRetention,
  ),
  row("hold", "Manage legal holds", async () => (await import("./retention/hold.ts")).registerHold),
  row(
    "kill-switch",
    "Create or remove the kill-switch file",
    async () => (await import("./stop/kill-switch.ts")).registerKillSwitch,
  ),
  row(
    "agents",
    "List the coding agents and MCP servers on this machine",
    async () => (await import("./agents/agents.ts")).registerAgents,
  ),
  row(
    "reconcile",
    "Compare the transcripts of coding agents with the ledger",
    async () => (await import("./agents/reconcile.ts")).registerReconcile,
  ),
  row(
    "probe",
    "Test that the guarantees hold",
    async () => (await import("./agents/probe.ts")).registerProbe,
  ),
  row(
    "doctor",
    "Check what the service depends on",
    async () => (await import("./server/doctor.ts")).registerDoctor,
  ),
  row(
    "config",
    "Show and check the settings",
    async () => (await import("./server/config.ts")).registerConfig,
  ),
  row(
    "completion",
    "Print a shell completion script",
    async () => (await import("./completion.ts")).registerCompletion,
  ),
];

/**
 * Every command, in the order of the help. A command's code is loaded when it is called: starting `svc` must
 * not cost what a server, a PDF or a gateway costs.
 */
import type { Register } from "../context.ts";

interface CommandRow {
  name: string;
  summary: string;
  load(): Promise<Register>;
}

const row = (name: string, summary: string, load: () => Promise<Register>): CommandRow => ({
  name,
  summary,
  load,
});

export const COMMANDS: readonly CommandRow[] = [
  row(
    "server",
    "start the HTTP API and the console",
    async () => (await import("./server.ts")).registerServer,
  ),
  row(
    "gateway",
    "stand between MCP clients and their tool servers",
    async () => (await import("./gateway.ts")).registerGateway,
  ),
  row(
    "init",
    "draft manifests, a policy and a gateway config from a tool server",
    async () => (await import("./init.ts")).registerInit,
  ),
  row(
    "connect",
    "point an MCP client at the gateway, or a coding agent's hooks at the service",
    async () => (await import("./connect.ts")).registerConnect,
  ),
  row("hook", "answer a coding agent's hook", async () => (await import("./hook.ts")).registerHook),
  row(
    "console",
    "open the console on this machine",
    async () => (await import("./console.ts")).registerConsole,
  ),
  row("validate", "check tool manifests", async () => (await import("./validate.ts")).registerValidate),
  row("policy", "check a policy and run its tests", async () => (await import("./policy.ts")).registerPolicy),
  row(
    "registry",
    "publish, approve and activate manifests and policies",
    async () => (await import("./registry.ts")).registerRegistry,
  ),
  row("login", "keep the key for a server", async () => (await import("./login.ts")).registerLogin),
  row("keys", "make and list API keys", async () => (await import("./keys.ts")).registerKeys),
  row("runs", "list runs", async () => (await import("./runs.ts")).registerRuns),
  row("show", "tell what a run did", async () => (await import("./show.ts")).registerShow),
  row(
    "export",
    "print ledger records as JSON lines",
    async () => (await import("./export.ts")).registerExport,
  ),
  row(
    "backup",
    "copy the data while the service runs",
    async () => (await import("./backup.ts")).registerBackup,
  ),
  row("verify", "check the ledger's chain", async () => (await import("./verify.ts")).registerVerify),
  row("keygen", "make a signing key", async () => (await import("./keygen.ts")).registerKeygen),
  row("bundle", "write a signed bundle", async () => (await import("./bundle.ts")).registerBundle),
  row(
    "verify-bundle",
    "check a signed bundle",
    async () => (await import("./verify-bundle.ts")).registerVerifyBundle,
  ),
  row("anchor", "publish and verify anchors", async () => (await import("./anchor.ts")).registerAnchor),
  row(
    "witness",
    "cosign other people's checkpoints",
    async () => (await import("./witness.ts")).registerWitness,
  ),
  row("report", "report on a run or a period", async () => (await import("./report.ts")).registerReport),
  row("horizon", "list undos that close", async () => (await import("./horizon.ts")).registerHorizon),
  row(
    "oversight",
    "report how people decide what they are asked",
    async () => (await import("./oversight.ts")).registerOversight,
  ),
  row("plan", "show what a rollback would do", async () => (await import("./plan.ts")).registerPlan),
  row(
    "rollback",
    "undo the standing steps of a run",
    async () => (await import("./rollback.ts")).registerRollback,
  ),
  row("resolve", "say what became of a step", async () => (await import("./resolve.ts")).registerResolve),
  row(
    "approvals",
    "list and decide approval requests",
    async () => (await import("./approvals.ts")).registerApprovals,
  ),
  row("plans", "list and decide what agents propose", async () => (await import("./plans.ts")).registerPlans),
  row(
    "grants",
    "approve calls like these ahead, for a while",
    async () => (await import("./grants.ts")).registerGrants,
  ),
  row("halt", "halt new calls, and lift halts", async () => (await import("./halt.ts")).registerHalt),
  row(
    "contain",
    "halt an agent and undo what it did",
    async () => (await import("./contain.ts")).registerContain,
  ),
  row("drill", "prove that undos work", async () => (await import("./drill.ts")).registerDrill),
  row(
    "capture",
    "list and delete captured calls",
    async () => (await import("./capture.ts")).registerCapture,
  ),
  row(
    "simulate",
    "judge captured calls under another policy",
    async () => (await import("./simulate.ts")).registerSimulate,
  ),
  row(
    "replay",
    "replay a captured run with changes",
    async () => (await import("./replay.ts")).registerReplay,
  ),
  row("impact", "preview what a call would do", async () => (await import("./impact.ts")).registerImpact),
  row("speculate", "try plans and rank them", async () => (await import("./speculate.ts")).registerSpeculate),
  row(
    "retention",
    "delete the working data of old runs",
    async () => (await import("./retention.ts")).registerRetention,
  ),
  row("hold", "legal holds", async () => (await import("./hold.ts")).registerHold),
  row(
    "kill-switch",
    "make or remove the kill-switch file",
    async () => (await import("./kill-switch.ts")).registerKillSwitch,
  ),
  row("probe", "try whether the guarantees hold", async () => (await import("./probe.ts")).registerProbe),
  row(
    "doctor",
    "check what the service depends on",
    async () => (await import("./doctor.ts")).registerDoctor,
  ),
  row("config", "show and check the settings", async () => (await import("./config.ts")).registerConfig),
  row(
    "completion",
    "print a completion script for a shell",
    async () => (await import("./completion.ts")).registerCompletion,
  ),
];

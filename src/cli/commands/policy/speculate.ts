/** `svc speculate <plans file>`: tries plans in the sandbox and ranks them, safest first. */
import { resolve } from "node:path";
import * as z from "zod";
import { readTextFile } from "../../../config/files.ts";
import { plansShape, speculateOnPlans as speculateOp } from "../../../operations/simulate/speculate.ts";
import { readYaml } from "../../../rules/yaml.ts";
import type { PlanResult, SpeculationReport } from "../../../simulate/speculate.ts";
import { globalOptions, type RegisterCommand } from "../../context.ts";
import { alignColumns, type CommandIo, escapeControls } from "../../io.ts";
import { formatCount, terminalWidth, truncateLine } from "../../truncate.ts";
import { readPolicy, withPolicyFileName } from "./simulate.ts";

const plansFile = z.strictObject({ plans: plansShape });

export const registerSpeculate: RegisterCommand = (program, context) => {
  const { io } = context;
  globalOptions(program.command("speculate <plans>").description("Try plans in a sandbox and rank them"))
    .option("--policy <file>", "policy file to use instead of the active policy")
    .option("--actor <name>", "who would make the calls", "cli")
    .option("--json", "print the report as JSON")
    .action(async (file: string, flags: Record<string, string>) => {
      const { plans } = readYaml(await readTextFile(resolve(io.cwd, file)), file, plansFile);
      const policy = flags["policy"] === undefined ? null : await readPolicy(io, flags["policy"]);
      await context.withDoor(flags, async (door) => {
        const input = { plans, policy: policy?.text, actor: flags["actor"]! };
        const report = (await withPolicyFileName(policy, door.perform(speculateOp, input))).read();
        if (flags["json"]) io.out(JSON.stringify(report, null, 2));
        else for (const line of describeSpeculation(report, io)) io.out(line);
      });
    });
};

const SHOWN_NOTES = 5;

function describeSpeculation(report: SpeculationReport, io: CommandIo): string[] {
  const { color } = io;
  const width = terminalWidth(io);
  const rows = report.plans.map((plan) => [
    plan.recommended ? "*" : " ",
    escapeControls(plan.name),
    String(plan.rank),
    plan.blocked_at === null ? "runs to the end" : `blocked at call ${plan.blocked_at.call}`,
    formatCount(plan.approvals.length, "approval"),
    `risk ${plan.highest_risk}`,
    plan.fully_reversible ? "fully reversible" : "not fully reversible",
  ]);
  const lines = alignColumns([[" ", "plan", "rank", "outcome", "approvals", "highest", "undo"], ...rows]);
  const verdict =
    report.recommended === null
      ? color.red("no plan can complete")
      : color.green(`recommended: ${escapeControls(report.recommended)}`);
  return [
    ...lines.map((line) => truncateLine(line, width)),
    verdict,
    ...report.plans.flatMap((plan) => details(plan, width)),
  ];
}

function details(plan: PlanResult, width: number): string[] {
  const { blocked_at, irreversible_tools, residue, notes } = plan;
  const facts = [
    ...(blocked_at === null ? [] : [`${blocked_at.tool} is blocked: ${blocked_at.reasons.join("; ")}`]),
    ...(irreversible_tools.length === 0 ? [] : [`cannot be undone: ${irreversible_tools.join(", ")}`]),
    ...(residue.length === 0 ? [] : [`a rollback would leave: ${residue.join("; ")}`]),
    ...notes.slice(0, SHOWN_NOTES),
    ...(notes.length > SHOWN_NOTES ? [`${notes.length - SHOWN_NOTES} more notes; see --json`] : []),
  ];
  if (facts.length === 0) return [];
  return [`${escapeControls(plan.name)}:`, ...facts.map((fact) => `  ${truncateLine(fact, width - 2)}`)];
}

/** `svc speculate <plans file>`: tries plans in the sandbox and ranks them, the safest first. */
import { resolve } from "node:path";
import * as z from "zod";
import { plansShape, speculate as speculateOp } from "../../app/operations/speculate.ts";
import { readTextFile } from "../../config/files.ts";
import { readYaml } from "../../model/yaml.ts";
import type { PlanResult, SpeculationReport } from "../../sandbox/speculate.ts";
import { globalOptions, type Register } from "../context.ts";
import { columnsOf, count, fitted } from "../fit.ts";
import { columns, type Io, printable } from "../io.ts";
import { naming, readPolicy } from "./simulate.ts";

const plansFile = z.strictObject({ plans: plansShape });

export const registerSpeculate: Register = (program, context) => {
  const { io } = context;
  globalOptions(program.command("speculate <plans>").description("try plans in the sandbox and rank them"))
    .option("--policy <file>", "a policy file instead of the one in force")
    .option("--actor <name>", "who would carry them out", "cli")
    .option("--json", "print the report as JSON")
    .action(async (file: string, flags: Record<string, string>) => {
      const { plans } = readYaml(await readTextFile(resolve(io.cwd, file)), file, plansFile);
      const policy = flags["policy"] === undefined ? null : await readPolicy(io, flags["policy"]);
      await context.withDoor(flags, async (door) => {
        const input = { plans, policy: policy?.text, actor: flags["actor"]! };
        const report = (await naming(policy, door.perform(speculateOp, input))).read();
        if (flags["json"]) io.out(JSON.stringify(report, null, 2));
        else for (const line of describeSpeculation(report, io)) io.out(line);
      });
    });
};

const SHOWN_NOTES = 5;

function describeSpeculation(report: SpeculationReport, io: Io): string[] {
  const { color } = io;
  const width = columnsOf(io);
  const rows = report.plans.map((plan) => [
    plan.recommended ? "*" : " ",
    printable(plan.name),
    String(plan.rank),
    plan.blocked_at === null ? "runs to the end" : `blocked at call ${plan.blocked_at.call}`,
    count(plan.approvals.length, "approval"),
    `risk ${plan.highest_risk}`,
    plan.fully_reversible ? "fully reversible" : "not fully reversible",
  ]);
  const lines = columns([[" ", "plan", "rank", "outcome", "approvals", "highest", "undo"], ...rows]);
  const verdict =
    report.recommended === null
      ? color.red("no plan can run to its end")
      : color.green(`recommended: ${printable(report.recommended)}`);
  return [
    ...lines.map((line) => fitted(line, width)),
    verdict,
    ...report.plans.flatMap((plan) => details(plan, width)),
  ];
}

function details(plan: PlanResult, width: number): string[] {
  const { blocked_at, irreversible_tools, residue, notes } = plan;
  const facts = [
    ...(blocked_at === null ? [] : [`${blocked_at.tool} is refused: ${blocked_at.reasons.join("; ")}`]),
    ...(irreversible_tools.length === 0 ? [] : [`cannot be undone: ${irreversible_tools.join(", ")}`]),
    ...(residue.length === 0 ? [] : [`a rollback would leave: ${residue.join("; ")}`]),
    ...notes.slice(0, SHOWN_NOTES),
    ...(notes.length > SHOWN_NOTES ? [`${notes.length - SHOWN_NOTES} more notes; see --json`] : []),
  ];
  if (facts.length === 0) return [];
  return [`${printable(plan.name)}:`, ...facts.map((fact) => `  ${fitted(fact, width - 2)}`)];
}

/** `svc impact <tool>`: shows decision, risk and undo of a hypothetical call. */
import {
  previewCallImpact as impactOp,
  type ProvenImpact,
  parseArgs,
  previewImpact,
} from "../../../operations/simulate/impact.ts";
import { compilePolicy } from "../../../rules/policy/compile.ts";
import { loadPolicy } from "../../../rules/policy/load.ts";
import { type CommandContext, globalOptions, type RegisterCommand } from "../../context.ts";
import { alignColumns, type CommandIo, escapeControls, type PaintColors } from "../../io.ts";
import { terminalWidth, truncateLine } from "../../truncate.ts";
import { readPolicy } from "./simulate.ts";

export const registerImpact: RegisterCommand = (program, context) => {
  const { io } = context;
  globalOptions(program.command("impact <tool>").description("Preview the decision, risk and undo of a call"))
    .option("--args <json>", "the call's arguments", "{}")
    .option("--actor <name>", "who would make the call", "cli")
    .option("--policy <file>", "policy file to use instead of the active policy")
    .option("--json", "print the preview as JSON")
    .action(async (tool: string, flags: Record<string, string>) => {
      const call = { tool, args: flags["args"]!, actor: flags["actor"]! };
      const file = flags["policy"];
      const report =
        file === undefined
          ? await context.withDoor(flags, (door) => door.perform(impactOp, call))
          : await tryPolicy(context, flags, file, call);
      if (flags["json"]) io.out(JSON.stringify(report, null, 2));
      else for (const line of describeImpact(report, io)) io.out(line);
    });
};

/** Evaluates the call under a policy that is not active, with the active manifests. */
async function tryPolicy(
  context: CommandContext,
  flags: Record<string, string>,
  file: string,
  call: { tool: string; args: string; actor: string },
): Promise<ProvenImpact> {
  const policy = await readCompiled(context.io, file);
  return context.withApp(flags, (app) => previewImpact(app, { ...call, args: parseArgs(call.args), policy }));
}

async function readCompiled(io: CommandIo, path: string) {
  const { text, file } = await readPolicy(io, path);
  return compilePolicy(loadPolicy(text, file));
}

const PAINTED: Record<ProvenImpact["decision"], keyof PaintColors> = {
  allow: "green",
  needs_approval: "yellow",
  block: "red",
};

function describeImpact(report: ProvenImpact, io: CommandIo): string[] {
  const { color } = io;
  const width = terminalWidth(io);
  const { effect, data_class, blast_radius, version } = report.labels;
  const labels = { effect, "data class": data_class, "blast radius": blast_radius, version };
  const named = Object.entries(labels).flatMap(([name, value]) =>
    value === null ? [] : [`${name} ${value}`],
  );
  const points = Object.entries(report.risk.factors).map(([name, n]) => `${name.replaceAll("_", " ")} ${n}`);
  const rows = [
    ["  risk", `${report.risk.score} (${points.join(", ")})`],
    ...(report.owner === null ? [] : [["  owner", report.owner]]),
    ...(named.length === 0 ? [] : [["  labels", named.join(", ")]]),
    ...(report.requires.length === 0 ? [] : [["  must run first", report.requires.join(", ")]]),
    ...(report.approval === null ? [] : [["  approval", approvers(report.approval)]]),
    ["  undo", undo(report.rollback)],
  ];
  return [
    `${escapeControls(report.tool)}: ${color[PAINTED[report.decision]](report.decision)}`,
    ...report.reasons.map((reason) => truncateLine(`  ${reason}`, width)),
    ...report.hints.map((hint) => truncateLine(`  hint: ${escapeControls(hint)}`, width)),
    ...alignColumns(rows.map((row) => row.map(escapeControls))).map((line) => truncateLine(line, width)),
    ...report.warnings.map((warning) => color.yellow(truncateLine(`warning: ${warning}`, width))),
  ];
}

function approvers({ groups, quorum, needs }: NonNullable<ProvenImpact["approval"]>): string {
  const one = (need: { groups: string[]; quorum: number }) =>
    `${need.quorum} of ${need.groups.length === 0 ? "any approver" : need.groups.join(", ")}`;
  return needs.length > 1 ? needs.map(one).join(" and ") : one({ groups, quorum });
}

function undo({
  outlook,
  undo_tool,
  kind,
  residue,
  verified,
  needs_approval,
  proof,
}: ProvenImpact["rollback"]): string {
  if (undo_tool === null) return outlook;
  const notes = [
    kind,
    verified ? "read back" : "not read back",
    ...(needs_approval ? ["needs approval"] : []),
    ...(proof === null ? [] : [proof]),
  ];
  const leaves = residue.length === 0 ? "" : `; leaves: ${residue.join("; ")}`;
  return `${undo_tool} (${notes.join(", ")})${leaves}`;
}

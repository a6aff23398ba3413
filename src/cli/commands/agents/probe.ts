/**
 * `svc probe`: tests with real calls that the service enforces its guarantees. `svc probe init` drafts its
 * configuration.
 */
import { statSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { compensatorCommand, readerCommand } from "../../../child-process/rollback-commands.ts";
import { isRemote } from "../../../config/setting-row.ts";
import { conflictError } from "../../../kernel/errors.ts";
import {
  CANARY_MANIFESTS,
  CANARY_RULES,
  PROBE_PRINCIPAL,
  type ProbeLine,
  rollBackProbe,
} from "../../../library/probe.ts";
import type { ServiceApp } from "../../../operations/app.ts";
import { withdrawRequestsOf } from "../../../operations/approvals/approvals.ts";
import { guardedUndo } from "../../../operations/signing/approvers-guard.ts";
import { gatewayProbe } from "../../../service/start/gateway-probe.ts";
import { runServerProbe } from "../../../service/start/probe.ts";
import {
  type CommandContext,
  type CommandFlags,
  EXIT_NEEDS_ATTENTION,
  globalOptions,
  type RegisterCommand,
} from "../../context.ts";
import { alignColumns, escapeControls } from "../../io.ts";
import { schemaLine } from "../policy/schema-line.ts";
import { type HookProbeService, probeHooks } from "./probe-hooks.ts";

export const registerProbe: RegisterCommand = (program, context) => {
  const { io } = context;
  const group = globalOptions(program.command("probe").description("Test the guarantees with a canary tool"))
    .option("--policy <file>", "policy file")
    .option("--json", "print the result as JSON")
    .action(async (flags: CommandFlags) => {
      const { rollback } = context.settings(flags);
      const lines = await context.withApp(
        flags,
        async (app) => [
          ...(await runServerProbe(app, gatewayProbe(app))),
          ...(await probeHooks(io, hookService(app, rollback))),
        ],
        ["policy"],
      );
      if (lines.some(({ verdict }) => verdict === "BROKEN")) context.done(1);
      else if (lines.some(({ verdict }) => verdict === "not checked")) context.done(EXIT_NEEDS_ATTENTION);
      if (flags["json"]) return io.out(JSON.stringify({ lines }));
      for (const row of alignColumns(lines.map(rowOf))) io.out(row);
    });

  globalOptions(group.command("init").description("Draft the canary's manifests and rules"))
    .option("--out <dir>", "directory to write to (default: the manifests' directory, or this one)")
    .action(async (flags: CommandFlags & { out?: string }) => {
      const file = join(folderFor(context, flags), "svc-probe.yaml");
      try {
        await writeFile(file, schemaLine("manifest") + CANARY_MANIFESTS, { flag: "wx" });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
        throw conflictError("file_exists", `${file} already exists and is not overwritten`);
      }
      io.out(
        `wrote ${escapeControls(file)}: the canary's manifests; make sure that the configured manifests include this file`,
      );
      io.out("add these under rules: in the policy, and reload:");
      io.out(CANARY_RULES.trimEnd());
    });
};

/** What the probe of hooks asks of the service. */
function hookService(
  app: ServiceApp,
  { compensator_cmd, reader_cmd, timeout_ms }: ServiceApp["settings"]["rollback"],
): HookProbeService {
  return {
    withdraw: (run) => withdrawRequestsOf(app, PROBE_PRINCIPAL, run),
    async rollback(run) {
      if (compensator_cmd === null) return null;
      const compensator = guardedUndo(app, compensatorCommand(compensator_cmd, { timeout_ms }));
      const reader = reader_cmd === null ? null : readerCommand(reader_cmd, {});
      return (await rollBackProbe(app, run, { compensator, reader })).complete;
    },
  };
}

function rowOf({
  surface,
  guarantee,
  verdict,
  reason,
}: Omit<ProbeLine, "surface"> & { surface: string }): string[] {
  return [surface, guarantee, reason === null ? verdict : `${verdict}: ${escapeControls(reason)}`];
}

function folderFor(context: CommandContext, flags: CommandFlags & { out?: string }): string {
  const { cwd } = context.io;
  if (flags.out !== undefined) return resolve(cwd, flags.out);
  const { manifests } = context.settings(flags);
  const isFolder =
    manifests !== null &&
    !isRemote(manifests) &&
    statSync(manifests, { throwIfNoEntry: false })?.isDirectory();
  return isFolder === true ? manifests : cwd;
}

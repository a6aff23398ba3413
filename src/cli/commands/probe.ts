/** `svc probe`: whether "governed" is true today. `svc probe init` drafts what it needs. */
import { statSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { isRemote } from "../../config/row.ts";
import { conflict } from "../../kernel/errors.ts";
import { CANARY_MANIFESTS, CANARY_RULES, type ProbeLine } from "../../library/probe.ts";
import { gatewayProbe } from "../../serve/gateway-probe.ts";
import { probe } from "../../serve/probe.ts";
import { ATTENTION, type Context, type Flags, globalOptions, type Register } from "../context.ts";
import { columns, printable } from "../io.ts";
import { schemaLine } from "../schema-line.ts";

export const registerProbe: Register = (program, context) => {
  const { io } = context;
  const group = globalOptions(
    program.command("probe").description("try whether the guarantees really hold, with a canary tool"),
  )
    .option("--policy <file>", "policy file")
    .option("--json", "print the result as JSON")
    .action(async (flags: Flags) => {
      const lines = await context.withApp(flags, (app) => probe(app, gatewayProbe(app)), ["policy"]);
      if (lines.some(({ verdict }) => verdict === "BROKEN")) context.done(1);
      else if (lines.some(({ verdict }) => verdict === "not checked")) context.done(ATTENTION);
      if (flags["json"]) return io.out(JSON.stringify({ lines }));
      for (const row of columns(lines.map(rowOf))) io.out(row);
    });

  globalOptions(group.command("init").description("draft the canary's manifests and rules"))
    .option("--out <dir>", "folder to write to (default: the manifests' folder, or here)")
    .action(async (flags: Flags & { out?: string }) => {
      const file = join(folderFor(context, flags), "svc-probe.yaml");
      try {
        await writeFile(file, schemaLine("manifest") + CANARY_MANIFESTS, { flag: "wx" });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
        throw conflict("file_exists", `${file} exists already, and is not overwritten`);
      }
      io.out(`wrote ${printable(file)}: the canary's manifests; see that the manifests in force include it`);
      io.out("put these under rules: in the policy, and reload:");
      io.out(CANARY_RULES.trimEnd());
    });
};

function rowOf({ surface, guarantee, verdict, reason }: ProbeLine): string[] {
  return [surface, guarantee, reason === null ? verdict : `${verdict}: ${printable(reason)}`];
}

function folderFor(context: Context, flags: Flags & { out?: string }): string {
  const { cwd } = context.io;
  if (flags.out !== undefined) return resolve(cwd, flags.out);
  const { manifests } = context.settings(flags);
  const isFolder =
    manifests !== null &&
    !isRemote(manifests) &&
    statSync(manifests, { throwIfNoEntry: false })?.isDirectory();
  return isFolder === true ? manifests : cwd;
}

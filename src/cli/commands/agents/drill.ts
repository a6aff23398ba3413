/** `svc drill`: tests undos through the configured upstreams, here or on a server. Exits with 1 if one failed. */
import { drillsThrough } from "../../../gateway/drills.ts";
import { SvcError } from "../../../kernel/errors.ts";
import { listDrills, startDrills } from "../../../operations/drills/drills.ts";
import type { DrillDoc } from "../../../rules/undo-proof.ts";
import {
  type CommandContext,
  type CommandFlags,
  globalOptions,
  type RegisterCommand,
} from "../../context.ts";
import { alignColumns, type CommandIo, escapeControls } from "../../io.ts";
import { localClient, type OperationClient } from "../../operation-client.ts";
import { withUpstreams } from "../../upstreams.ts";
import { drillDrafts } from "./drill-draft.ts";

const LOOK_MS = 200;
const PATIENCE_MS = 15 * 60_000;

export const registerDrill: RegisterCommand = (program, context) => {
  globalOptions(program.command("drill [tools...]").description("Test undos with harmless example calls"))
    .option("--due", "only tools without a recent successful drill")
    .option("--draft", "test the undos that svc init guessed, and update the manifests")
    .option("--disposable <upstream>", "with --draft: the upstream whose data can be changed")
    .option("--upstream <name>", "upstream to use; optional if there is only one")
    .option("--as <name>", "who acts (default: cli)")
    .option("--json", "print the results as JSON")
    .action(async (tools: string[], flags: CommandFlags) => {
      if (flags["draft"]) return drillDrafts(context, tools, flags);
      if (context.isRemote(flags))
        return context.withDoor(flags, (door) => drill(context, door, tools, flags));
      await withUpstreams(context, flags, async (service, gateway) => {
        await Promise.all(gateway.upstreams.map((upstream) => upstream.settled()));
        if (gateway.upstreams.length > 0) service.drills = drillsThrough(gateway);
        return drill(context, localClient(service, flags["as"] as string | undefined), tools, flags);
      });
    });
};

async function drill(
  { io, done }: CommandContext,
  door: OperationClient,
  tools: string[],
  flags: CommandFlags,
): Promise<void> {
  const upstream = flags["upstream"] as string | undefined;
  const input = { ...(tools.length === 0 ? {} : { tools }), due: flags["due"] === true, upstream };
  const { job } = await door.perform(startDrills, input);
  const drills = await results(door, job.tools, job.started_ms);
  if (flags["json"]) io.out(JSON.stringify({ drills }, null, 2));
  else if (drills.length === 0)
    io.err(flags["due"] === true ? "no drills are due" : "no tool declares a drill");
  else for (const line of describe(drills, io)) io.out(line);
  if (drills.some(({ passed }) => !passed)) done(1);
}

/** Waits until each tool has a result from this run. */
async function results(door: OperationClient, tools: readonly string[], since: number): Promise<DrillDoc[]> {
  const until = door.clock.now() + PATIENCE_MS;
  for (;;) {
    const { drills } = await door.perform(listDrills, {});
    const found = tools.flatMap(
      (tool) => drills.find((one) => one.tool === tool && one.at_ms >= since) ?? [],
    );
    if (found.length === tools.length) return found;
    if (door.clock.now() > until)
      throw new SvcError("unavailable", "the drills did not finish in time; see GET /v1/drills");
    await door.clock.sleep(LOOK_MS);
  }
}

function describe(drills: readonly DrillDoc[], { color }: CommandIo): string[] {
  return alignColumns(
    drills.map(({ tool, passed, problem, run_id }) => [
      escapeControls(tool),
      passed ? color.green("passed") : color.red("failed"),
      [run_id === null ? "" : `run ${run_id}`, escapeControls(problem ?? "")]
        .filter((text) => text !== "")
        .join(": "),
    ]),
  );
}

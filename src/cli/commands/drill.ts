/** `svc drill`: proves undos through the configured upstreams, here or on a server. Exits 1 where one failed. */
import { listDrills, startDrills } from "../../app/operations/drills.ts";
import { drillsThrough } from "../../gateway/drills.ts";
import { SvcError } from "../../kernel/errors.ts";
import type { DrillDoc } from "../../model/proof.ts";
import { type Context, type Flags, globalOptions, type Register } from "../context.ts";
import { type Door, localDoor } from "../door.ts";
import { columns, type Io, printable } from "../io.ts";
import { withUpstreams } from "../upstreams.ts";

const LOOK_MS = 200;
const PATIENCE_MS = 15 * 60_000;

export const registerDrill: Register = (program, context) => {
  globalOptions(
    program
      .command("drill [tools...]")
      .description("prove undos: make a harmless example of each call, undo it and read back"),
  )
    .option("--due", "only tools without a fresh proof")
    .option("--upstream <name>", "through this upstream; may be left out where there is one")
    .option("--as <name>", "who drills (default: cli)")
    .option("--json", "print the results as JSON")
    .action(async (tools: string[], flags: Flags) => {
      if (context.isRemote(flags))
        return context.withDoor(flags, (door) => drill(context, door, tools, flags));
      await withUpstreams(context, flags, async (service, gateway) => {
        await Promise.all(gateway.upstreams.map((upstream) => upstream.settled()));
        if (gateway.upstreams.length > 0) service.drills = drillsThrough(gateway);
        return drill(context, localDoor(service, flags["as"] as string | undefined), tools, flags);
      });
    });
};

async function drill({ io, done }: Context, door: Door, tools: string[], flags: Flags): Promise<void> {
  const upstream = flags["upstream"] as string | undefined;
  const input = { ...(tools.length === 0 ? {} : { tools }), due: flags["due"] === true, upstream };
  const { job } = await door.perform(startDrills, input);
  const drills = await results(door, job.tools, job.started_ms);
  if (flags["json"]) io.out(JSON.stringify({ drills }, null, 2));
  else if (drills.length === 0) io.err(flags["due"] === true ? "nothing is due" : "no tool declares a drill");
  else for (const line of describe(drills, io)) io.out(line);
  if (drills.some(({ passed }) => !passed)) done(1);
}

/** Each tool's result is there once it was tried again. */
async function results(door: Door, tools: readonly string[], since: number): Promise<DrillDoc[]> {
  const until = door.clock.now() + PATIENCE_MS;
  for (;;) {
    const { drills } = await door.perform(listDrills, {});
    const found = tools.flatMap(
      (tool) => drills.find((one) => one.tool === tool && one.at_ms >= since) ?? [],
    );
    if (found.length === tools.length) return found;
    if (door.clock.now() > until)
      throw new SvcError("unavailable", "the drills did not end; see GET /v1/drills");
    await door.clock.sleep(LOOK_MS);
  }
}

function describe(drills: readonly DrillDoc[], { color }: Io): string[] {
  return columns(
    drills.map(({ tool, passed, problem, run_id }) => [
      printable(tool),
      passed ? color.green("passed") : color.red("failed"),
      [run_id === null ? "" : `run ${run_id}`, printable(problem ?? "")]
        .filter((text) => text !== "")
        .join(": "),
    ]),
  );
}

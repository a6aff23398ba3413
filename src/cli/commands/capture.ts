/** `svc capture list|purge`: the captured calls of a store, which only the command line can reach. */
import type { App } from "../../app/app.ts";
import { type CaptureView, listCaptures, purge } from "../../app/operations/captures.ts";
import { type Context, globalOptions, type Register } from "../context.ts";
import { partsOf } from "../door.ts";
import { columnsOf, fitted } from "../fit.ts";
import { columns, type Io, printable } from "../io.ts";

export const registerCapture: Register = (program, context) => {
  const group = program.command("capture").description("captured calls: redacted arguments and results");

  globalOptions(group.command("list").description("list captured calls that have not expired, oldest first"))
    .option("--run <id>", "only those of this run")
    .option("--tool <name>", "only those of this tool")
    .option("--since <period>", "only those since then: a period such as 2h, or a date")
    .option("--json", "print JSON")
    .action((flags: Record<string, string>) => list(context, flags));

  globalOptions(group.command("purge").description("delete what has expired, or everything of one run"))
    .option("--run <id>", "everything of this run, expired or not")
    .action(async (flags: Record<string, string>) => {
      const { removed } = await context.withData(flags, (door) =>
        door.perform(purge, { run_id: flags["run"] }),
      );
      context.io.out(`removed ${removed} captured calls`);
    });
};

async function list(context: Context, flags: Record<string, string>): Promise<void> {
  const { io } = context;
  await context.withData(flags, async (door) => {
    const { run: run_id, tool, since } = flags;
    const pages = partsOf(await door.perform(listCaptures, { run_id, tool, since }));
    if (flags["json"]) return printJson(io, pages);
    let none = true;
    for await (const page of pages) {
      none = false;
      const calls = linesOf(page).map((line) => JSON.parse(line) as CaptureView);
      for (const line of columns(calls.map(cells))) io.out(fitted(line, columnsOf(io)));
    }
    if (none) io.err(nothingCaptured(door.local));
  });
}

export function nothingCaptured(app: App | null): string {
  return app === null || app.settings.capture.enabled
    ? "no captured calls"
    : "no captured calls (capture is off here: capture.enabled, or SVC_CAPTURE=1)";
}

/** One document however many calls there are, written as they are read. */
async function printJson(io: Io, pages: AsyncIterable<string>): Promise<void> {
  let before = '{"captures":[';
  for await (const page of pages) {
    for (const line of linesOf(page)) {
      await io.write(`${before}\n${line}`);
      before = ",";
    }
  }
  await io.write(`${before === "," ? "" : before}\n]}\n`);
}

const linesOf = (page: string): string[] => page.trimEnd().split("\n");

function cells(call: CaptureView): string[] {
  return [
    new Date(call.captured_ms).toISOString(),
    `${printable(call.run_id)} ${call.step === null ? "-" : `#${call.step}`}`,
    printable(call.tool),
    (call.verdict === "needs_approval" ? `${call.decision} (needs_approval)` : call.decision).padEnd(22),
    (call.outcome ?? "-").padEnd(9),
    printable(JSON.stringify(call.args)),
  ];
}

/** `svc capture list|purge`: captured calls of a store. Only available on local data. */
import type { ServiceApp } from "../../../operations/app.ts";
import {
  type CaptureView,
  listCaptures,
  purgeCapturedCalls,
} from "../../../operations/retention/captures.ts";
import { type CommandContext, globalOptions, type RegisterCommand } from "../../context.ts";
import { alignColumns, escapeControls } from "../../io.ts";
import { documentChunks } from "../../operation-client.ts";
import { printJsonList } from "../../print-json-list.ts";
import { terminalWidth, truncateLine } from "../../truncate.ts";

export const registerCapture: RegisterCommand = (program, context) => {
  const group = program.command("capture").description("List and delete captured calls");

  globalOptions(group.command("list").description("List captured calls, oldest first"))
    .option("--run <id>", "only calls of this run")
    .option("--tool <name>", "only calls of this tool")
    .option("--since <period>", "only calls since then: a period such as 2h, or a date")
    .option("--json", "print JSON")
    .action((flags: Record<string, string>) => list(context, flags));

  globalOptions(group.command("purge").description("Delete expired calls, or all calls of a run"))
    .option("--run <id>", "delete all calls of this run, expired or not")
    .action(async (flags: Record<string, string>) => {
      const { removed } = await context.withData(flags, (door) =>
        door.perform(purgeCapturedCalls, { run_id: flags["run"] }),
      );
      context.io.out(`removed ${removed} captured calls`);
    });
};

async function list(context: CommandContext, flags: Record<string, string>): Promise<void> {
  const { io } = context;
  await context.withData(flags, async (door) => {
    const { run: run_id, tool, since } = flags;
    const pages = callPages(documentChunks(await door.perform(listCaptures, { run_id, tool, since })));
    if (flags["json"]) return printJsonList(io, "captures", pages);
    let none = true;
    for await (const calls of pages) {
      none = false;
      for (const line of alignColumns(calls.map(cells))) io.out(truncateLine(line, terminalWidth(io)));
    }
    if (none) io.err(noCapturesText(door.local));
  });
}

export function noCapturesText(app: ServiceApp | null): string {
  return app === null || app.settings.capture.enabled
    ? "no captured calls"
    : "no captured calls (capture is off; set capture.enabled or SVC_CAPTURE=1)";
}

/** The calls of each page of JSON lines. */
async function* callPages(pages: AsyncIterable<string>): AsyncGenerator<CaptureView[]> {
  for await (const page of pages)
    yield page
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as CaptureView);
}

function cells(call: CaptureView): string[] {
  return [
    new Date(call.captured_ms).toISOString(),
    `${escapeControls(call.run_id)} ${call.step === null ? "-" : `#${call.step}`}`,
    escapeControls(call.tool),
    (call.verdict === "needs_approval" ? `${call.decision} (needs_approval)` : call.decision).padEnd(22),
    (call.outcome ?? "-").padEnd(9),
    escapeControls(JSON.stringify(call.args)),
  ];
}

/** `svc capture list|purge`: the captured calls of a store, which only the command line can reach. */
import type { App } from "../../app/app.ts";
import { capturedPages, purgeCaptures } from "../../capture/read.ts";
import { parseSince } from "../../kernel/duration.ts";
import type { PastCall } from "../../sandbox/past-call.ts";
import { type Context, globalOptions, type Register } from "../context.ts";
import { columnsOf, fitted } from "../fit.ts";
import { type Io, inert, table } from "../io.ts";

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
      await context.withApp(flags, async ({ core }) => {
        const run_id = flags["run"];
        const which = run_id === undefined ? { expired_at_ms: core.env.now() } : { run_id };
        context.io.out(`removed ${await purgeCaptures(core.store, which)} captured calls`);
      });
    });
};

async function list(context: Context, flags: Record<string, string>): Promise<void> {
  const { io } = context;
  await context.withApp(flags, async (app) => {
    const now = app.core.env.now();
    const since = flags["since"];
    const query = {
      run_id: flags["run"],
      tool: flags["tool"],
      since_ms: since === undefined ? undefined : parseSince(since, now, "--since"),
    };
    const pages = capturedPages(app.core.store, query, now);
    if (flags["json"]) return printJson(io, pages);
    let none = true;
    for await (const calls of pages) {
      none = false;
      for (const line of table(calls.map(cells))) io.out(fitted(line, columnsOf(io)));
    }
    if (none) io.err(nothingCaptured(app));
  });
}

export function nothingCaptured(app: App | null): string {
  return app === null || app.settings.capture.enabled
    ? "no captured calls"
    : "no captured calls (capture is off here: capture.enabled, or SVC_CAPTURE=1)";
}

/** One document however many calls there are, written as they are read. */
async function printJson(io: Io, pages: AsyncIterable<PastCall[]>): Promise<void> {
  let before = '{"captures":[';
  for await (const calls of pages) {
    for (const call of calls) {
      await io.write(`${before}\n${JSON.stringify(view(call))}`);
      before = ",";
    }
  }
  await io.write(`${before === "," ? "" : before}\n]}\n`);
}

/** The documented fields; a result is there once the call has finished. */
function view(call: PastCall) {
  const { args, result, has_result, captured_ms, expires_ms, redacted } = call;
  return {
    run_id: call.run_id,
    step: call.step,
    tool: call.tool,
    actor: call.actor,
    tenant: call.tenant,
    environment: call.environment,
    args,
    ...(has_result ? { result } : {}),
    decision: call.decision,
    verdict: call.verdict,
    reasons: call.reasons,
    outcome: call.outcome,
    manifest_version: call.manifest_version,
    risk_score: call.risk_score,
    captured_ms,
    expires_ms,
    redacted,
  };
}

function cells(call: PastCall): string[] {
  return [
    new Date(call.captured_ms).toISOString(),
    `${inert(call.run_id)} ${call.step === null ? "-" : `#${call.step}`}`,
    inert(call.tool),
    (call.verdict === "needs_approval" ? `${call.decision} (needs_approval)` : call.decision).padEnd(22),
    (call.outcome ?? "-").padEnd(9),
    inert(JSON.stringify(call.args)),
  ];
}

/** `svc gateway`: the MCP gateway, over HTTP when `listen` is set, else as one session on stdin and stdout. */
import { openService, type Service } from "../../app/wiring/service.ts";
import { keyFileOf, listenGiven, type Settings } from "../../config/settings.ts";
import { startStdioGateway } from "../../gateway/stdio.ts";
import { invalid } from "../../kernel/errors.ts";
import { startHttpGateway } from "../../serve/gateway.ts";
import { type Context, globalOptions, HOST_OPTION, PORT_OPTION, type Register } from "../context.ts";
import { untilSignalled } from "../signals.ts";

const OWN_SETTINGS = ["port", "host", "policy", "keys", "toolNames", "askReason"];

export const registerGateway: Register = (program, context) => {
  globalOptions(program.command("gateway").description("stand between MCP clients and their tool servers"))
    .option("--run-id <id>", "stdio: continue this run, or open it under this id")
    .option("--port <n>", PORT_OPTION)
    .option("--host <address>", HOST_OPTION)
    .option("--policy <file>", "policy file")
    .option("--keys <file>", "API key file")
    .option("--tool-names <spelling>", "dots or underscores: how tools are named in lists (default: dots)")
    .option("--ask-reason", "ask for the reason of each call, in an argument svc_reason")
    .action(async (flags: Record<string, unknown>) => {
      const settings = context.settings(flags, OWN_SETTINGS);
      const http = listenGiven(settings);
      const run_id = flags["runId"] as string | undefined;
      checkSettings(settings, http, run_id);
      const service = await openService(settings, context.io.clock);
      await (http ? serveHttp(service, context) : serveStdio(service, run_id));
    });
};

function checkSettings(settings: Settings, http: boolean, run_id: string | undefined): void {
  if (settings.upstreams.length === 0) {
    throw invalid(
      "which tool servers? name them under upstreams in the config file; svc init --from writes one",
    );
  }
  if (http && run_id !== undefined) {
    throw invalid("--run-id belongs to a stdio session; over HTTP send the header Svc-Run-Id");
  }
  const keys = keyFileOf(settings);
  if (http && keys === null && settings.oidc.issuer === null) {
    throw invalid("a gateway that listens needs auth.keys (or an OIDC issuer): nobody could come in");
  }
}

async function serveHttp(service: Service, { io }: Context): Promise<void> {
  const running = await startHttpGateway(service);
  const { ok, of } = count(running.gateway.upstreams);
  io.err(
    `svc ${service.version} gateway listening on ${running.url}/mcp (${ok} of ${of} upstreams, store ${service.core.store.kind})`,
  );
  await untilSignalled(service);
  await running.stop();
}

async function serveStdio(service: Service, run_id: string | undefined): Promise<void> {
  const session = await startStdioGateway(service, { run_id, input: process.stdin, output: process.stdout });
  await Promise.race([session.ended, untilSignalled(service)]);
  await session.stop();
  // What else would keep the process alive (an idle stdin) has no client to serve any more.
  process.stdin.destroy();
}

function count(upstreams: readonly { ok: boolean }[]) {
  return { ok: upstreams.filter(({ ok }) => ok).length, of: upstreams.length };
}

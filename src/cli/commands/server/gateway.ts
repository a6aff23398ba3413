/** `svc gateway`: runs the MCP gateway, over HTTP if `listen` is set, else as one session on stdin and stdout. */

import { hasListenSetting, keyFileOf, type LoadedSettings } from "../../../config/settings.ts";
import { startStdioGateway } from "../../../gateway/session/stdio.ts";
import { invalidError } from "../../../kernel/errors.ts";
import { storeKind } from "../../../operations/status.ts";
import { openService, type RunningService } from "../../../service/service.ts";
import { startHttpGateway } from "../../../service/start/gateway.ts";
import { httpJobTools } from "../../../service/start/http-undo.ts";
import {
  type CommandContext,
  globalOptions,
  HOST_OPTION,
  PORT_OPTION,
  type RegisterCommand,
} from "../../context.ts";
import { untilSignalled } from "../../signals.ts";

const OWN_SETTINGS = ["port", "host", "policy", "keys", "toolNames", "askReason"];

export const registerGateway: RegisterCommand = (program, context) => {
  globalOptions(
    program.command("gateway").description("Govern the calls between MCP clients and tool servers"),
  )
    .option("--run-id <id>", "stdio: continue this run, or open it under this id")
    .option("--port <n>", PORT_OPTION)
    .option("--host <address>", HOST_OPTION)
    .option("--policy <file>", "policy file")
    .option("--keys <file>", "API key file")
    .option("--tool-names <spelling>", "dots or underscores: how tools are named in lists (default: dots)")
    .option("--ask-reason", "add an argument svc_reason that asks for the reason of each call")
    .action(async (flags: Record<string, unknown>) => {
      const settings = context.settings(flags, OWN_SETTINGS);
      const http = hasListenSetting(settings);
      const run_id = flags["runId"] as string | undefined;
      checkSettings(settings, http, run_id);
      // Without a command, the upstreams undo the calls of other tools.
      const service = await openService(settings, context.io.clock, {
        equip: (app, tools) => (tools === null ? null : httpJobTools(app, tools)),
      });
      await (http ? serveHttp(service, context) : serveStdio(service, run_id));
    });
};

function checkSettings(settings: LoadedSettings, http: boolean, run_id: string | undefined): void {
  if (settings.upstreams.length === 0) {
    throw invalidError(
      "no tool servers are configured: set upstreams in the config file; svc init --from drafts one",
    );
  }
  if (http && run_id !== undefined) {
    throw invalidError("--run-id belongs to a stdio session; over HTTP send the header Svc-Run-Id");
  }
  const keys = keyFileOf(settings);
  if (http && keys === null && settings.oidc.issuer === null) {
    throw invalidError(
      "a gateway that listens needs auth.keys or an OIDC issuer: otherwise nobody could connect",
    );
  }
}

async function serveHttp(service: RunningService, { io }: CommandContext): Promise<void> {
  const running = await startHttpGateway(service);
  const { ok, of } = count(running.gateway.upstreams);
  io.err(
    `svc ${service.version} gateway listening on ${running.url}/mcp (${ok} of ${of} upstreams, store ${storeKind(service)})`,
  );
  await untilSignalled(service);
  await running.stop();
}

async function serveStdio(service: RunningService, run_id: string | undefined): Promise<void> {
  const session = await startStdioGateway(service, { run_id, input: process.stdin, output: process.stdout });
  await Promise.race([session.ended, untilSignalled(service)]);
  await session.stop();
  // An idle stdin would keep the process alive without a client.
  process.stdin.destroy();
}

function count(upstreams: readonly { ok: boolean }[]) {
  return { ok: upstreams.filter(({ ok }) => ok).length, of: upstreams.length };
}

/** `svc proxy`: a governed HTTP proxy for agents. */
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { keyFileOf, type LoadedSettings } from "../../../config/settings.ts";
import { invalidError } from "../../../kernel/errors.ts";
import { storeKind } from "../../../operations/status.ts";
import { splitHost } from "../../../rules/http/routes.ts";
import { openHttpService } from "../../../service/start/http-undo.ts";
import { createProxy, listenOn } from "../../../service/start/proxy.ts";
import {
  type CommandContext,
  type CommandFlags,
  globalOptions,
  type RegisterCommand,
} from "../../context.ts";
import { untilSignalled } from "../../signals.ts";

const collect = (value: string, before: string[] = []): string[] => [...before, value];

export const registerProxy: RegisterCommand = (program, context) => {
  globalOptions(program.command("proxy").description("Govern the HTTP requests of agents"))
    .option("--listen <host:port>", "address to listen on (default: 127.0.0.1 and a free port)")
    .option("--allow-host <host>", "let connections to this host pass without approval; repeatable", collect)
    .option("--ca-out <file>", "write the certificate that clients have to trust")
    .option("--policy <file>", "policy file")
    .option("--keys <file>", "API key file")
    .action((flags: CommandFlags) => runProxy(context, flags));
};

async function runProxy(context: CommandContext, flags: CommandFlags): Promise<void> {
  const { io } = context;
  const settings = withAllowedHosts(context.settings(flags, ["policy", "keys"]), flags);
  if (keyFileOf(settings) === null && settings.oidc.issuer === null)
    throw invalidError("the proxy needs auth.keys or an OIDC issuer: otherwise nobody could connect");
  const { name, port = 0 } = splitHost((flags["listen"] as string | undefined) ?? "127.0.0.1");
  if (name === "" || port > 65_535) throw invalidError("--listen: write host:port, such as 127.0.0.1:3128");
  const service = await openHttpService(settings, io.clock);
  try {
    const running = await createProxy(service);
    const url = await listenOn(running, name, port);
    const file = flags["caOut"] as string | undefined;
    if (file !== undefined) writeFileSync(resolve(io.cwd, file), running.ca_pem);
    io.err(`svc ${service.version} proxy listening on ${url} (store ${storeKind(service)})`);
    await untilSignalled(service);
    await running.stop();
  } finally {
    await service.close();
  }
}

const HOST = /^(?:[A-Za-z0-9_.-]+|[0-9A-Fa-f:]+)$/;

/** The hosts of `--allow-host` count like those of the configuration. */
export function withAllowedHosts(settings: LoadedSettings, flags: CommandFlags): LoadedSettings {
  const named = (flags["allowHost"] as string[] | undefined) ?? [];
  for (const host of named)
    if (!HOST.test(host))
      throw invalidError("--allow-host: write one host or address, without scheme, port, path or glob");
  return { ...settings, allow_hosts: [...settings.allow_hosts, ...named.map((host) => host.toLowerCase())] };
}

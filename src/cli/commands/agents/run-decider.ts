/** Who decides the calls of a confined run: this process with local data, or a server. */
import { dirname, resolve } from "node:path";
import type { WantedLimits } from "../../../child-process/confine/limits.ts";
import { loadSettings } from "../../../config/load.ts";
import type { CredentialSpec } from "../../../config/sections/proxy.ts";
import { keyFileOf, type LoadedSettings, withQuietLog } from "../../../config/settings.ts";
import { hooksFolder } from "../../../hook/settings.ts";
import { invalidError } from "../../../kernel/errors.ts";
import { openHttpService } from "../../../service/start/http-undo.ts";
import { createRunProxy, type RunDoor, type RunningProxy } from "../../../service/start/proxy.ts";
import { createRemoteRunProxy } from "../../../service/start/remote-proxy.ts";
import type { CommandContext, CommandFlags } from "../../context.ts";
import { withAllowedHosts } from "../server/proxy.ts";

/** RunDecider of the calls of a run: this process with local data, or a server. */
export interface RunDecider {
  readonly running: RunningProxy & { run_id: string };
  readonly credentials: readonly CredentialSpec[];
  readonly limits: WantedLimits;
  /** Files that check the server, with the names of their settings. */
  readonly trusted: Readonly<Record<string, string>>;
  /** What the command does not see: the folder for files of the run that outlast it, and everything of the service. */
  readonly own: { readonly folder: string; readonly paths: readonly string[] };
  close(): Promise<void>;
}

export function openDecider(
  context: CommandContext,
  flags: CommandFlags,
  folder: string,
  door: RunDoor,
): Promise<RunDecider> {
  return context.isRemote(flags)
    ? decideOnServer(context, flags, folder, door)
    : decideHere(context, flags, door);
}

async function decideHere(context: CommandContext, flags: CommandFlags, door: RunDoor): Promise<RunDecider> {
  const settings = withAllowedHosts(context.settings(flags, ["policy"]), flags);
  const service = await openHttpService(withQuietLog(settings), context.io.clock);
  const close = () => service.close();
  const running = await createRunProxy(service, door).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return {
    running,
    credentials: settings.credentials,
    limits: settings.run,
    trusted: settings.approvers === null ? {} : { approvers: settings.approvers },
    own: { folder: settings.data, paths: ownPaths(settings) },
    close: () => running.stop().finally(close),
  };
}

async function decideOnServer(
  context: CommandContext,
  flags: CommandFlags,
  folder: string,
  door: RunDoor,
): Promise<RunDecider> {
  const { io } = context;
  if (flags["policy"] !== undefined) throw invalidError("--policy: the server decides by its own policy");
  const server = context.server(flags)!;
  // A configuration file in the workspace is the agent's to write.
  const { SVC_CONFIG: _, ...rest } = io.env;
  const trusted = trustedFiles(io);
  const env = { ...rest, ...trusted };
  const settings = withAllowedHosts(loadSettings({ env, cwd: folder }), flags);
  const own_folder = dirname(hooksFolder(io.env));
  const running = await createRemoteRunProxy({ server, settings, env: io.clock, own_folder }, door);
  if (!running.is_sandboxed)
    io.err("svc run: the key has no may_sandbox, so rules with sandboxed: allow ask as outside");
  const keyFile = flags["keyFile"] as string | undefined;
  return {
    running,
    credentials: [],
    limits: settings.run,
    trusted,
    own: {
      folder: own_folder,
      paths: [own_folder, ...(keyFile === undefined ? [] : [resolve(io.cwd, keyFile)])],
    },
    close: running.stop,
  };
}

/** Variables with the files that check a server, as full paths. */
function trustedFiles({ env, cwd }: CommandContext["io"]): Record<string, string> {
  if ((env["SVC_APPROVERS"] ?? "") === "") return {};
  const named = ["SVC_APPROVERS", "SVC_MANIFESTS"].flatMap((name) => {
    const value = env[name];
    return value === undefined || value === "" || /^https?:/.test(value) ? [] : [[name, resolve(cwd, value)]];
  });
  return Object.fromEntries(named);
}

/** Files and directories of the service, which the command does not see even inside its workspace. */
function ownPaths(settings: LoadedSettings): string[] {
  const { data, signing_key, token_key, kill_file, meta } = settings;
  const files = [keyFileOf(settings), signing_key, token_key, kill_file, meta.file, data];
  const secrets = settings.credentials.flatMap(({ from }) => ("file" in from ? [from.file] : []));
  return [...files, ...secrets].flatMap((path) => (path === null ? [] : [resolve(path)]));
}

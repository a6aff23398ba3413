/** The proxy of one confined command whose calls a server decides. */
import { join } from "node:path";
import { ApproversGuard } from "../../auth/approvers-guard.ts";
import { loadManifests } from "../../config/manifest-source.ts";
import type { LoadedSettings } from "../../config/settings.ts";
import { createOperationsClient, type OperationsClient } from "../../http/api/operations-client.ts";
import type { RuntimeEnv } from "../../kernel/env.ts";
import { invalidError, SvcError } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { listHttpTools } from "../../operations/registry/http-tools.ts";
import { openRun } from "../../operations/runs/runs.ts";
import type { ProxyCaller } from "../../proxy/governed.ts";
import { ProxyRefusal } from "../../proxy/wire.ts";
import type { HttpTool, HttpToolSet } from "../../rules/http/routes.ts";
import { createLogger } from "../../telemetry/log.ts";
import { onlyClient, type RunDoor, type RunningProxy, startProxy } from "./proxy.ts";

/** A request that waits for approval is held by the server for a while. */
const ANSWER_MS = SERVICE_LIMITS.approval_wait_s * 1_000 + 30_000;
/** Time after which the tools are asked for again. */
const TOOLS_AGE_MS = 10_000;

/** A name that only a glob for every tool matches. */
const ANY_TOOL = " ".repeat(99);

export interface RemoteProxyOptions {
  readonly server: { readonly url: string; readonly key: string };
  readonly settings: LoadedSettings;
  readonly env: RuntimeEnv;
  /** Directory on this machine that the command cannot see. */
  readonly own_folder: string;
}

export interface RemoteRunProxy extends RunningProxy {
  readonly run_id: string;
  /** Whether the server takes the launcher's evidence that hook events come from inside. */
  readonly is_sandboxed: boolean;
}

/** Opens the command's run on the server. */
export async function createRemoteRunProxy(
  { server, settings, env, own_folder }: RemoteProxyOptions,
  { sandbox, password }: RunDoor,
): Promise<RemoteRunProxy> {
  const client = createOperationsClient({ ...server, stream: true, timeout_ms: ANSWER_MS });
  try {
    const tools = await RemoteTools.load(client);
    const { permissions, wait_ms } = tools;
    const open = (more: { sandbox?: string }) => client.perform(openRun, { permissions, ...more });
    let is_sandboxed = true;
    const { run_id } = await open({ sandbox }).catch((error: unknown) => {
      if (!(error instanceof SvcError) || error.code !== "forbidden") throw error;
      is_sandboxed = false;
      return open({});
    });
    const log = createLogger({ level: "warn" });
    const warn = (message: string, fields?: Record<string, unknown>) => log.warn(message, fields);
    const used = join(own_folder, "used-approvals");
    const file = settings.approvers;
    const caller = remoteCaller(client, run_id);
    const guard = file === null ? null : await ApproversGuard.open({ file, used, env, warn });
    const requires_all = guard !== null && (await guard.requires(ANY_TOOL));
    const own = guard === null || requires_all ? null : await ownTools(settings);
    const running = startProxy({
      settings,
      log,
      now: () => env.now(),
      identify: onlyClient(caller, password),
      manifests: () => own ?? tools.current(),
      wait_ms,
      // Only the process that decides can put what it read on a card.
      showsBefore: () => false,
      guard,
    });
    const stop = async () => {
      await running.stop();
      await client.close();
    };
    return { ...running, run_id, is_sandboxed, stop };
  } catch (error) {
    await client.close();
    throw error;
  }
}

/**
 * The HTTP tools of this machine. A server that is not trusted with approvals could hide a tool, or name its requests
 * differently, and the approvers file would not apply to them.
 */
async function ownTools({ manifests: path }: LoadedSettings): Promise<HttpToolSet> {
  if (path === null)
    throw invalidError(
      "an approvers file with --server needs SVC_MANIFESTS: without manifests on this machine the server decides what a request is",
    );
  return loadManifests({ path });
}

/** The server's HTTP tools. A server that is away leaves them as they were: each call still asks it. */
class RemoteTools {
  readonly permissions: string[];
  readonly wait_ms: number;
  private readonly client: OperationsClient;
  private set: HttpToolSet;
  private read_ms = performance.now();

  private constructor(client: OperationsClient, { tools, permissions, wait_ms }: ListedTools) {
    this.client = client;
    this.permissions = permissions;
    this.wait_ms = wait_ms;
    this.set = toolSet(tools);
  }

  static async load(client: OperationsClient): Promise<RemoteTools> {
    return new RemoteTools(client, await client.perform(listHttpTools, {}));
  }

  current(): HttpToolSet {
    if (performance.now() - this.read_ms > TOOLS_AGE_MS) {
      this.read_ms = performance.now();
      this.client.perform(listHttpTools, {}).then(
        ({ tools }) => {
          this.set = toolSet(tools);
        },
        () => {},
      );
    }
    return this.set;
  }
}

type ListedTools = Awaited<ReturnType<typeof listHttpTools.run>>;

function toolSet(tools: readonly HttpTool[]): HttpToolSet {
  const byName = new Map(tools.map((one) => [one.tool, one]));
  return { all: tools, active: (tool) => byName.get(tool) };
}

function remoteCaller(client: OperationsClient, run_id: string): ProxyCaller {
  return {
    run_id,
    open: async () => {},
    isCurrent: () => true,
    perform: (op, input, { signal } = {}) =>
      client.perform(op, input, signal).catch((error: unknown) => {
        if (!(error instanceof SvcError)) throw error;
        // Without an answer of the server nothing is sent.
        if (error.code === "delivery_failed")
          throw new SvcError("unavailable", `the server cannot be reached: ${error.message}`, {
            cause: error,
          });
        if (error.code === "unauthenticated")
          throw new ProxyRefusal("forbidden", `the server refuses the key: ${error.message}`);
        throw error;
      }),
  };
}

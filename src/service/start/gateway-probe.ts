/**
 * Probe of the gateway: a second gateway on the same service, with the canary as its only upstream and one MCP client.
 * The canary is a real child process behind the real pipeline. It leaves a file for each call, which the probe checks.
 */
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, InMemoryTransport } from "@modelcontextprotocol/client";
import type { CommandUpstream } from "../../config/sections/gateway.ts";
import { errorText } from "../../gateway/call/result.ts";
import { McpGateway } from "../../gateway/gateway.ts";
import { AgentPeer } from "../../gateway/session/agent-server.ts";
import { PROBE_ACTOR } from "../../govern/roles.ts";
import { isJsonObject, type JsonObject } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { BlockedError } from "../../library/errors.ts";
import {
  CANARY_TOOLS,
  PROBE_PRINCIPAL,
  type ProbeSession,
  type ProbeSurface,
  rollBackProbe,
} from "../../library/probe.ts";
import type { ServiceApp } from "../../operations/app.ts";
import { BackgroundTasks } from "../../operations/background/background.ts";

/** Returns the probe's gateway surface. Empty without upstreams, because then there is no gateway. */
export function gatewayProbe(app: ServiceApp): ProbeSurface[] {
  return app.settings.upstreams.length === 0 ? [] : [{ name: "gateway", open: () => openDoor(app) }];
}

/** Canary server. Speaks a minimal MCP and keeps a file for each call that ran and was not undone. */
const CANARY_SERVER = `
const { rmSync, writeFileSync } = require("node:fs");
const { join } = require("node:path");
const [folder, undo, ...names] = process.argv.slice(1);
const inputSchema = { type: "object", properties: { id: { type: "string" } }, required: ["id"] };
const tools = [undo, ...names].map((name) => ({ name, description: "canary of svc probe", inputSchema }));
const called = (name, { id }) => {
  if (!/^[\\w-]+$/.test(id)) throw new Error("no such call");
  if (name === undo) rmSync(join(folder, id), { force: true });
  else writeFileSync(join(folder, id), name);
  return { content: [{ type: "text", text: JSON.stringify({ id }) }], structuredContent: { id } };
};
const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "svc-probe", version: "1" } }),
  ping: () => ({}),
  "tools/list": () => ({ tools }),
  "tools/call": ({ name, arguments: args }) => called(name, args),
};
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const say = (rest) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...rest }) + "\\n");
  if (!Object.hasOwn(answers, method)) return say({ error: { code: -32601, message: "unknown method" } });
  try {
    say({ result: answers[method](params ?? {}) });
  } catch (error) {
    say({ error: { code: -32602, message: error.message } });
  }
}).on("close", () => process.exit(0));
`;

function canaryUpstream(folder: string): CommandUpstream {
  const { undo, ...tools } = CANARY_TOOLS;
  return {
    name: PROBE_ACTOR,
    command: process.execPath,
    args: ["-e", CANARY_SERVER, folder, undo, ...Object.values(tools)],
    env: {},
    cwd: null,
    namespace: false,
    timeout_ms: SERVICE_LIMITS.upstream_timeout_ms,
    passthrough: [],
    isolation: "shared",
    max_connections: 1,
    idle_ms: SERVICE_LIMITS.upstream_idle_ms,
  };
}

async function openDoor(app: ServiceApp): Promise<ProbeSession> {
  const folder = await mkdtemp(join(tmpdir(), "svc-probe-"));
  const background = new BackgroundTasks(app.log);
  const settings = { ...app.settings, upstreams: [canaryUpstream(folder)], permissions: null };
  // Same app with other upstreams, and with background work that ends with the probe.
  const own: ServiceApp = Object.create(app, {
    settings: { value: settings },
    background: { value: background },
  });
  const gateway = new McpGateway(own);
  const client = new Client({ name: PROBE_ACTOR, version: app.version });
  const close = async () => {
    await client.close();
    await gateway.close();
    await background.stop(SERVICE_LIMITS.stop_ms);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await gateway.start();
    const run = gateway.runs.fresh(PROBE_PRINCIPAL);
    const peer = new AgentPeer(gateway, {
      local: PROBE_PRINCIPAL,
      run: () => run,
      named: true,
      era: "legacy",
    });
    const [ours, theirs] = InMemoryTransport.createLinkedPair();
    await peer.server.connect(theirs);
    await client.connect(ours);
    return {
      run_id: run.run_id,
      async call(tool, id) {
        return blockedBy((await client.callTool({ name: tool, arguments: { id } })) as JsonObject);
      },
      ran: async (id) => existsSync(join(folder, id)),
      async withdraw(approval_id) {
        await client.callTool({ name: "svc.withdraw", arguments: { approval_id } });
      },
      async rollback() {
        await rollBackProbe(app, run.run_id, gateway.services.undo);
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Error text has one reason per line. */
function blockedBy(result: JsonObject): BlockedError | null {
  const meta = result["_meta"];
  if (isJsonObject(meta) && meta["svc/decision"] === "block")
    return new BlockedError(errorText(result).split("\n"));
  if (result["isError"] === true) throw new Error(errorText(result));
  return null;
}

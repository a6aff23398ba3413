/** A real coding agent, connected as a user connects it: a service, a hook, a workspace with a git repository. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { createServer } from "node:tls";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { startSvcServer, svc } from "../../support/cli.ts";
import { program } from "../../support/programs.ts";
import { selfSigned } from "../../support/proxy.ts";
import { tempDir } from "../../support/tmp.ts";
import { type ClientPackageName, installClient, type RealClient } from "./install.ts";
import {
  type ModelRequest,
  type ModelScript,
  type ScriptedTurnOrder,
  startModelServer,
} from "./model-server.ts";
import { type ClientPlace, type ClientRun, HEADLESS, runClient } from "./run-client.ts";

export interface SessionResult extends ClientRun {
  requests: ModelRequest[];
  /** What the client answered to the calls of the main conversation, first to last. */
  results: string[];
}

export interface RecordedStep {
  step: number;
  tool: string;
  status: string;
}

export interface GovernedClient {
  client: RealClient;
  home: string;
  workspace: string;
  /** `svc.config.yaml` of the service that the hook asks. */
  config: string;
  /** Runs a session whose model follows the script. The first word begins the main conversation. */
  session(turns: readonly ScriptedTurnOrder[] | ModelScript, more?: SessionOptions): Promise<SessionResult>;
  /** Runs of the service, newest first. */
  runs(): Promise<{ run_id: string; actor: string; parent?: string }[]>;
  /** Steps of the newest run, or of the run with this id. */
  steps(run?: string): Promise<RecordedStep[]>;
  /** Approves every request as soon as it waits, until the returned function is called. */
  approveAll(): () => Promise<string[]>;
  /** Whether the pack declares an undo for commands. */
  undoesCommands: boolean;
  /** Runs `svc` as the person does. */
  svc(...args: string[]): ReturnType<typeof svc>;
  /** Files of the workspace with their contents, without `.git`. */
  files(): Record<string, string>;
  git(...args: string[]): string;
  stopService(): Promise<void>;
  startService(): Promise<void>;
}

export interface SessionOptions {
  args?: readonly string[];
  env?: Readonly<Record<string, string>>;
  /** Inside `svc run`, with the model's address allowed. */
  confined?: true;
  /** The prompt, if it is not only the word that begins the conversation. */
  prompt?: string;
}

/** Begins the main conversation of a session. */
export const MAIN = "begin the main task";

const isScript = (turns: readonly ScriptedTurnOrder[] | ModelScript): turns is ModelScript =>
  !Array.isArray(turns);

export async function governedClient(
  client: RealClient,
  { files = {}, package: name = client as ClientPackageName, connect = [] as readonly string[] } = {},
): Promise<GovernedClient> {
  const command = await installClient(name);
  const git = await program("git");
  const home = realpathSync(tempDir(`client-${client}`));
  const workspace = join(home, "shop");
  mkdirSync(workspace);
  const run = (...args: string[]) =>
    execFileSync(git, ["-c", "user.name=ann", "-c", "user.email=ann@shop.test", ...args], {
      cwd: workspace,
      encoding: "utf8",
      env: { PATH: process.env["PATH"], HOME: home, GIT_CONFIG_NOSYSTEM: "1" },
      stdio: ["ignore", "pipe", "pipe"],
    });
  run("init", "-q", "-b", "main");
  for (const [path, text] of Object.entries({ "README.md": "shop\n", ...files })) {
    mkdirSync(join(workspace, path, ".."), { recursive: true });
    writeFileSync(join(workspace, path), text);
  }
  run("add", "-A");
  run("commit", "-q", "-m", "first");
  HEADLESS[client].prepare(home);
  const options = { cwd: workspace, env: { HOME: home } };
  const connected = await svc(["connect", client, "--hooks", ...connect], options);
  if (connected.code !== 0) throw new Error(`svc connect ended with ${connected.code}: ${connected.err}`);
  const folder = join(home, ".config/svc/hooks");
  const config = join(folder, "svc.config.yaml");
  let server = await startSvcServer(["--config", config], options);
  let isRunning = true;
  onTestFinished(async () => {
    if (isRunning) await server.stop();
  });
  pointAt(join(folder, `${client}.json`), server.url);
  const cli = (...args: string[]) => svc([...args, "--config", config], options);
  const listRuns: GovernedClient["runs"] = async () =>
    (await cli("runs", "--json")).out
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  return {
    client,
    home,
    workspace,
    config,
    async session(turns, more = {}) {
      const script = isScript(turns) ? turns : { [MAIN]: turns };
      const scripted = await startModelServer(script);
      try {
        // Codex trusts no certificate that signs itself.
        const front = more.confined ? await (client === "codex" ? plainFront : tlsFront)(scripted.url) : null;
        const place = { home, workspace, model: front?.url ?? scripted.url };
        const prompt = more.prompt ?? Object.keys(script)[0]!;
        const words =
          front === null ? command : confinedWords(client, command, { place, config, env: more.env });
        const env = { ...more.env, ...(front === null ? {} : { NODE_EXTRA_CA_CERTS: front.file }) };
        const ended = await runClient(client, words, place, prompt, { ...more, env });
        front?.close();
        const main = scripted.requests.reduce<ModelRequest | null>(
          (longest, one) => (one.results.length >= (longest?.results.length ?? 0) ? one : longest),
          null,
        );
        return { ...ended, requests: scripted.requests, results: main?.results ?? [] };
      } finally {
        await scripted.close();
      }
    },
    runs: listRuns,
    steps: async (id) => {
      const run = id ?? (await listRuns())[0]?.run_id;
      return run === undefined ? [] : JSON.parse((await cli("show", run, "--json")).out).steps;
    },
    approveAll() {
      const approved: string[] = [];
      let over = false;
      const work = (async () => {
        while (!over) {
          const { approvals = [] } = JSON.parse((await cli("approvals", "list", "--json")).out || "{}");
          for (const { id, status } of approvals as { id: string; status: string }[]) {
            if (status !== "pending") continue;
            if ((await cli("approvals", "approve", id, "--yes")).code === 0) approved.push(id);
          }
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
      })();
      return async () => {
        over = true;
        await work;
        return approved;
      };
    },
    undoesCommands: /code\.shell_destructive\n\s+effect: compensable/.test(
      readFileSync(new URL("../../../packs/coding-agents/manifests.yaml", import.meta.url), "utf8"),
    ),
    svc: cli,
    files: () => filesBelow(workspace),
    git: run,
    stopService: async () => {
      isRunning = false;
      await server.stop();
    },
    startService: async () => {
      server = await startSvcServer(["--config", config], options);
      isRunning = true;
      pointAt(join(folder, `${client}.json`), server.url);
    },
  };
}

const plainFront = async (model: string): Promise<TlsFront> => ({
  url: model.replace("127.0.0.1", "localhost"),
  file: "",
  close: () => {},
});

interface TlsFront {
  url: string;
  /** The certificate to trust. */
  file: string;
  close(): void;
}

/** The model behind TLS, as providers are: the proxy passes it through unread. */
async function tlsFront(model: string): Promise<TlsFront> {
  const certificate = selfSigned(["localhost"]);
  const server = createServer(certificate, (socket) => {
    const to = connect(Number(new URL(model).port), "127.0.0.1");
    socket.on("error", () => to.destroy());
    to.on("error", () => socket.destroy());
    socket.pipe(to).pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `https://localhost:${port}`, file: certificate.file, close: () => server.close() };
}

/** The client's variables are words of the command, because the confined side starts without any. */
function confinedWords(
  client: RealClient,
  command: readonly string[],
  { place, config, env }: { place: ClientPlace; config: string; env?: SessionOptions["env"] },
): string[] {
  const variables = { ...HEADLESS[client].env(place), TERM: "dumb", ...env };
  return [
    ...[process.execPath, SVC, "run", "--config", config, "--allow-host", "localhost", "--", "env"],
    ...Object.entries(variables).map(([name, value]) => `${name}=${value}`),
    ...command,
  ];
}

const SVC = fileURLToPath(new URL("../../../bin/svc.js", import.meta.url));

/** The server takes a free port, so the hook must know it. */
function pointAt(settings: string, server: string): void {
  writeFileSync(settings, JSON.stringify({ ...JSON.parse(readFileSync(settings, "utf8")), server }));
}

function filesBelow(folder: string, prefix = ""): Record<string, string> {
  const found: Record<string, string> = {};
  for (const entry of readdirSync(join(folder, prefix), { withFileTypes: true })) {
    const path = join(prefix, entry.name);
    if (entry.name === ".git" || /^\.(?:claude|codex|gemini|svc)/.test(entry.name)) continue;
    if (entry.isDirectory()) Object.assign(found, filesBelow(folder, path));
    else found[path] = entry.isFile() ? readFileSync(join(folder, path), "utf8") : "";
  }
  return found;
}

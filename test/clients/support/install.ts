/**
 * Installs the real coding agents from the npm registry, at exact versions, into a cache directory that later runs share.
 * A client that cannot be installed is an error with npm's own reason.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

export const REAL_CLIENTS = ["gemini", "codex", "claude-code"] as const;
export type RealClient = (typeof REAL_CLIENTS)[number];

interface ClientPackage {
  name: string;
  version: string;
  /** Program within `node_modules`, for this platform. */
  program: string;
  /** Started with Node. The other clients are native programs. */
  script: boolean;
}

const platform = `${process.platform}-${process.arch}`;
const TARGETS: Readonly<Record<string, string>> = {
  "linux-x64": "x86_64-unknown-linux-musl",
  "linux-arm64": "aarch64-unknown-linux-musl",
  "darwin-x64": "x86_64-apple-darwin",
  "darwin-arm64": "aarch64-apple-darwin",
};

const claude = (version: string): ClientPackage => ({
  name: "@anthropic-ai/claude-code",
  version,
  program: `@anthropic-ai/claude-code-${platform}/claude`,
  script: false,
});

export const CLIENT_PACKAGES = {
  gemini: {
    name: "@google/gemini-cli",
    version: "0.61.0",
    program: "@google/gemini-cli/bundle/gemini.js",
    script: true,
  },
  codex: {
    name: "@openai/codex",
    version: "0.169.0",
    program: `@openai/codex-${platform}/vendor/${TARGETS[platform]}/bin/codex`,
    script: false,
  },
  "claude-code": claude("2.1.327"),
  /** The newest one for Node 20, which ignores `onFailure` of a hook. */
  "claude-code-node-20": claude("2.1.197"),
  "mcp-remote": { name: "mcp-remote", version: "0.15.1", program: "mcp-remote/dist/proxy.js", script: true },
  inspector: {
    name: "@modelcontextprotocol/inspector",
    version: "2.12.0",
    program: "@modelcontextprotocol/inspector/clients/launcher/build/index.js",
    script: true,
  },
  /** For clients that need a newer Node. */
  "node-24": {
    name: `node-${platform}`,
    version: "24.21.0",
    program: `node-${platform}/bin/node`,
    script: false,
  },
  mcporter: { name: "mcporter", version: "0.12.3", program: "mcporter/dist/cli.js", script: true },
} satisfies Record<string, ClientPackage>;
export type ClientPackageName = keyof typeof CLIENT_PACKAGES;

/** The directory that later runs share. */
export const clientCache = (): string =>
  process.env["SVC_CLIENT_CACHE"] ?? join(homedir(), ".cache", "svc-test-clients");

/** The command that starts the installed client. */
export async function installClient(which: ClientPackageName): Promise<string[]> {
  const { name, version, program, script } = CLIENT_PACKAGES[which];
  const folder = join(clientCache(), `${which}-${version}`);
  const path = join(folder, "node_modules", program);
  if (!existsSync(path)) await makeWhole(folder, (beside) => npmInstall(beside, `${name}@${version}`));
  if (!existsSync(path))
    throw new Error(`${name}@${version} has no program for ${platform}: ${path} is missing`);
  return script ? [process.execPath, path] : [path];
}

const NPM_ARGS = "install --ignore-scripts --engine-strict=false --prefer-offline --no-save --loglevel=error";

async function npmInstall(folder: string, wanted: string): Promise<void> {
  writeFileSync(join(folder, "package.json"), "{}");
  await install(wanted, ["npm", ...NPM_ARGS.split(" "), wanted], folder);
}

/** Runs the words, or throws with what they printed. */
export async function install(wanted: string, [tool, ...args]: string[], cwd: string): Promise<void> {
  const { code, text } = await runProgram(tool!, args, cwd);
  if (code !== 0)
    throw new Error(`${wanted} cannot be installed: ${tool} ended with ${code}: ${text.slice(-2_000)}`);
}

/** Fills a directory next to the final one, which appears complete or not at all. */
export async function makeWhole(folder: string, fill: (beside: string) => Promise<void>): Promise<void> {
  mkdirSync(dirname(folder), { recursive: true });
  const beside = mkdtempSync(join(dirname(folder), "new-"));
  try {
    await fill(beside);
    renameSync(beside, folder);
  } catch (error) {
    rmSync(beside, { recursive: true, force: true });
    // Another test process was faster.
    if (!existsSync(folder)) throw error;
  }
}

function runProgram(
  program: string,
  args: string[],
  cwd: string,
): Promise<{ code: number | null; text: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, stdio: ["ignore", "pipe", "pipe"] });
    let text = "";
    const hear = (part: Buffer) => {
      text += part.toString();
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, text }));
  });
}

/** The version that the installed package names. */
export function installedVersion(command: readonly string[]): string {
  const inside = command.at(-1)!.split("/node_modules/")[0]!;
  const names = Object.values(CLIENT_PACKAGES).map(({ name }) => name);
  const file = names.map((name) => join(inside, "node_modules", name, "package.json")).find(existsSync);
  return file === undefined ? "unknown" : JSON.parse(readFileSync(file, "utf8")).version;
}

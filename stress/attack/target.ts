/** A real server or gateway process to attack: its own folder, its own data, one key for each role. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { newKeyPair } from "../../src/evidence/signing.ts";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { DEMO_MANIFESTS, DEMO_POLICY } from "./samples.ts";
import type { Stall } from "./stall-watch.ts";
import { type Reply, Wire } from "./wire.ts";

const beside = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
// The program as it was compiled with this file; run by vitest it is TypeScript, which a child cannot load.
const IS_COMPILED = import.meta.url.endsWith(".js");
/** The time in a journal's line about captured data of a call. */
const CAPTURED_AT = /^\["captures","[^"]*","[^"]*",(\d+)/;
const ROLES = ["agent", "auditor", "approver", "operator", "admin"];

export type Kind = "server" | "gateway";

/** Additional lines of the configuration. */
export interface Setup {
  upstreams?: readonly object[];
  /** In addition to the samples. */
  manifests?: string;
  /** Instead of the samples' own. */
  policy?: string;
  /** How long an answer may take; the usual time where it is not given. */
  patience_ms?: number;
}

export class Target {
  readonly url: string;
  readonly folder: string;
  private readonly kind: Kind;
  private readonly child: ChildProcess;
  private readonly said: Said;
  private readonly lanes: Wire[] = [];

  private readonly patience_ms: number | undefined;

  private constructor(
    folder: string,
    kind: Kind,
    child: ChildProcess,
    said: Said,
    url: string,
    patience_ms?: number,
  ) {
    this.folder = folder;
    this.kind = kind;
    this.child = child;
    this.said = said;
    this.url = url;
    this.patience_ms = patience_ms;
  }

  static async start(kind: Kind, setup: Setup = {}): Promise<Target> {
    if (!IS_COMPILED)
      throw new Error("targets are started by the compiled proof: node stress/run.mjs attack");
    const folder = mkdtempSync(join(tmpdir(), "svc-attack-"));
    writeSetup(folder, kind, setup);
    return Target.launch(folder, kind, setup.patience_ms);
  }

  private static async launch(folder: string, kind: Kind, patience_ms?: number): Promise<Target> {
    const child = spawn(
      process.execPath,
      ["--import", beside("./stall-watch.js"), beside("../../src/cli/bin.js"), kind, "--port", "0"],
      {
        cwd: folder,
        env: { PATH: process.env["PATH"], HOME: folder, SVC_LOG: "json" },
        stdio: ["ignore", "pipe", "pipe", "ipc"],
      },
    );
    const said = new Said();
    const url = await listening(child, said);
    return new Target(folder, kind, child, said, url, patience_ms);
  }

  /** Ends the process and starts another on the same data. */
  async again(): Promise<Target> {
    await this.end();
    return Target.launch(this.folder, this.kind, this.patience_ms);
  }

  /** One request on a separate connection. */
  async send(bytes: Buffer | string): Promise<Reply> {
    const wire = new Wire(this.url, this.patience_ms);
    try {
      return await wire.send(bytes);
    } finally {
      wire.close();
    }
  }

  /** The connection of that number, kept open. */
  lane(n: number): Wire {
    this.lanes[n] ??= new Wire(this.url);
    return this.lanes[n];
  }

  get isAlive(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Everything it has printed. */
  get printed(): string {
    return this.said.text;
  }

  get ledger(): string {
    return readFileSync(join(this.folder, "data", "ledger.jsonl"), "utf8");
  }

  /**
   * Everything that any change would change: the ledger, and the documents in the journals. Refused credentials are
   * counted, on purpose, and that count is left out; so is the captured data of calls made before `since_ms`, which
   * is written after their answer.
   */
  state(since_ms = 0): string {
    const data = join(this.folder, "data");
    const journals = readdirSync(data).filter((name) => /^journal-\d+\.jsonl$/.test(name));
    const counts = journals.map((name) => {
      const lines = readFileSync(join(data, name), "utf8").split("\n");
      const own = lines.filter(
        (line) =>
          line.startsWith('["') &&
          !line.startsWith('["counters","auth_failures"') &&
          !(Number(CAPTURED_AT.exec(line)?.[1]) < since_ms),
      );
      return `${name}:${own.length}`;
    });
    return [`ledger:${statSync(join(data, "ledger.jsonl")).size}`, ...counts].join(" ");
  }

  /** The longest pause of its event loop since the last question. */
  async stall(): Promise<Stall> {
    const answer = once(this.child, "message") as Promise<[Stall]>;
    this.child.send("stall?");
    return (await answer)[0];
  }

  async stop(): Promise<number | null> {
    const code = await this.end();
    rmSync(this.folder, { recursive: true, force: true });
    return code;
  }

  private async end(): Promise<number | null> {
    for (const lane of this.lanes) lane?.close();
    const ended = once(this.child, "exit") as Promise<[number | null]>;
    if (this.isAlive) {
      this.child.kill("SIGTERM");
      await ended;
    }
    return this.child.exitCode;
  }
}

function listening(child: ChildProcess, said: Said): Promise<string> {
  return new Promise((resolve, reject) => {
    let known = false;
    const hear = (text: string) => {
      said.add(text);
      if (known) return;
      const url = /listening on (http:\/\/[^\s/]+)/.exec(said.text)?.[1];
      if (url === undefined) return;
      known = true;
      resolve(url);
    };
    child.stdout!.setEncoding("utf8").on("data", hear);
    child.stderr!.setEncoding("utf8").on("data", hear);
    child.once("exit", (code) => reject(new Error(`it ended with code ${code}: ${said.text}`)));
  });
}

/** A process's output, up to a length that suffices to look for leaks. */
class Said {
  private readonly parts: string[] = [];
  private chars = 0;

  add(text: string): void {
    if (this.chars > 50_000_000) return;
    this.chars += text.length;
    this.parts.push(text);
  }

  get text(): string {
    return this.parts.join("");
  }
}

export function fakeUpstream(name: string, env: Record<string, string>): object {
  const script = join(process.cwd(), "test", "gateway", "support", "fake-upstream.mjs");
  return { name, command: process.execPath, args: [script], env: { FAKE_NAME: name, ...env }, timeout: "5s" };
}

function writeSetup(
  folder: string,
  kind: Kind,
  { upstreams, manifests = "", policy = DEMO_POLICY }: Setup,
): void {
  const more = [
    { name: "agent2", role: "agent" },
    { name: "both", role: ["agent", "admin"] },
  ];
  const keys = [...ROLES.map((role) => ({ name: role, role })), ...more].map((entry) => ({
    ...entry,
    key_sha256: sha256Hex(entry.name),
    max_permissions: ["*"],
    allow_observe: true,
  }));
  mkdirSync(join(folder, "archive"));
  writeFileSync(join(folder, "keys.json"), JSON.stringify(keys), { mode: 0o600 });
  writeFileSync(join(folder, "sign.key"), newKeyPair().private_pem, { mode: 0o600 });
  writeFileSync(join(folder, "manifests.yaml"), DEMO_MANIFESTS + manifests);
  writeFileSync(join(folder, "policy.yaml"), policy);
  const behind = { auth: { keys: "keys.json" }, upstreams: upstreams ?? [fakeUpstream("fake", {})] };
  const config = {
    manifests: "manifests.yaml",
    policy: "policy.yaml",
    data: "data",
    archive_root: "archive",
    registry: { manifests: "registry/manifests", policies: "registry/policies" },
    capture: { enabled: true },
    signing_key: "sign.key",
    anchor: { sinks: [{ type: "file", path: "anchors.jsonl" }] },
    console: { mode: "login" },
    listen: { host: "127.0.0.1", port: 0 },
    ...(kind === "gateway" ? behind : { keys: "keys.json" }),
  };
  writeFileSync(join(folder, "svc.config.yaml"), JSON.stringify(config));
}

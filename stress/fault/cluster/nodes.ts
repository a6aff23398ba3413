/** The cluster of deploy/ha as the fault run uses it: started with disks in memory, broken, and looked at. */
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { sha256Hex } from "../../../src/kernel/hash.ts";
import { until } from "../../../test/support/until.ts";

// The run is compiled into node_modules/.cache/<folder>/stress/fault/cluster.
export const ROOT = fileURLToPath(new URL("../../../../../../", import.meta.url));
const SCRIPT = join(ROOT, "deploy", "ha", "cluster.sh");
export const CLUSTER_SOURCES = join(ROOT, "stress", "fault", "cluster");
const NET = "10.231.78";

export const DATABASES = ["db1", "db2", "db3"] as const;
export const SERVERS = ["app1", "app2"] as const;
export type Database = (typeof DATABASES)[number];
export type ServerNode = (typeof SERVERS)[number];
export type ClusterNode = Database | ServerNode;

/** Who asks; each key's value is its name behind `cluster-`. */
const KEYS = { bot: "agent", ann: "approver", ben: "approver", root: "admin" } as const;
export type Caller = keyof typeof KEYS;
export const keyOf = (caller: Caller): string => `cluster-${caller}`;

export const addressOf = (node: ClusterNode): string =>
  `${NET}.${node.startsWith("db") ? "1" : "2"}${node.at(-1)}`;

/** A node's role as Patroni reports it. */
interface Member {
  name: Database;
  role: string;
  state: string;
}

export interface ClusterOptions {
  disk: string;
  /** Without it, a failover must lose answers: that is how a run shows that it would notice. */
  synchronous: boolean;
  /** The command that starts a server. */
  svc?: string;
}

export class Cluster {
  private readonly folder = mkdtempSync(join(tmpdir(), "svc-cluster-"));
  private readonly env: Record<string, string>;

  constructor({ disk, synchronous, svc }: ClusterOptions) {
    const config = join(this.folder, "config");
    cpSync(join(CLUSTER_SOURCES, "config"), config, { recursive: true });
    const keys = Object.entries(KEYS).map(([name, role]) => ({
      name,
      role,
      max_permissions: ["*"],
      key_sha256: sha256Hex(keyOf(name as Caller)),
    }));
    writeFileSync(join(config, "keys.json"), JSON.stringify(keys), { mode: 0o600 });
    this.env = {
      SVC_HA_DIR: join(this.folder, "ha"),
      SVC_HA_NET: NET,
      SVC_HA_PREFIX: "svcft",
      SVC_HA_DISK: disk,
      SVC_HA_CONFIG: config,
      SVC_HA_SEGMENT: "4",
      ...(synchronous ? {} : { SVC_HA_SYNCHRONOUS: "false" }),
      ...(svc === undefined ? {} : { SVC_HA_SVC: svc }),
    };
    // Patroni's user passes through.
    this.mode(0o711);
  }

  /** Runs a command of cluster.sh; throws with what it printed. */
  run(args: readonly string[], env: Record<string, string> = {}): Promise<string> {
    return new Promise((resolve, reject) => {
      const all = { ...process.env, ...this.env, ...env };
      execFile(SCRIPT, args, { env: all, timeout: 400_000 }, (error, out, err) => {
        if (error === null) resolve(out.trim());
        else reject(new Error(`cluster.sh ${args.join(" ")}: ${`${out}${err}`.trim() || error.message}`));
      });
    });
  }

  async members(): Promise<Member[]> {
    for (const node of DATABASES) {
      const response = await fetch(`http://${addressOf(node)}:8008/cluster`, {
        signal: AbortSignal.timeout(2_000),
      }).catch(() => undefined);
      if (response?.ok) return ((await response.json()) as { members: Member[] }).members;
    }
    return [];
  }

  /** The primary, the standby that is waited for, and the other one. */
  async roles(): Promise<Database[]> {
    const rank = ({ role }: Member): number =>
      role === "leader" ? 0 : /sync_standby|quorum_standby/.test(role) ? 1 : 2;
    return (await this.members()).sort((a, b) => rank(a) - rank(b)).map(({ name }) => name);
  }

  async isWhole(): Promise<boolean> {
    const members = await this.members();
    const runs = members.filter(({ state }) => state === "running" || state === "streaming");
    const waited = members.some(({ role }) => /sync_standby|quorum_standby/.test(role));
    if (members.filter(({ role }) => role === "leader").length !== 1) return false;
    if (runs.length !== DATABASES.length || (!waited && this.env["SVC_HA_SYNCHRONOUS"] === undefined))
      return false;
    // What a member last reported can be older than its death.
    const ready = await Promise.all([
      ...DATABASES.map((node) => isOk(`http://${addressOf(node)}:8008/health`)),
      ...SERVERS.map((node) => isOk(`http://${addressOf(node)}:8787/readyz`)),
    ]);
    return ready.every(Boolean);
  }

  whole(within_ms: number): Promise<void> {
    return until(() => this.isWhole(), "the cluster to be whole", within_ms);
  }

  databaseUrl(node: Database): string {
    const secret = readFileSync(join(this.env["SVC_HA_DIR"]!, "secrets", "svc"), "utf8");
    return `postgres://svc:${secret}@${addressOf(node)}:5432/svc`;
  }

  log(node: ClusterNode, program: string): string {
    return readFileSync(join(this.env["SVC_HA_DIR"]!, `${node}-state`, `${program}.log`), "utf8");
  }

  async close(): Promise<void> {
    await this.run(["down", "--delete"]);
    rmSync(this.folder, { recursive: true, force: true });
  }

  private mode(mode: number): void {
    execFile("chmod", [mode.toString(8), this.folder]);
  }
}

async function isOk(url: string): Promise<boolean> {
  const response = await fetch(url, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined);
  await response?.body?.cancel();
  return response?.ok === true;
}

/** The cluster of deploy/ha as the fault run uses it: started with disks in memory, broken, and inspected. */
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../../../test/support/until.ts";
import { ROOT, writeConfig } from "./config.ts";

const SCRIPT = join(ROOT, "deploy", "ha", "cluster.sh");
const NET = "10.231.78";

export const DATABASES = ["db1", "db2", "db3"] as const;
export const SERVERS = ["app1", "app2"] as const;
export type Database = (typeof DATABASES)[number];
export type ServerNode = (typeof SERVERS)[number];
export type ClusterNode = Database | ServerNode;

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
  private closing: Promise<void> | undefined;

  constructor({ disk, synchronous, svc }: ClusterOptions) {
    const config = join(this.folder, "config");
    writeConfig(config);
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
      const url = `http://${addressOf(node)}:8008/cluster`;
      const answer = await fetch(url, { signal: AbortSignal.timeout(2_000) })
        .then((response) => response.json() as Promise<{ members?: Member[] }>)
        .catch(() => undefined);
      if (answer?.members !== undefined) return answer.members;
    }
    return [];
  }

  /** The primary, the standby that is waited for, and the other one. */
  async roles(): Promise<Database[]> {
    const rank = ({ role }: Member): number =>
      role === "leader" ? 0 : /sync_standby|quorum_standby/.test(role) ? 1 : 2;
    return (await this.members()).sort((a, b) => rank(a) - rank(b)).map(({ name }) => name);
  }

  /** The node that holds the leader's key and runs. */
  async primary(): Promise<Database | undefined> {
    const leader = (await this.members()).find(({ role, state }) => role === "leader" && state === "running");
    const answers = leader && (await isOk(`http://${addressOf(leader.name)}:8008/primary`));
    return answers ? leader.name : undefined;
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

  /** Copies every program's log, for a person who looks for the cause of a failure; returns the folder. */
  keepLogs(): string {
    const folder = mkdtempSync(join(tmpdir(), "svc-cluster-logs-"));
    for (const node of [...DATABASES, ...SERVERS])
      cpSync(join(this.env["SVC_HA_DIR"]!, `${node}-state`), join(folder, node), { recursive: true });
    return folder;
  }

  close(): Promise<void> {
    this.closing ??= this.run(["down", "--delete"]).then(() =>
      rmSync(this.folder, { recursive: true, force: true }),
    );
    return this.closing;
  }

  private mode(mode: number): void {
    execFile("chmod", [mode.toString(8), this.folder]);
  }
}

async function isOk(url: string): Promise<boolean> {
  return fetch(url, { signal: AbortSignal.timeout(2_000) })
    .then(
      async (response) => {
        await response.text();
        return response.ok;
      },
      () => false,
    )
    .catch(() => false);
}

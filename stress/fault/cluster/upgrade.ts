/**
 * `npm run fault -- --upgrade [--from <commit> --seconds n --porcupine <checkout>]`: two servers of an older commit on
 * one PostgreSQL are replaced by this version, one after the other, under load. Only requests that a server had when it
 * was stopped can be without an answer. Needs the repository's history.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import pg from "pg";
import { openStore } from "../../../src/store/open.ts";
import { seeded } from "../../../test/support/env.ts";
import { PgServer } from "../../../test/support/pg-server.ts";
import { freePort } from "../../../test/support/ports.ts";
import { freshDatabase } from "../../../test/support/postgres.ts";
import { until } from "../../../test/support/until.ts";
import { auditStore } from "../audit.ts";
import { pause } from "../bench.ts";
import { Client } from "./client.ts";
import { ROOT, writeConfig } from "./config.ts";
import { Load } from "./load.ts";
import { Checker, ledgerHistory, positionsOf } from "./verdict.ts";

/** The last commit before the newest change of the tables in PostgreSQL. */
const BEFORE_THE_CHANGE = "5f549131c230537a4b48f068d3230ea8add82086";
/** An older version that stops refuses what arrives on its open connections; nothing of it is recorded. */
const TURNED_AWAY = /"message":"Service Unavailable"|the server is stopping/;
const LANES = 6;
const PAUSE_MS = 50;

/** The build of an older commit, with this version's packages: the ones that it names are the same. */
function buildOf(commit: string): string {
  const folder = join(ROOT, "node_modules", ".cache", `svc-upgrade-${commit.slice(0, 12)}`);
  if (existsSync(folder)) return folder;
  const draft = `${folder}-${process.pid}`;
  mkdirSync(draft, { recursive: true });
  const archive = execFileSync(
    "git",
    ["archive", commit, "src", "bin", "scripts", "package.json", "tsconfig.json"],
    {
      cwd: ROOT,
      maxBuffer: 1 << 28,
    },
  );
  execFileSync("tar", ["x"], { cwd: draft, input: archive });
  symlinkSync(join(ROOT, "node_modules"), join(draft, "node_modules"));
  execFileSync(process.execPath, ["scripts/build.mjs"], {
    cwd: draft,
    stdio: ["ignore", "inherit", "inherit"],
  });
  renameSync(draft, folder);
  return folder;
}

class ServerProcess {
  readonly url: string;
  private readonly child: ChildProcess;

  constructor(version: string, port: number, config: string, database_url: string) {
    this.url = `http://127.0.0.1:${port}`;
    this.child = spawn(process.execPath, [join(version, "bin", "svc.js"), "server", "--port", String(port)], {
      cwd: config,
      stdio: ["ignore", "ignore", "inherit"],
      env: {
        ...process.env,
        SVC_CONFIG: join(config, "svc.config.yaml"),
        SVC_KEYS: join(config, "keys.json"),
        SVC_DATA: join(config, `data-${port}`),
        SVC_STORE: "postgres",
        SVC_DATABASE_URL: database_url,
        SVC_LOG: "off",
      },
    });
  }

  ready(): Promise<void> {
    const asks = () =>
      fetch(`${this.url}/readyz`).then(
        async (response) => {
          await response.text();
          return response.ok;
        },
        () => false,
      );
    return until(asks, `${this.url} to be ready`, 60_000);
  }

  /** SIGTERM, as a service manager sends it; returns the times of the signal and of the end. */
  async stop(): Promise<{ told: number; ended: number }> {
    const exit = once(this.child, "exit");
    const told = performance.now();
    this.child.kill("SIGTERM");
    await exit;
    return { told, ended: performance.now() };
  }

  kill(): void {
    this.child.kill("SIGKILL");
  }
}

export async function upgradeMain(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      upgrade: { type: "boolean" },
      from: { type: "string", default: BEFORE_THE_CHANGE },
      seconds: { type: "string", default: "10" },
      porcupine: { type: "string" },
    },
  });
  const old = buildOf(values.from);
  const checker = new Checker(values.porcupine);
  const config = mkdtempSync(join(tmpdir(), "svc-upgrade-"));
  writeConfig(config);
  const postgres = await PgServer.create({ fsync: true });
  const { url } = await freshDatabase(postgres);
  const servers: ServerProcess[] = [];
  try {
    const problems = await upgrade({
      old,
      config,
      url,
      servers,
      checker,
      rest_ms: Number(values.seconds) * 1_000,
    });
    console.log([...problems, problems.length === 0 ? "ok" : "FAILED"].join("\n"));
    return problems.length === 0 ? 0 : 1;
  } finally {
    for (const server of servers) server.kill();
    await postgres.dispose();
    rmSync(config, { recursive: true, force: true });
    checker.close();
  }
}

interface Upgrade {
  old: string;
  config: string;
  url: string;
  servers: ServerProcess[];
  checker: Checker;
  /** How long each mix of versions works before the next change. */
  rest_ms: number;
}

async function upgrade({ old, config, url, servers, checker, rest_ms }: Upgrade): Promise<string[]> {
  const ports = [await freePort(), await freePort()];
  for (const port of ports) {
    const server = new ServerProcess(old, port, config, url);
    servers.push(server);
    await server.ready();
  }
  const before = await formOf(url);
  const client = new Client(servers.map((server) => server.url));
  const load = new Load(client, LANES, PAUSE_MS, seeded(1));
  await pause(rest_ms);
  const stops: { told: number; ended: number }[] = [];
  for (const [i, port] of ports.entries()) {
    stops.push(await servers[i]!.stop());
    servers[i] = new ServerProcess(ROOT, port, config, url);
    await servers[i].ready();
    await pause(rest_ms);
  }
  await load.stop();
  const problems = [...client.problems];
  // A request that was sent while its server was stopping can have lost its connection.
  const wasInFlight = (sent: number): boolean =>
    stops.some(({ told, ended }) => sent >= told - 8_000 && sent <= ended);
  let turned_away = 0;
  for (const { sent, status, text } of client.unserved) {
    if (wasInFlight(sent) && status === 0) continue;
    if (wasInFlight(sent) && TURNED_AWAY.test(text)) turned_away++;
    else problems.push(`refused: ${status} ${text}`);
  }
  const after = await formOf(url);
  if (after === before) problems.push(`the tables are of version ${before} before and after`);
  problems.push(...(await findings(url, client, load, checker)));
  console.log(
    `${client.answers.length} answers while tables of version ${before} became ${after}; ` +
      `${client.unserved.length - turned_away} requests in flight lost their connection, and the older version ` +
      `refused ${turned_away} on open connections while it stopped`,
  );
  return problems;
}

async function findings(url: string, client: Client, load: Load, checker: Checker): Promise<string[]> {
  const store = await openStore({ store: "postgres", data: "", database_url: url, warn: () => {} });
  try {
    const audit = await auditStore(store, []);
    const positions = positionsOf(audit.records, client.answers);
    const lost = positions.filter((seq) => seq === undefined).length;
    const checked = checker.check([...load.operations, ...ledgerHistory(client.answers, positions)]);
    console.log(
      `lost ${lost}; checker: ${checked.operations} operations, ${checked.illegal.length} impossible`,
    );
    return [
      ...Object.entries({ ...audit.findings, lost }).flatMap(([name, count]) =>
        count === 0 ? [] : [`${name}: ${count}`],
      ),
      ...checked.illegal.map((object) => `impossible: ${object}`),
      ...checked.undecided.map((object) => `undecided: ${object}`),
    ];
  } finally {
    await store.close();
  }
}

async function formOf(url: string): Promise<number> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query("SELECT version FROM svc_schema")).rows[0].version;
  } finally {
    await client.end();
  }
}

/**
 * A separate server under load over HTTP, on each store: stopped, on a slow disk, and with everything dead that it
 * talks to except its store. Every answer must be on the ledger afterwards.
 */
import { writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { STORE_KINDS } from "../../src/store/open.ts";
import { svc } from "../support/cli.ts";
import { ROOT } from "../support/files.ts";
import { countTrials, TRIALS_FILE } from "../support/trials.ts";
import { until } from "../support/until.ts";
import { call, type Place, placeOn, start } from "./place.ts";

const CLIENTS = 8;
/** Its own limit is nine seconds; a machine that is busy with other things may need longer to see the end. */
const STOPPED_WITHIN_MS = 30_000;
/** More of them where they are counted. */
const STOPS = process.env[TRIALS_FILE] === undefined ? 1 : 5;

/** Clients that send requests as fast as they get answers, each in its own run, until they are stopped. */
class Load {
  /** `run/step` of every allow that arrived. */
  readonly allowed: string[] = [];
  /** Statuses that don't count as an answer. */
  readonly odd: number[] = [];
  private over = false;
  private readonly clients: Promise<void>[];

  constructor(url: string) {
    this.clients = Array.from({ length: CLIENTS }, (_, i) => this.ask(url, `r${i}`));
  }

  async reaches(count: number): Promise<void> {
    await until(() => this.allowed.length >= count, `${count} answers`);
  }

  async stop(): Promise<void> {
    this.over = true;
    await Promise.all(this.clients);
  }

  private async ask(url: string, run_id: string): Promise<void> {
    try {
      await call(url, "POST", "runs", { run_id, permissions: ["crm.read"] });
      while (!this.over) {
        const asked = { tool: "crm.get", args: { id: 1 }, reason: "load" };
        const { status, body } = await call(url, "POST", `runs/${run_id}/intents`, asked);
        if (status === 200 && body.decision === "allow") this.allowed.push(`${run_id}/${body.step}`);
        else if (status !== 503) this.odd.push(status);
      }
    } catch {
      // A server that has stopped listening gives no answer.
    }
  }
}

/** Everything that was answered is on a ledger that verifies, once. */
async function expectRecorded({ flags, folder, env }: Place, allowed: readonly string[]): Promise<void> {
  const file = join(folder, "export.jsonl");
  const exported = await svc(["export", ...flags], { cwd: folder, env });
  expect(exported.code, exported.err).toBe(0);
  writeFileSync(file, exported.out);
  expect(await svc(["verify", ...flags], { cwd: folder, env })).toMatchObject({ code: 0 });
  const lines = exported.out.trim().split("\n");
  const steps = lines.map((line) => JSON.parse(line) as { run_id: string; step: number; event: string });
  const intended = steps
    .filter(({ event }) => event === "intended")
    .map(({ run_id, step }) => `${run_id}/${step}`);
  expect(new Set(intended).size).toBe(intended.length);
  const there = new Set(intended);
  expect(allowed.filter((call) => !there.has(call))).toEqual([]);
}

describe.each(STORE_KINDS)("a server on %s", (store) => {
  it("that is stopped answers every accepted request, and has recorded every answer", async () => {
    const place = await placeOn(store);
    const all: string[] = [];
    for (let round = 0; round < STOPS; round++) {
      const server = await start(place);
      const load = new Load(server.url);
      await load.reaches(40);
      const told = performance.now();
      expect(await server.stop("SIGTERM"), server.output()).toBe(0);
      expect(performance.now() - told).toBeLessThan(STOPPED_WITHIN_MS);
      await load.stop();
      expect(load.odd).toEqual([]);
      all.push(...load.allowed);
      await expectRecorded(place, all);
    }
    countTrials(store, "SIGTERM under load over HTTP", STOPS);
  });

  it("whose disk takes its time is slow, and nothing else", async () => {
    const place = await placeOn(store);
    const server = await start(place, store === "postgres" ? slowDatabase(place) : SLOW_SYNC);
    try {
      const load = new Load(server.url);
      await load.reaches(3 * CLIENTS);
      await load.stop();
      expect(load.odd).toEqual([]);
      // Each client waited for one answer before it asked again, so its steps come in their order.
      for (let i = 0; i < CLIENTS; i++) {
        const steps = load.allowed.filter((call) => call.startsWith(`r${i}/`));
        expect(steps).toEqual(steps.map((_, n) => `r${i}/${n}`));
      }
      await expectRecorded(place, load.allowed);
    } finally {
      expect(await server.stop()).toBe(0);
    }
    countTrials(store, "slow disk", 1);
  });

  it("with everything else dead decides as ever, and stops in time", async () => {
    const place = await placeOn(store);
    const hole = await blackHole();
    const config = {
      otlp: { endpoint: hole },
      anchor: { sinks: [{ type: "webhook", url: `${hole}/anchor`, secret: "s" }], interval: "1m" },
      notifications: {
        approval_webhook: `${hole}/approval`,
        channels: [
          {
            name: "hole",
            type: "webhook",
            url: `${hole}/channel`,
            secret: "s",
            events: ["approval_requested", "alert"],
          },
        ],
      },
    };
    writeFileSync(join(place.folder, "svc.config.yaml"), JSON.stringify(config));
    const server = await start(place);
    try {
      const load = new Load(server.url);
      await load.reaches(60);
      await call(server.url, "POST", "runs", { run_id: "paying", permissions: ["pay"] });
      const asked = await call(server.url, "POST", "runs/paying/intents", {
        tool: "pay",
        args: { n: 1 },
        reason: "r",
      });
      expect(asked).toMatchObject({ status: 200, body: { decision: "block" } });
      await load.stop();
      expect(load.odd).toEqual([]);
      await expectRecorded(place, load.allowed);
    } finally {
      const told = performance.now();
      expect(await server.stop(), server.output()).toBe(0);
      expect(performance.now() - told).toBeLessThan(STOPPED_WITHIN_MS);
    }
    countTrials(store, "webhooks, anchors and traces into a black hole", 1);
  });
});

const SLOW_SYNC = {
  NODE_OPTIONS: `--import=${join(ROOT, "bench", "slow-sync.mjs")}`,
  SVC_BENCH_SYNC_MS: "200",
};

/** Each COMMIT waits a tenth of a second before its sync. */
function slowDatabase({ env }: Place): Record<string, string> {
  const url = new URL(env["SVC_DATABASE_URL"]!);
  url.searchParams.set("options", "-c commit_delay=100000 -c commit_siblings=0");
  return { SVC_DATABASE_URL: url.href };
}

/** Takes every connection and never says a word. */
async function blackHole(): Promise<string> {
  const taken = new Set<Socket>();
  const server = createServer((socket) => void taken.add(socket.on("error", () => {}))).listen(
    0,
    "127.0.0.1",
  );
  await new Promise((resolve) => server.once("listening", resolve));
  onTestFinished(() => {
    for (const socket of taken) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}

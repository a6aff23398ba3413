import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { verifies } from "../../test/support/verifies.ts";
import { createLogger, type LogSettings, logSchema } from "./log.ts";
import { createRequestLog } from "./request-log.ts";
import { lineSink } from "./sink.ts";

const redact = (text: string) => text.replaceAll(/sk_live_\w+/g, "[REDACTED:stripe]");
const now = () => Date.UTC(2026, 0, 2, 3, 4, 5, 6);

function logger(settings: Partial<LogSettings> = {}) {
  const lines: string[] = [];
  return { lines, log: createLogger(settings, { redact, now, sink: lineSink((line) => lines.push(line)) }) };
}
const parsed = (lines: string[]) => lines.map((line) => JSON.parse(line) as Record<string, unknown>);

describe("engine log", () => {
  it("writes JSON lines with level, time, msg and fields", () => {
    verifies("ops.log.json-fields");
    const { lines, log } = logger();
    log.warn("anchor failed", { sink: "webhook", attempt: 2 });
    expect(lines).toEqual([
      '{"level":"warn","time":"2026-01-02T03:04:05.006Z","sink":"webhook","attempt":2,"msg":"anchor failed"}\n',
    ]);
  });

  it("honours the level", () => {
    const { lines, log } = logger({ level: "warn" });
    log.debug("a");
    log.info("b");
    log.warn("c");
    log.error("d");
    expect(parsed(lines).map((line) => line["level"])).toEqual(["warn", "error"]);
    expect(logSchema.parse({})).toEqual({ format: "json", level: "info" });
    expect(() => logSchema.parse({ level: "loud" })).toThrow();
  });

  it("takes credentials out of every string, at any depth, in names and in errors", () => {
    verifies("ops.log.redacts-patterns");
    const { lines, log } = logger();
    log.info("key sk_live_abc in text", {
      note: "sk_live_abc",
      nested: { list: ["x sk_live_abc y"], sk_live_abc: 1 },
      error: new Error("upstream said sk_live_abc"),
    });
    expect(lines.join("")).not.toContain("sk_live_abc");
    expect(parsed(lines)[0]).toMatchObject({ msg: "key [REDACTED:stripe] in text" });
  });

  it.each([
    "password",
    "dbPassword",
    "client_secret",
    "token",
    "accessToken",
    "Authorization",
    "api_key",
    "apiKey",
    "x-api-key",
    "Cookie",
    "set-cookie",
    "credential",
    "credentials",
    "private_key",
    "privateKey",
    "x-svc-signature",
    "routing_key",
  ])("hides the whole value of a field named %s", (name) => {
    verifies("ops.log.redacts-fields");
    const { lines, log } = logger();
    log.info("x", { [name]: "plain-value", deep: { [name]: { a: ["plain-value"] } } });
    expect(lines.join("")).not.toContain("plain-value");
    expect(parsed(lines)[0]).toMatchObject({ [name]: "[REDACTED]", deep: { [name]: "[REDACTED]" } });
  });

  it("keeps fields with harmless names", () => {
    const { lines, log } = logger();
    log.info("x", { key_id: "k1", run_id: "r", host: "a.example", none: null, gone: undefined });
    expect(parsed(lines)[0]).toMatchObject({ key_id: "k1", run_id: "r", host: "a.example", none: null });
  });

  it("does not let a field pass for the line's own members", () => {
    const { lines, log } = logger();
    log.info("real", { msg: "forged", level: "error", time: "never", __proto__: { x: 1 } });
    expect(parsed(lines)[0]).toMatchObject({ msg: "real", level: "info", msg_: "forged", level_: "error" });
    expect(lines[0]!.match(/"level"/g)).toHaveLength(1);
  });

  it("never throws, with any input", () => {
    const { lines, log } = logger();
    const loop: Record<string, unknown> = {};
    loop["self"] = loop;
    const trap = new Proxy(
      {},
      {
        ownKeys: () => {
          throw new Error("no");
        },
      },
    );
    const getter = {
      get broken(): string {
        throw new Error("no");
      },
    };
    log.error("odd", {
      loop,
      trap,
      getter,
      big: 1n,
      fn: () => 1,
      sym: Symbol("s"),
      nan: Number.NaN,
      bytes: Buffer.alloc(3),
      at: new Date(0),
      map: new Map([["a", 1]]),
      long: "x".repeat(20_000),
    });
    expect(parsed(lines)[0]).toMatchObject({
      big: "1",
      bytes: "[3 bytes]",
      nan: "NaN",
      trap: "[unreadable]",
    });
    const broken = createLogger(
      {},
      {
        redact: () => {
          throw new Error("no");
        },
        sink: lineSink((line) => lines.push(line)),
      },
    );
    broken.info("secret text", { a: "secret text" });
    expect(lines[1]).not.toContain("secret text");
    const dead = createLogger(
      {},
      {
        redact,
        sink: lineSink(() => {
          throw new Error("closed");
        }),
      },
    );
    expect(() => dead.error("x")).not.toThrow();
  });

  it("knows credentials on its own", () => {
    const lines: string[] = [];
    const log = createLogger({}, { sink: lineSink((line) => lines.push(line)) });
    log.warn("sent with AKIAIOSFODNN7EXAMPL3", { url: "https://user:hunter2pass@db.example/x" });
    expect(lines.join("")).not.toMatch(/AKIAIOSFODNN7EXAMPL3|hunter2pass/);
  });

  it("gives a child its fields", () => {
    const { lines, log } = logger();
    log.child({ channel: "ops", api_key: "k" }).info("sent");
    expect(parsed(lines)[0]).toMatchObject({ channel: "ops", api_key: "[REDACTED]", msg: "sent" });
  });

  it("prints one readable line per entry in pretty form", () => {
    const { lines, log } = logger({ format: "pretty" });
    log.warn("first\nforged line \u001b[31m", { tool: "crm.delete", why: "two words", n: 3, bad: "a\r\nb" });
    expect(lines).toEqual([
      '2026-01-02T03:04:05.006Z WARN  first\\u000aforged line \\u001b[31m  tool=crm.delete  why="two words"  n=3  bad="a\\r\\nb"\n',
    ]);
  });
});

describe("request log", () => {
  it("writes the documented members and cuts the query off", () => {
    const lines: string[] = [];
    const log = createRequestLog({ redact, now, sink: lineSink((line) => lines.push(line)) });
    log({
      method: "GET",
      path: "/v1/impact?tool=x&args=%7B%22pin%22%3A1%7D#f",
      status: 200,
      ms: 1.23456,
      principal: "auditor-1",
      request_id: "r1",
    });
    log({ method: "POST", path: "/v1/runs/sk_live_abc", status: 401, ms: 0, principal: null });
    expect(parsed(lines)).toEqual([
      {
        time: "2026-01-02T03:04:05.006Z",
        method: "GET",
        path: "/v1/impact",
        status: 200,
        ms: 1.235,
        principal: "auditor-1",
        request_id: "r1",
      },
      {
        time: "2026-01-02T03:04:05.006Z",
        method: "POST",
        path: "/v1/runs/[REDACTED:stripe]",
        status: 401,
        ms: 0,
        principal: null,
      },
    ]);
  });
});

describe("a stderr that is closed or that nobody reads", () => {
  const script = `
    import { createLogger } from ${JSON.stringify(fileURLToPath(new URL("./log.ts", import.meta.url)))};
    const log = createLogger({}, { redact: (t) => t });
    process.stdin.once("data", async () => {
      for (let i = 0; i < 3000; i++) log.warn("line", { i, pad: "x".repeat(200) });
      await new Promise((r) => setTimeout(r, 50));
      log.warn("still alive");
      await log.flush();
      process.stdout.write("done\\n");
      process.exit(0);
    });
    process.stdout.write("ready\\n");
  `;
  const start = () =>
    spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", script], {
      stdio: ["pipe", "pipe", "pipe"],
    });

  it.each(["closed", "unread"])("does not stop the process: %s", async (how) => {
    const child = start();
    let out = "";
    child.stdout.on("data", (chunk: Buffer) => {
      out += chunk.toString();
    });
    await once(child.stdout, "data");
    if (how === "closed") child.stderr.destroy();
    child.stdin.write("go\n");
    while (!out.includes("done")) await once(child.stdout, "data");
    expect(out).toContain("done");
    child.kill("SIGKILL");
    await once(child, "exit");
  });
});

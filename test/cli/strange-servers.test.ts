/** Commands and the library against an address where another program answers, or a server that lies. */
import { readdirSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect } from "../../src/index.ts";
import { SERVICE_LIMITS } from "../../src/kernel/limits.ts";
import { speak } from "../support/io.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const folder = tempDir("strange");
const seen: (string | undefined)[] = [];
let answer: RequestListener = (_request, response) => void response.end();
const strange = createServer((request, response) => answer(request, response));
/** Answers as a server would, and remembers the key of each request. */
const elsewhere = createServer((request, response) => {
  seen.push(request.headers.authorization);
  response.writeHead(200, { "content-type": "application/json" }).end('{"runs":[],"next_cursor":null}');
});
const urlOf = (server: typeof strange) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

beforeAll(async () => {
  writeFileSync(join(folder, "k"), "secret-key\n", { mode: 0o600 });
  for (const server of [strange, elsewhere])
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterAll(() => {
  for (const server of [strange, elsewhere]) {
    server.closeAllConnections();
    server.close();
  }
});

const COMMANDS = [
  "runs",
  "runs --json",
  "show r1",
  "plan r1",
  "rollback r1",
  "approvals list",
  "approvals show apr_1",
  "approvals approve apr_1",
  "halt list",
  "halt add --reason stop",
  "keys list",
  "grants list",
  "plans list",
  "horizon",
  "hold list",
  "retention plan",
  "retention apply --dry-run",
  "resolve r1 0 --status failed --note gone",
  "verify",
  "contain --actor bot --reason stop --dry-run",
];
/** Their answers are documents, which have a media type and no shape. */
const DOCUMENTS = [
  "export --run r1",
  "bundle --run r1 --out out.json",
  "report r1 --out report.html",
  "report r1 --out r.pdf",
];
const run = (command: string) =>
  speak([...command.split(" "), "--server", urlOf(strange), "--key-file", "k"], { cwd: folder });

/** Commands that ended in another way than with an error of this form. */
async function notRefused(told: RegExp, commands = [...COMMANDS, ...DOCUMENTS]): Promise<object[]> {
  const others: object[] = [];
  for (const command of commands) {
    const { code, out, err } = await run(command);
    if (code !== 1 || out !== "" || !told.test(err)) others.push({ command, code, out, err });
  }
  return others;
}

describe("a server that shows no card", () => {
  it("gets a decision that fits no card", async () => {
    verifies("beyond.card.unseen-nothing");
    const bodies: { path: string; card_hash?: string }[] = [];
    answer = (request, response) => {
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => {
        const path = request.url!;
        if (request.method === "POST") bodies.push({ path, ...JSON.parse(Buffer.concat(parts).toString()) });
        response.writeHead(404, { "content-type": "application/json" }).end('{"error":"unknown"}');
      });
    };
    for (const verb of ["approve", "deny"]) {
      const { code, err } = await run(`approvals ${verb} apr_1`);
      expect([code, err]).toEqual([1, "error: unknown\n"]);
    }
    expect(bodies).toEqual(
      ["approve", "deny"].map((verb) => ({
        path: `/v1/approvals/apr_1/${verb}`,
        card_hash: `sha256:${"0".repeat(64)}`,
      })),
    );
  });
});

const send =
  (type: string, body: string | Buffer): RequestListener =>
  (_request, response) =>
    void response.writeHead(200, { "content-type": type }).end(body);
const json = (body: string) => send("application/json", body);
const LIES: [string, RequestListener][] = [
  ["an empty answer", json("")],
  ["null", json("null")],
  ["a list", json("[1]")],
  ["an empty object", json("{}")],
  ["an object of another service", json('{"status":"ok","data":{"items":[]}}')],
  ["lists of the wrong things", json('{"runs":7,"approvals":{},"records":"x","keys":[null],"halts":[3]}')],
  ["a page", send("text/html", "<!doctype html><title>Log in</title>")],
  ["half an object", json('{"runs":[')],
  ["nothing at all", (_request, response) => void response.writeHead(204).end()],
  ["not UTF-8", send("application/json", Buffer.from([0x7b, 0xff, 0x7d]))],
];

describe.each(LIES)("a server that answers %s", (_name, lie) => {
  it("makes every command fail with what to do, and print nothing as an answer", async () => {
    verifies("beyond.cli.server-strange");
    answer = lie;
    const told = /does not answer like svc: .*; check the server's URL and version/;
    expect(await notRefused(told, COMMANDS)).toEqual([]);
  });
});

it.each([
  ["a page in place of a document", send("application/json", "<!doctype html>")],
  ["half a document", send("application/x-ndjson", '{"seq":0}\n{"seq":')],
  ["half an object", json('{"seq":0,')],
  ["a list", json("[1]")],
  ["another type", send("image/png", "x")],
])("%s is not kept or printed", async (_name, lie) => {
  verifies("beyond.cli.server-strange");
  answer = lie;
  expect(await notRefused(/does not answer like svc/, DOCUMENTS)).toEqual([]);
  expect(readdirSync(folder)).toEqual(["k"]);
});

describe("a server that redirects", () => {
  it.each([301, 302, 303, 307, 308, 300, 304])("with %d is not followed, by any command", async (status) => {
    verifies("beyond.cli.server-redirect");
    answer = (request, response) =>
      void response.writeHead(status, { location: urlOf(elsewhere) + request.url! }).end();
    const told = new RegExp(
      `answered ${status}, a redirect to ${urlOf(elsewhere)}. Redirects are not followed`,
    );
    expect(await notRefused(told)).toEqual([]);
    expect(seen).toEqual([]);
  });

  it("to itself is not followed either, also by the library", async () => {
    verifies("beyond.cli.server-redirect");
    answer = (_request, response) => void response.writeHead(308, { location: "/v2/runs" }).end();
    expect((await run("runs")).err).toContain("Redirects are not followed; use the server's own URL");
    answer = (request, response) =>
      void response.writeHead(302, { location: urlOf(elsewhere) + request.url! }).end();
    const svc = await connect({ url: urlOf(strange), key: "secret-key" });
    await expect(svc.run({ permissions: [] })).rejects.toThrow("Redirects are not followed");
    await svc.close();
    expect(seen).toEqual([]);
  });
});

describe("a server whose answer has no end", () => {
  /** Counts what it could send before the client went away. */
  function endless(type: string): { sent: () => number } {
    let sent = 0;
    const chunk = Buffer.alloc(1_048_576, " ");
    answer = (_request, response) => {
      response.writeHead(200, { "content-type": type });
      const more = () => {
        while (!response.destroyed) {
          sent += chunk.length;
          if (!response.write(chunk)) return void response.once("drain", more);
        }
      };
      more();
    };
    return { sent: () => sent };
  }

  it("is read no further than an answer may be long", async () => {
    verifies("beyond.cli.server-bounded");
    const { sent } = endless("application/json");
    const { code, out, err } = await run("runs");
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toContain(`the answer is longer than ${SERVICE_LIMITS.answer_bytes} bytes`);
    expect(sent()).toBeLessThan(2 * SERVICE_LIMITS.answer_bytes);
  });

  it("that breaks off is an error, not a shorter answer", async () => {
    verifies("beyond.cli.server-strange");
    answer = (_request, response) => {
      response.writeHead(200, { "content-type": "application/x-ndjson", "content-length": 10_000 });
      response.write('{"seq":0}\n', () => response.destroy());
    };
    const { code, out, err } = await run("export --run r1");
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(/^error: cannot reach 127\.0\.0\.1/);
  });
});

describe("the library", () => {
  it.each([
    ["another decision", '{"decision":"yes","step":0}'],
    ["an allowed call without a step", '{"decision":"allow"}'],
    ["a page", "<html>"],
  ])("makes no call that a server answers with %s", async (_name, body) => {
    verifies("beyond.cli.server-strange");
    answer = (request, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(
        request.url === "/v1/runs" ? '{"run_id":"r1","mode":"enforce","scope_seal":"sha256:x"}' : body,
      );
    };
    const svc = await connect({ url: urlOf(strange), key: "secret-key" });
    const opened = await svc.run({ permissions: [] });
    let calls = 0;
    const made = opened.call({ tool: "t", args: {}, reason: "r" }, async () => ++calls);
    await expect(made).rejects.toThrow("does not answer like svc");
    expect(calls).toBe(0);
    await svc.close();
  });
});

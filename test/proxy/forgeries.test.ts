/** The forging service against the HTTP proxy, which `svc proxy` and `svc run` share. */
import { request } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { ServiceOperation } from "../../src/operations/pipeline/operation.ts";
import { withHttpUndos } from "../../src/service/start/http-undo.ts";
import { createProxy, type RunningProxy } from "../../src/service/start/proxy.ts";
import {
  type AskedCall,
  FORGERY_NAMES,
  type ForgedSurface,
  forgedApprovers,
  playForgery,
  playHonestly,
  writeApprovers,
} from "../support/forgeries.ts";
import { upstream } from "../support/proxy.ts";
import { testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const forged = vi.hoisted(() => ({
  change: (_op: string, _input: unknown, answer: unknown): unknown => answer,
}));
vi.mock("../../src/operations/pipeline/dispatch.ts", async (original) => {
  const real = await original<typeof import("../../src/operations/pipeline/dispatch.ts")>();
  return {
    ...real,
    dispatchOperation: async (op: ServiceOperation, caller: never, input: never) => {
      const answer = op.id === "get_signatures" ? undefined : await real.dispatchOperation(op, caller, input);
      return forged.change(op.id, input, answer);
    },
  };
});

const api = await upstream((_, response) => response.end("done"));
const HOST = `127.0.0.1:${api.port}`;
const tool = "pay.refund";
const file = forgedApprovers(tool);
const http = (method: string, path: string) =>
  `http: {scheme: http, host: "${HOST}", method: ${method}, path: ${path}}`;
const MANIFESTS = `
- {tool: ${tool}, effect: irreversible, permission: pay, ${http("POST", "/refund")}}
- {tool: pay.free, effect: irreversible, permission: pay, ${http("POST", "/free")}}
`;

let proxy: RunningProxy;
let asked: AskedCall;

/** Sends a request through the proxy. */
function send(path: string, body: object): Promise<{ status: number; text: string }> {
  const { port } = proxy.proxy.server.address() as AddressInfo;
  const text = JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        ...{ host: "127.0.0.1", port, method: "POST", path: `http://${HOST}${path}` },
        headers: {
          host: HOST,
          "proxy-authorization": "Bearer agent",
          "content-type": "application/json",
          "content-length": Buffer.byteLength(text),
        },
      },
      (answer) => {
        const parts: Buffer[] = [];
        answer.on("data", (part: Buffer) => parts.push(part));
        answer.on("end", () =>
          resolve({ status: answer.statusCode!, text: Buffer.concat(parts).toString() }),
        );
      },
    );
    sent.on("error", reject);
    sent.end(text);
  });
}

const surface: ForgedSurface = {
  lies: { decision: {}, evidence: () => ({}) },
  open: async () => async (amount) => {
    const before = api.seen.length;
    const { text } = await send("/refund", { amount });
    const ran = api.seen.length > before;
    return { ran, why: ran ? "" : text };
  },
};

beforeAll(async () => {
  const s = await testServer({
    manifests: MANIFESTS,
    config: `approvers: ${file}\nallow_hosts: [127.0.0.1]\n`,
  });
  // The passkeys sign for the time of this machine.
  await s.env.advance(Date.now() - s.env.now());
  forged.change = (op, input, answer) => {
    if (op === "intent") {
      asked = input as AskedCall;
      return { ...(answer as object), ...surface.lies.decision };
    }
    return op === "get_signatures" ? surface.lies.evidence(asked) : answer;
  };
  proxy = await createProxy(s.app);
  await new Promise<void>((resolve) => proxy.proxy.server.listen(0, "127.0.0.1", resolve));
  afterAll(() => proxy.stop());
});

describe("the proxy", () => {
  it("forwards a really signed call", async () => {
    await playHonestly(surface, { file, tool });
  });

  it.each(FORGERY_NAMES)("refuses %s", async (name) => {
    verifies("beyond.approvers.forgeries", "beyond.approvers.proxy");
    await playForgery(name, surface, { file, tool });
  });

  it("leaves tools that the file does not name to the service", async () => {
    writeApprovers(file, tool);
    surface.lies.decision = {};
    expect((await send("/free", { amount: 1 })).text).toBe("done");
  });

  it("does not start without the file", async () => {
    const s = await testServer({ config: `approvers: ${file}.missing\n` });
    await expect(createProxy(s.app)).rejects.toThrow("does not exist");
  });

  it("undoes nothing unsigned over HTTP", async () => {
    verifies("beyond.approvers.undo-http");
    const s = await testServer({
      manifests: MANIFESTS,
      config: `approvers: ${file}\nallow_hosts: [127.0.0.1]\n`,
    });
    await withHttpUndos(s.app, null, async ({ compensator }) => {
      const undo = (to: string) =>
        compensator(
          {
            run_id: "r",
            step: 0,
            tool: to,
            args: { amount: 1 },
            idempotency_key: to,
            original_tool: to,
          } as never,
          new AbortController().signal,
        );
      const before = api.seen.length;
      await expect(undo(tool)).rejects.toThrow("requires signatures");
      expect(api.seen.length).toBe(before);
      await undo("pay.free");
      expect(api.seen.length).toBe(before + 1);
    });
  });
});

/** The forging server against the library. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startListening } from "../../src/http/lifecycle.ts";
import { connectToServer } from "../../src/library/connect.ts";
import { ROOT } from "../support/files.ts";
import {
  type AskedCall,
  FORGERY_NAMES,
  type ForgedSurface,
  forgedApprovers,
  playForgery,
  playHonestly,
} from "../support/forgeries.ts";
import { forgingServer } from "../support/forging.ts";
import { testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const tool = "pay.refund";
const file = forgedApprovers(tool);
let url = "";
let asked: AskedCall;

const surface: ForgedSurface = {
  lies: { decision: {}, evidence: () => ({}) },
  async open() {
    const svc = await connectToServer({ url, key: "agent", approvers: file });
    const run = await svc.run({ permissions: ["pay"] });
    return async (amount) => {
      let ran = false;
      let why = "";
      asked = { run_id: run.run_id, tool, args: { amount } };
      const make = () => {
        ran = true;
        return "done";
      };
      await run.call({ tool, args: { amount }, reason: "because" }, make).catch((error: Error) => {
        why = error.message;
      });
      return { ran, why };
    };
  },
};

beforeAll(async () => {
  const s = await testServer({ manifests: `- {tool: ${tool}, effect: idempotent, permission: pay}\n` });
  const listening = await startListening(s.http, "127.0.0.1", 0);
  const forger = await forgingServer(listening.url);
  ({ url } = forger);
  forger.lies.push(({ path }, answer) => {
    if (/\/intents$/.test(path)) return { ...answer, ...surface.lies.decision };
    return /\/signatures$/.test(path) ? surface.lies.evidence(asked) : undefined;
  });
  afterAll(async () => {
    await forger.close();
    await listening.stop();
  });
});

describe("the library", () => {
  it("makes a really signed call", async () => {
    await playHonestly(surface, { file, tool });
  });

  it.each(FORGERY_NAMES)("refuses %s", async (name) => {
    verifies("beyond.approvers.forgeries");
    await playForgery(name, surface, { file, tool });
  });

  it("is forged in every way that the documentation lists", () => {
    const text = readFileSync(join(ROOT, "docs/internals/forging-server.md"), "utf8");
    const listed = [...text.matchAll(/^\| ([^|]+) \| [^|]+ \|$/gm)].map(([, name]) => name);
    expect(listed.slice(2).sort()).toEqual([...FORGERY_NAMES].sort());
  });
});

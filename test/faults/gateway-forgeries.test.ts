/** The forging service against the gateway: the gateway's own service answers as the table says. */
import { beforeAll, describe, it, vi } from "vitest";
import type { ServiceOperation } from "../../src/operations/pipeline/operation.ts";
import { call, fakeUpstream, type GatewayTest, testGateway } from "../gateway/support/gateway.ts";
import {
  type AskedCall,
  FORGERY_NAMES,
  type ForgedSurface,
  forgedApprovers,
  playForgery,
  playHonestly,
} from "../support/forgeries.ts";
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

const tool = "create";
const file = forgedApprovers(tool);
let g: GatewayTest;
let asked: AskedCall;

const surface: ForgedSurface = {
  lies: { decision: {}, evidence: () => ({}) },
  async open() {
    const agent = await g.connect("agent");
    const made = async () => (await g.trail()).filter(({ event }) => event === "succeeded").length;
    return async (amount) => {
      const before = await made();
      const said = JSON.stringify(await call(agent, tool, { name: `n${amount}` }));
      const ran = (await made()) > before;
      return { ran, why: ran ? "" : said };
    };
  },
};

beforeAll(async () => {
  g = await testGateway({ upstreams: [fakeUpstream()], config: { approvers: file } });
  forged.change = (op, input, answer) => {
    if (op === "intent") {
      asked = input as AskedCall;
      return { ...(answer as object), ...surface.lies.decision };
    }
    return op === "get_signatures" ? surface.lies.evidence(asked) : answer;
  };
});

describe("the gateway", () => {
  it("forwards a really signed call", async () => {
    await playHonestly(surface, { file, tool });
  });

  it.each(FORGERY_NAMES)("refuses %s", async (name) => {
    verifies("beyond.approvers.forgeries");
    await playForgery(name, surface, { file, tool });
  });
});

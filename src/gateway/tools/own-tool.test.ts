import { expect, it } from "vitest";
import * as z from "zod";
import { SvcError } from "../../kernel/errors.ts";
import { callOwnTool, type OwnCall, ownTool } from "./own-tool.ts";

const call = {
  services: { app: {} },
  principal: {
    id: "key:ann",
    name: "ann",
    kind: "key",
    roles: ["auditor"],
    tenant: null,
    tenant_only: false,
  },
  again: () => {
    throw new SvcError("unauthenticated", "invalid credential");
  },
} as unknown as OwnCall;
const looking = (read_only: boolean) =>
  ownTool({
    name: "svc.look",
    description: "looks for a while",
    role: "auditor",
    input: z.strictObject({}),
    read_only,
    run: async () => ({ seen: "what is there" }),
  });

it("returns a read to a key that still counts by then, and a write to its caller", async () => {
  expect(await callOwnTool(looking(true), call, {})).toMatchObject({
    isError: true,
    structuredContent: { error: "invalid credential" },
  });
  expect(await callOwnTool(looking(false), call, {})).toMatchObject({
    structuredContent: { seen: "what is there" },
  });
});

/** The tool servers behind a gateway. A standalone server has none. */
import * as z from "zod";
import { defineOperation } from "../pipeline/operation.ts";
import { noFields } from "../schemas.ts";

export const listConnectors = defineOperation({
  id: "list_connectors",
  summary: "List the tool servers behind this process; empty on a standalone server",
  role: "auditor",
  within_tenant: true,
  input: noFields,
  output: z.strictObject({
    connectors: z.array(
      z.strictObject({
        name: z.string(),
        transport: z.enum(["stdio", "http"]),
        ok: z.boolean(),
        tools: z.int(),
      }),
    ),
  }),
  async run({ app }) {
    return { connectors: app.connectors?.() ?? [] };
  },
});

/** MCP server for operators, which offers the operator tools and nothing else. */
import type { Server } from "@modelcontextprotocol/server";
import { isJsonObject, type JsonObject } from "../kernel/json/json.ts";
import { isToolCallParams } from "./call/governed-call.ts";
import type { McpGateway } from "./gateway.ts";
import { createPeer, invalidParams, methodNotFound } from "./session/mcp-server.ts";
import { extraOf } from "./session/request-context.ts";
import { OPERATOR_TOOLS } from "./tools/operator-tools.ts";
import { callOwnTool } from "./tools/own-tool.ts";

const INSTRUCTIONS =
  "Operator tools of the action governance service: see runs and approval requests, decide them, plan and execute rollbacks, export evidence, halt and resume, contain an agent.";

export function createOperatorPeer({ app, services, listing }: McpGateway, method?: string): Server {
  return createPeer({
    version: app.version,
    capabilities: { tools: {} },
    instructions: INSTRUCTIONS,
    log: app.log,
    serves: method === undefined || method.startsWith("tools/"),
    async handle(method, params, { mcpReq, http }): Promise<JsonObject> {
      if (method === "tools/list") return { tools: listing.own(OPERATOR_TOOLS) };
      if (method !== "tools/call") throw methodNotFound(method);
      if (!isToolCallParams(params)) throw invalidParams("tools/call: name is required");
      const wanted = listing.dotted(params.name);
      const tool = OPERATOR_TOOLS.find(({ name }) => name === wanted);
      if (tool === undefined) throw invalidParams(`unknown tool ${JSON.stringify(params.name.slice(0, 80))}`);
      const args = params["arguments"] ?? {};
      if (!isJsonObject(args)) throw invalidParams("tools/call: arguments must be an object");
      // Each request carries its own principal, because a session has none.
      const { principal, again } = extraOf(http?.authInfo)!;
      return callOwnTool(tool, { services, principal, again, run: null, signal: mcpReq.signal }, args);
    },
  });
}

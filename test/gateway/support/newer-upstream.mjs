/**
 * A tool server of the newer era alone, on the SDK, over stdio or (with PORT) over HTTP, where it
 * never answers who listens for changes; FAKE_LOG gets what it reads.
 */
import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, inputRequired, Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const TOOLS = [
  {
    name: "hello",
    inputSchema: { type: "object", properties: { who: { type: "string", "x-mcp-header": "Who" } } },
  },
  { name: "list_shape", inputSchema: { type: "object" }, outputSchema: { type: "array" } },
  { name: "confirm", inputSchema: { type: "object" } },
];

const factory = () => {
  const server = new Server(
    { name: "newer", version: "1" },
    { capabilities: { tools: { listChanged: true }, logging: {} } },
  );
  server.setRequestHandler("tools/list", () => ({ tools: TOOLS }));
  server.setRequestHandler("tools/call", async ({ params }, context) => {
    const { name, arguments: args = {} } = params;
    if (name === "hello") {
      const header = context.http?.req?.headers.get("mcp-param-who") ?? null;
      await context.mcpReq.log("info", "about to greet");
      return {
        content: [{ type: "text", text: `hello ${args.who}` }],
        structuredContent: { header, meta: context.mcpReq._meta ?? null },
      };
    }
    if (name === "list_shape") return { content: [{ type: "text", text: "[1]" }], structuredContent: [1] };
    const answer = context.mcpReq.inputResponses?.ok;
    if (answer === undefined) {
      const schema = { type: "object", properties: { ok: { type: "boolean" } } };
      return inputRequired({
        inputRequests: { ok: inputRequired.elicit({ message: "sure?", requestedSchema: schema }) },
        requestState: "round-1",
      });
    }
    return {
      content: [{ type: "text", text: JSON.stringify({ answer, state: context.mcpReq.requestState() }) }],
    };
  });
  return server;
};

if (process.env.PORT) {
  const handler = toNodeHandler(createMcpHandler(factory, { legacy: "reject" }));
  const deaf = ({ headers }) => headers["mcp-method"] === "subscriptions/listen";
  createServer((request, response) => void (deaf(request) || handler(request, response))).listen(
    Number(process.env.PORT),
    "127.0.0.1",
    () => console.log("ready"),
  );
} else {
  serveStdio(factory, { legacy: "reject" });
  if (process.env.FAKE_LOG) process.stdin.on("data", (chunk) => appendFileSync(process.env.FAKE_LOG, chunk));
}

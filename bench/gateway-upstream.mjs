/** The fastest tool server there can be: two tools that answer what they were given, without any SDK. */
import { createInterface } from "node:readline";

const send = (id, result) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
const info = { capabilities: { tools: {} }, serverInfo: { name: "bench", version: "1" } };

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  if (method === "tools/call")
    send(id, { content: [{ type: "text", text: JSON.stringify(params.arguments) }] });
  else if (method === "tools/list")
    send(id, { tools: ["echo", "put"].map((name) => ({ name, inputSchema: { type: "object" } })) });
  else if (method === "initialize") send(id, { protocolVersion: params.protocolVersion, ...info });
  else send(id, {});
});

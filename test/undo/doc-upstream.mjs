/** A tool server that keeps documents in the folder given on the command line, else for its own connection alone. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromJsonSchema, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const own = process.argv[2] === undefined ? mkdtempSync(join(tmpdir(), "own-docs-")) : undefined;
if (own !== undefined) process.on("exit", () => rmSync(own, { recursive: true, force: true }));
const at = (id) => join(own ?? process.argv[2], `${id}.txt`);
const shown = (value) => ({
  content: [{ type: "text", text: JSON.stringify(value) }],
  structuredContent: value,
});
const inputSchema = fromJsonSchema({
  type: "object",
  properties: { id: { type: "string" }, text: { type: "string" } },
  required: ["id"],
});
const TOOLS = {
  "doc.get": ({ id }) => {
    if (id === "broken") throw new Error("no such shelf");
    return existsSync(at(id)) ? { exists: true, text: readFileSync(at(id), "utf8") } : { exists: false };
  },
  "doc.put": ({ id, text }) => {
    writeFileSync(at(id), text);
    return { written: true };
  },
  "doc.drop": ({ id }) => {
    rmSync(at(id));
    return { dropped: true };
  },
};
TOOLS["doc.plain"] = TOOLS["doc.put"];
TOOLS["doc.small"] = TOOLS["doc.put"];

serveStdio(() => {
  const server = new McpServer({ name: "docs", version: "1.0.0" });
  for (const [name, work] of Object.entries(TOOLS))
    server.registerTool(name, { description: name, inputSchema }, async (args) => shown(work(args)));
  return server;
});

/**
 * Civic's passthrough proxy with the two hooks that its documentation begins with, one that may refuse a call and one that
 * writes calls down. The hooks' own packages are not in the registry, so they are written here, as short as they can be.
 * Copied into the folder where the package was installed, and started with: port, the file for the audit, the tool server.
 */
import { appendFile } from "node:fs/promises";
import { AbstractHook } from "@civic/hook-common";
import { createPassthroughProxy } from "@civic/passthrough-mcp-server";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [port, file, upstream] = process.argv.slice(2);

class Guardrail extends AbstractHook {
  get name() {
    return "guardrail";
  }
  async processCallToolRequest(request) {
    if (!(request.params.arguments?.amount > 500)) return { resultType: "continue", request };
    const content = [{ type: "text", text: "more than 500" }];
    return { resultType: "respond", response: { content, isError: true } };
  }
}

class Audit extends AbstractHook {
  get name() {
    return "audit";
  }
  async processCallToolRequest(request) {
    await this.write({ request: request.params });
    return { resultType: "continue", request };
  }
  async processCallToolResult(response) {
    await this.write({ response });
    return { resultType: "continue", response };
  }
  write(entry) {
    return appendFile(file, `${JSON.stringify({ at: new Date().toISOString(), ...entry })}\n`);
  }
}

await createPassthroughProxy({
  source: { transportType: "httpStream", port: Number(port), mcpPath: "/mcp" },
  target: {
    transportType: "custom",
    transportFactory: () => new StdioClientTransport({ command: process.execPath, args: [upstream] }),
  },
  hooks: [new Audit(), new Guardrail()],
});

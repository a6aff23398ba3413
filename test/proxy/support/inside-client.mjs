/** An MCP client that runs inside `svc run` and reaches the gateway through the proxy: `<this file> <url> <key>`. */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { EnvHttpProxyAgent, fetch } from "undici";

const [url, key] = process.argv.slice(2);
const dispatcher = new EnvHttpProxyAgent({ proxyTunnel: false });
const client = new Client({ name: "inside", version: "1" });
await client.connect(
  new StreamableHTTPClientTransport(new URL(url), {
    fetch: (address, init) => fetch(address, { ...init, dispatcher }),
    requestInit: { headers: { authorization: `Bearer ${key}` } },
  }),
);
const { tools } = await client.listTools();
const answers = [];
for (const [name, args] of [
  ["echo", { text: "from inside" }],
  ["create", { name: "blocked" }],
])
  answers.push(await client.callTool({ name, arguments: args }));
console.log(JSON.stringify({ tools: tools.map(({ name }) => name), answers }));
await client.close();
process.exit();

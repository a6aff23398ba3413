/**
 * A companion to the filesystem server: what that one lacks for undoing its own work. `set_aside` takes a
 * file out of the folder and keeps it; `is_there` tells whether a path exists. Both stay inside the folder
 * that is given on the command line.
 */
import { mkdirSync, realpathSync, renameSync, statSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve } from "node:path";
import { fromJsonSchema, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const root = realpathSync(process.argv[2] ?? ".");
const bin = join(dirname(root), `.${basename(root)}-set-aside`);

/** The path itself may be missing, but its folder may not lead out of ours. */
function inside(path) {
  const folder = realpathSync(dirname(resolve(root, path)));
  const whole = join(folder, basename(path));
  const way = relative(root, whole);
  if (way === "" || way.startsWith("..") || isAbsolute(way))
    throw new Error("the path is outside of the folder");
  return whole;
}

function exists(path) {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

function setAside(path, key) {
  const from = inside(path);
  const to = join(bin, `${key}-${basename(from)}`);
  // Asked again with the same key, it has been done already.
  if (exists(to)) return { set_aside: true };
  mkdirSync(bin, { recursive: true });
  renameSync(from, to);
  return { set_aside: true };
}

const input = fromJsonSchema({
  type: "object",
  properties: { path: { type: "string" } },
  required: ["path"],
});
const shown = (value) => ({
  content: [{ type: "text", text: JSON.stringify(value) }],
  structuredContent: value,
});

serveStdio(() => {
  const server = new McpServer({ name: "files-companion", version: "1.0.0" });
  server.registerTool(
    "set_aside",
    { description: "Take a file out of the folder and keep it", inputSchema: input },
    async ({ path }, { mcpReq }) =>
      shown(setAside(path, mcpReq._meta?.["svc/idempotency_key"]?.slice(0, 16) ?? `${Date.now()}`)),
  );
  server.registerTool(
    "is_there",
    { description: "Whether a path exists", inputSchema: input, annotations: { readOnlyHint: true } },
    async ({ path }) => shown({ exists: exists(inside(path)) }),
  );
  return server;
});

/**
 * A companion to the filesystem server: what that one lacks for undoing its own work. `look` shows what is at a
 * path, to the byte; `put_back` writes such bytes; `set_aside` takes a file out of the folder and keeps it;
 * `remove_folders` takes empty folders away. All stay inside the folder that is given on the command line.
 */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmdirSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve } from "node:path";
import { fromJsonSchema, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const root = realpathSync(process.argv[2] ?? ".");
const bin = join(dirname(root), `.${basename(root)}-set-aside`);

function checked(whole) {
  const way = relative(root, whole);
  if (way === "" || way === ".." || way.startsWith("../") || isAbsolute(way))
    throw new Error("the path is outside of the folder");
  return whole;
}

/** The path itself may be missing, and folders above it; what is there of them may not lead out of ours. */
function inside(path) {
  const missing = [basename(path)];
  let folder = dirname(resolve(root, path));
  while (!existsSync(folder)) {
    missing.unshift(basename(folder));
    folder = dirname(folder);
  }
  return checked(join(realpathSync(folder), ...missing));
}

const at = (path) => lstatSync(path, { throwIfNoEntry: false });

/** Everything an undo restores or compares. Text is shown as text, for the eyes of those who decide. */
function look(path) {
  const whole = inside(path);
  const found = at(whole);
  const shown = {
    exists: found !== undefined,
    folder: false,
    link: null,
    text: null,
    base64: null,
    made: null,
  };
  if (found === undefined) return { ...shown, made: topmostMissing(whole) };
  if (found.isSymbolicLink()) shown.link = readlinkSync(whole);
  const real = shown.link === null ? whole : checked(realpathSync(whole));
  if (at(real).isDirectory()) return { ...shown, folder: true };
  const bytes = readFileSync(real);
  const text = bytes.toString("utf8");
  return Buffer.from(text).equals(bytes)
    ? { ...shown, text }
    : { ...shown, base64: bytes.toString("base64") };
}

/** The first folder that making this one makes. */
function topmostMissing(whole) {
  let path = whole;
  while (!existsSync(dirname(path))) path = dirname(path);
  return path;
}

function putBack(path, text, base64) {
  const whole = inside(path);
  const real = existsSync(whole) ? checked(realpathSync(whole)) : whole;
  writeFileSync(real, base64 === null ? text : Buffer.from(base64, "base64"));
  return { put_back: true };
}

function setAside(path, key) {
  const from = inside(path);
  const to = join(bin, `${key}-${basename(from)}`);
  // Asked again with the same key, it has been done already.
  if (existsSync(to)) return { set_aside: true };
  mkdirSync(bin, { recursive: true });
  renameSync(from, to);
  return { set_aside: true };
}

/** From the inmost to the one that was made first; a folder that is in use stays, and so do those above it. */
function removeFolders(path, made) {
  const top = checked(made);
  for (let folder = inside(path); folder.startsWith(top); folder = dirname(folder))
    if (existsSync(folder)) rmdirSync(folder);
  return { removed: true };
}

const input = (more = {}) =>
  fromJsonSchema({
    type: "object",
    properties: { path: { type: "string" }, ...more },
    required: ["path", ...Object.keys(more)],
  });
const TEXT = { type: ["string", "null"] };
const TOOLS = {
  look: {
    description: "What is at a path, to the byte",
    inputSchema: input(),
    annotations: { readOnlyHint: true },
    work: ({ path }) => look(path),
  },
  put_back: {
    description: "Write what a file held",
    inputSchema: input({ text: TEXT, base64: TEXT }),
    work: ({ path, text, base64 }) => putBack(path, text, base64),
  },
  set_aside: {
    description: "Take a file out of the folder and keep it",
    inputSchema: input(),
    work: ({ path }, key) => setAside(path, key),
  },
  remove_folders: {
    description: "Take away empty folders that were made for a path",
    inputSchema: input({ made: { type: "string" } }),
    work: ({ path, made }) => removeFolders(path, made),
  },
};

serveStdio(() => {
  const server = new McpServer({ name: "files-companion", version: "1.0.0" });
  for (const [name, { work, ...tool }] of Object.entries(TOOLS))
    server.registerTool(name, tool, async (args, { mcpReq }) => {
      const value = work(args, mcpReq._meta?.["svc/idempotency_key"]?.slice(0, 16) ?? `${Date.now()}`);
      return { content: [{ type: "text", text: JSON.stringify(value) }], structuredContent: value };
    });
  return server;
});

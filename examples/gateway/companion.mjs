/**
 * A companion to the filesystem server: what that one lacks for undoing its own work. `look` shows what is at a
 * path, to the byte; `put_back` writes such bytes; `set_aside` takes a file out of the folder and keeps it;
 * `remove_folders` takes empty folders away. All stay inside the folder that is given on the command line.
 */
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve } from "node:path";
import { fromJsonSchema, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const root = realpathSync(process.argv[2] ?? ".");
const bin = join(dirname(root), `.${basename(root)}-set-aside`);
/** A folder with more in it is not compared, and so not moved. */
const MAX_ENTRIES = 10_000;
const SLASH = Buffer.from("/");

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
  return checked(onDisk(realpathSync(folder), missing));
}

/** Names as the disk has them: like the filesystem server, an entry of another Unicode form is found, too. */
function onDisk(folder, [name, ...rest]) {
  if (!at(folder)?.isDirectory()) return join(folder, name, ...rest);
  const entries = at(join(folder, name)) === undefined ? readdirSync(folder) : [name];
  const found = entries.filter((entry) => entry.normalize() === name.normalize());
  if (found.length > 1) throw new Error("several entries have this name, in different Unicode forms");
  const whole = join(folder, found[0] ?? name);
  return rest.length === 0 ? whole : onDisk(existsSync(whole) ? realpathSync(whole) : whole, rest);
}

const at = (path) => lstatSync(path, { throwIfNoEntry: false, bigint: true });
const inodeOf = ({ dev, ino }) => `${dev}:${ino}`;

/** Everything an undo restores or compares. Text is shown as text, for the eyes of those who decide. */
function look(path) {
  const whole = inside(path);
  const found = at(whole);
  const shown = {
    /** The file as the disk names it, behind a link. */
    path: whole,
    exists: found !== undefined,
    folder: false,
    link: null,
    text: null,
    base64: null,
    mode: null,
    /** The file's inode where it has other names, too. */
    hard_link: null,
    /** Which folder it is, and what is in it. */
    folder_id: null,
    holds: null,
    made: null,
  };
  if (found === undefined) return { ...shown, made: topmostMissing(whole) };
  if (found.isSymbolicLink()) shown.link = readlinkSync(whole);
  shown.path = shown.link === null ? whole : checked(realpathSync(whole));
  const real = at(shown.path);
  if (real.isDirectory()) {
    const folder_id = `${inodeOf(real)}:${real.birthtimeNs}`;
    return { ...shown, folder: true, folder_id, holds: digestOf(shown.path) };
  }
  shown.mode = Number(real.mode & 0o7777n);
  if (real.nlink > 1n) shown.hard_link = inodeOf(real);
  const bytes = readFileSync(shown.path);
  const text = bytes.toString("utf8");
  return Buffer.from(text).equals(bytes)
    ? { ...shown, text }
    : { ...shown, base64: bytes.toString("base64") };
}

/** Over the names, kinds and bytes of all that is in the folder; names are bytes, whatever they spell. */
function digestOf(folder) {
  const hash = createHash("sha256");
  let entries = 0;
  const add = (above, name) => {
    if (++entries > MAX_ENTRIES) throw new Error("the folder holds too much to be compared");
    const path = Buffer.concat([above, SLASH, name]);
    const { mode } = at(path);
    hash.update(`${name.toString("hex")} ${mode} `);
    if (at(path).isDirectory()) addAll(path);
    else hash.update(createHash("sha256").update(bytesOf(path)).digest());
  };
  const addAll = (above) => {
    const names = readdirSync(above, { encoding: "buffer" });
    hash.update(`${names.length} `);
    for (const name of names.sort(Buffer.compare)) add(above, name);
  };
  addAll(Buffer.from(folder));
  return hash.digest("hex");
}

function bytesOf(path) {
  if (at(path).isSymbolicLink()) return readlinkSync(path, "buffer");
  return at(path).isFile() ? readFileSync(path) : Buffer.alloc(0);
}

/** The first folder that making this one makes. */
function topmostMissing(whole) {
  let path = whole;
  while (!existsSync(dirname(path))) path = dirname(path);
  return path;
}

function putBack(path, { text, base64, mode, hard_link }) {
  const whole = inside(path);
  const real = existsSync(whole) ? checked(realpathSync(whole)) : whole;
  const bytes = base64 === null ? Buffer.from(text) : Buffer.from(base64, "base64");
  const other = hard_link === null ? undefined : otherName(real, hard_link, bytes);
  if (other === undefined) writeFileSync(real, bytes);
  else {
    rmSync(real, { force: true });
    linkSync(other, real);
  }
  chmodSync(real, mode);
  return { put_back: true };
}

/** The server replaced the file: its other name still leads to the bytes that were there. */
function otherName(path, inode, bytes) {
  if (existsSync(path) && inodeOf(at(path)) === inode) return undefined;
  return readdirSync(root, { recursive: true })
    .map((name) => join(root, name))
    .find((name) => at(name)?.isFile() && inodeOf(at(name)) === inode && readFileSync(name).equals(bytes));
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
    inputSchema: input({ text: TEXT, base64: TEXT, mode: { type: "integer" }, hard_link: TEXT }),
    work: ({ path, ...was }) => putBack(path, was),
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

/** A tool server that says success and does what its name says: the thing, nothing, something else, or the thing later. */
import { fromJsonSchema, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const notes = new Map();
let late = [];
const shown = (value) => ({
  content: [{ type: "text", text: JSON.stringify(value) }],
  structuredContent: value,
});
const inputSchema = fromJsonSchema({
  type: "object",
  properties: { id: { type: "string" }, text: { type: "string" } },
  required: ["id"],
});
const said = ({ id }) => ({ id, written: true });
const TOOLS = {
  "note.get": ({ id }) => {
    late = late.filter((one) => {
      one.reads -= 1;
      if (one.reads > 0) return true;
      notes.set(one.id, one.text);
      return false;
    });
    if (!notes.has(id)) throw new Error(`no note ${id}`);
    return { id, text: notes.get(id) };
  },
  "note.crash": () => process.exit(1),
  "note.write": (args) => {
    notes.set(args.id, args.text);
    return said(args);
  },
  "note.pretend": (args) => said(args),
  "note.other": (args) => {
    notes.set(args.id, `not ${args.text}`);
    return said(args);
  },
  "note.later": (args) => {
    late.push({ ...args, reads: 3 });
    return said(args);
  },
  "note.drop": (args) => {
    notes.delete(args.id);
    return said(args);
  },
  "note.keep": (args) => said(args),
};
for (const other of ["note.blind", "note.far", "note.plain"]) TOOLS[other] = TOOLS["note.write"];

serveStdio(() => {
  const server = new McpServer({ name: "notes", version: "1.0.0" });
  for (const [name, work] of Object.entries(TOOLS))
    server.registerTool(name, { description: name, inputSchema }, async (args) => shown(work(args)));
  return server;
});

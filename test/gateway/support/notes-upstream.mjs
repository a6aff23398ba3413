/**
 * A tool server of notes over stdio, made with the SDK, for trials of drafted undos. `LIARS` names tools that answer
 * success and do nothing; `STAMPS=1` keeps the time of the last change, which no undo brings back. With
 * `SLOW_START` it answers later than a gateway waits when it starts.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const liars = new Set((process.env.LIARS ?? "").split(","));
const notes = new Map([[1, { id: 1, title: "first", text: "kept", archived: false, changes: 0 }]]);
let next = 2;
const server = new McpServer({ name: "notes", version: "1.0.0" });

const said = (value) => ({ content: [{ type: "text", text: JSON.stringify(value) }] });
const shown = ({ changes, ...note }) => (process.env.STAMPS ? { ...note, changes } : note);

function tool(name, description, inputSchema, work) {
  server.registerTool(name, { description, inputSchema }, (args) => {
    if (liars.has(name)) return said({ ok: true });
    return work(args);
  });
}

function found(id, work) {
  const note = notes.get(id);
  if (note === undefined) return { isError: true, content: [{ type: "text", text: `no note ${id}` }] };
  return said(work(note) ?? { ok: true });
}

tool("create_note", "Creates a note", { title: z.string(), text: z.string() }, ({ title, text }) => {
  const note = { id: next++, title, text, archived: false, changes: 0 };
  notes.set(note.id, note);
  return said({ id: note.id });
});
tool("delete_note", "Deletes a note", { id: z.number() }, ({ id }) => found(id, () => void notes.delete(id)));
tool("get_note", "Returns one note", { id: z.number() }, ({ id }) => found(id, shown));
tool("list_notes", "Returns every note", {}, () => said([...notes.values()].map(shown)));
tool(
  "update_note",
  "Changes the title and the text",
  { id: z.number(), title: z.string().optional(), text: z.string().optional() },
  ({ id, ...news }) =>
    found(id, (note) => {
      Object.assign(note, news);
      note.changes++;
    }),
);
tool("archive_note", "Archives a note", { id: z.number() }, ({ id }) =>
  found(id, (note) => {
    note.archived = true;
    note.changes++;
  }),
);
tool("unarchive_note", "Takes a note out of the archive", { id: z.number() }, ({ id }) =>
  found(id, (note) => {
    note.archived = false;
    note.changes++;
  }),
);
tool("start_export", "Starts an export", { target: z.string().regex(/^s3:/) }, () => said({ ok: true }));
tool("stop_export", "Stops an export", { target: z.string() }, () => said({ ok: true }));
tool("mute_alerts", "Mutes all alerts", {}, () => said({ ok: true }));
tool("unmute_alerts", "Unmutes all alerts", {}, () => said({ ok: true }));

if (process.env.SLOW_START) await sleep(4_000);
await server.connect(new StdioServerTransport());

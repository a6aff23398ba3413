/** A directory of documents with the commands that read and undo them, so that a test can check the restored state. */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { tempDir } from "../support/tmp.ts";

export const MANIFESTS = `
- {tool: doc.get, effect: read, permission: p}
- tool: doc.put
  effect: reversible
  permission: p
  card: {title: "Put {$args.id}"}
  before: {tool: doc.get, args: {id: $args.id}, absent: {exists: false}, ignore: [$before.mtime]}
  compensation:
    tool: doc.put
    args: {id: $args.id, text: $before.text}
    kind: inverse
    when_absent: {tool: doc.drop, args: {id: $args.id}}
  verification: {tool: doc.get, args: {id: $args.id}, expect: {text: $before.text}, retries: 0}
- tool: doc.plain
  effect: reversible
  permission: p
  before: {tool: doc.get, args: {id: $args.id}, absent: {exists: false}, required: false}
  compensation: {tool: doc.put, args: {id: $args.id, text: $before.text}, kind: inverse}
- tool: doc.small
  effect: reversible
  permission: p
  before: {tool: doc.get, args: {id: $args.id}, max_bytes: 10}
  compensation: {tool: doc.put, args: {id: $args.id, text: $before.text}}
- {tool: far.get, effect: read, permission: far}
- tool: far.put
  effect: reversible
  permission: p
  before: {tool: far.get, args: {id: $args.id}}
  compensation: {tool: far.put, args: {text: $before.text}}
`;

const READ = `
import { existsSync, readFileSync, statSync } from "node:fs";
let text = "";
process.stdin.on("data", (part) => { text += part; }).on("end", () => {
  const { arguments: { id } } = JSON.parse(text);
  const path = new URL(id + ".txt", import.meta.url);
  console.log(JSON.stringify(existsSync(path)
    ? { exists: true, text: readFileSync(path, "utf8"), mtime: statSync(path).mtimeMs }
    : { exists: false, text: null, mtime: Date.now() }));
});`;
const UNDO = `
import { appendFileSync, existsSync, rmSync, writeFileSync } from "node:fs";
let text = "";
process.stdin.on("data", (part) => { text += part; }).on("end", () => {
  const { tool, args } = JSON.parse(text);
  const path = new URL(args.id + ".txt", import.meta.url);
  if (tool === "latch.free") {
    // It holds its caller until it is told to continue, and then fails.
    appendFileSync(path, "tried");
    const told = new URL(args.id + "-go.txt", import.meta.url);
    setInterval(() => { if (existsSync(told)) process.exit(1); }, 10);
  } else if (tool === "doc.drop") rmSync(path);
  else writeFileSync(path, args.text);
});`;

export interface Docs {
  folder: string;
  compensator: string;
  reader: string;
  /** The document's text; undefined where there is none. */
  text(id: string): string | undefined;
  write(id: string, text: string | undefined): void;
  /** What doc.get shows, as an agent reads it. */
  show(id: string): { exists: boolean; text: string | null; mtime: number };
}

export function docs(): Docs {
  const folder = tempDir("docs");
  writeFileSync(join(folder, "read.mjs"), READ);
  writeFileSync(join(folder, "undo.mjs"), UNDO);
  const at = (id: string) => join(folder, `${id}.txt`);
  const text = (id: string) => (existsSync(at(id)) ? readFileSync(at(id), "utf8") : undefined);
  let mtime = 0;
  return {
    folder,
    compensator: `${process.execPath} ${join(folder, "undo.mjs")}`,
    reader: `${process.execPath} ${join(folder, "read.mjs")}`,
    text,
    write(id, next) {
      if (next === undefined) rmSync(at(id), { force: true });
      else writeFileSync(at(id), next);
    },
    show: (id) => ({ exists: text(id) !== undefined, text: text(id) ?? null, mtime: mtime++ }),
  };
}

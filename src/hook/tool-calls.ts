/**
 * Maps a client's own tools to the tools of the hook's manifests: the kind of call, its arguments and the files it
 * changes.
 */
import { isAbsolute, join, relative, resolve } from "node:path";
import { cutText } from "../kernel/text/truncate.ts";
import { type HookClient, type HookEvent, isRecord, nonEmptyString } from "./clients/clients.ts";
import { isStartedOnly, unknownFields } from "./clients/tool-fields.ts";
import { toolKind } from "./clients/tool-kinds.ts";
import { DECIDING_TOOL, namesSecrets, type PathGuard } from "./path-guard.ts";
import { powershellViolations } from "./powershell.ts";
import { worstClass } from "./shell/classes.ts";
import { type ClassifiedCommand, classifyCommand } from "./shell/classify.ts";
import { changedTest, decisiveFiles } from "./shell/rules/decisive-files.ts";
import { isOutside } from "./shell/rules/outside.ts";
import { type CommandLocation, expandHome } from "./workspace/expand-home.ts";
import { hexHash } from "./workspace/hash.ts";
import { missingDirectories } from "./workspace/missing-directories.ts";
import type { OwnEdits } from "./workspace/own-edits.ts";

export interface PackCall {
  tool: string;
  args: Record<string, unknown>;
  reason: string;
  /** Files to record before the call, so that they can be restored. */
  files: string[];
  touches: string[];
  command: { cwd: string; began_ms: number } | null;
  /** The next event reports the start of the command and not its end. */
  started_only: boolean;
  /** Files that the call may change, and that decide what later commands run. */
  writes: string[];
}

/** Home directory of the user, and the decisive files that the session changed before this call. */
export interface CallCircumstances {
  home: string;
  changed: readonly string[];
  /** Files that the session edited before this call. */
  edits?: OwnEdits;
  /** Directory in which the session began. */
  began?: string;
}

/** Tools that show the content of the files that they find. */
const SEARCHES = /^(?:Grep|grep_search|search_file_content|SemanticSearch|read_many_files)$/;
const LISTS = /^[Gg]lob$/;
const MCP = /^(?:mcp__|mcp_|MCP:)/;

export const isMcpTool = (tool: string): boolean => MCP.test(tool);
/** Length limit of an argument. A longer text is sent as its hash, so that an approval covers only this text. */
const MAX_TEXT = 200_000;
const REASON_CHARS = 1_000;

export function packCall(
  client: HookClient,
  event: HookEvent,
  guard: PathGuard,
  { home, changed, edits = new Map(), began = event.cwd }: CallCircumstances,
): PackCall {
  const { tool, input } = event;
  // Codex can type into the terminal of an earlier command, and has no hook event for that.
  const around = { home, changed: changedTest(changed), edits, began, terminal: client === "codex" };
  const said = nonEmptyString(input["description"]) ?? nonEmptyString(input["explanation"]);
  const {
    ran_in,
    started_only = false,
    writes = [],
    ...call
  } = understood(client, event, read(event, guard, around), guard);
  const touches = [...new Set(call.touches)];
  return {
    ...call,
    touches,
    started_only,
    writes: decisiveFiles([...writes, ...call.files]),
    command: ran_in === undefined ? null : { cwd: ran_in, began_ms: Date.now() },
    args: {
      client,
      ...call.args,
      ...(touches.length === 0 ? {} : { touches }),
    },
    reason: cutText(said ?? `${client}: ${tool}`, REASON_CHARS),
  };
}

type Read = Omit<PackCall, "reason" | "command" | "started_only" | "writes"> & {
  ran_in?: string;
  started_only?: boolean;
  writes?: string[];
};
type Around = Omit<CommandLocation, "cwd">;

/**
 * Routes calls with unknown fields to approval. The client's behavior is then unknown, so the request contains the
 * complete input.
 */
function understood(client: HookClient, { tool, input, cwd }: HookEvent, call: Read, guard: PathGuard): Read {
  const unknown = unknownFields(client, tool, input);
  if (unknown.length === 0) return call;
  const strange = Object.fromEntries(unknown.map((name) => [name, input[name]]));
  return {
    ...call,
    tool: call.tool.startsWith("code.shell_") ? shellUnknown(call.tool) : "code.other",
    args: { name: tool, ...call.args, input: shown(input) },
    touches: [...call.touches, ...named(strange, guard, cwd)],
  };
}

const shellUnknown = (tool: string): string =>
  tool === "code.shell_destructive" ? tool : "code.shell_unknown";

function read(event: HookEvent, guard: PathGuard, around: Around): Read {
  const { tool, input } = event;
  const kind = isMcpTool(tool) ? "mcp" : toolKind(tool);
  switch (kind) {
    case "shell":
      return shellCall(event, guard, around);
    case "edit":
      return fileCall("code.edit", pathsOf(input), event, { guard, around });
    case "patch":
      return fileCall(
        "code.edit",
        ["command", "input"].flatMap((name) => patchedPaths(nonEmptyString(input[name]) ?? "")),
        event,
        { guard, around },
      );
    case "read":
      return lookCall(event, guard, around.home);
    case "web":
    case "client":
      return {
        tool: `code.${kind}`,
        args: { name: tool, input: shown(input) },
        files: [],
        touches: [...named(input, guard), ...named(fileFields(input), guard, event.cwd)],
      };
    case "mcp": {
      const touches = DECIDING_TOOL.test(tool)
        ? ["it is a deciding svc tool"]
        : named(input, guard, event.cwd);
      return { tool: "code.mcp", args: { name: tool, input: shown(input) }, files: [], touches };
    }
    default:
      return {
        tool: "code.other",
        args: { name: tool, input: shown(input) },
        files: [],
        touches: named(input, guard, event.cwd),
      };
  }
}

/** Fields that name files although the tool changes none, such as attachments. */
const fileFields = (input: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(input).filter(([name]) => /path|file|attach|dir|image/i.test(name)));

const PATTERN_FIELDS = ["glob", "glob_pattern", "include", "include_pattern", "paths"];

/** Patterns between spaces and commas, except those inside braces. */
const splitPatterns = (patterns: string): string[] =>
  patterns
    .split(/([{}])/)
    .map((part, at, all) => (all[at + 1] === "}" ? part : part.replace(/[\s,]+/g, "\0")))
    .join("")
    .split("\0");

function lookCall({ tool, input, cwd }: HookEvent, guard: PathGuard, home: string): Read {
  const absolute = (path: string, from: string) => resolve(from, expandHome(path, home, cwd) ?? path);
  const given = pathsOf(input).map((path) => absolute(path, cwd));
  const folders = given.length === 0 ? [cwd] : given;
  const patterns = [...PATTERN_FIELDS, ...(LISTS.test(tool) ? ["pattern"] : [])]
    .flatMap((name) => textsIn(input[name]))
    .flatMap((pattern) => splitPatterns(pattern).filter((one) => /^[^!]/.test(one)));
  const found = patterns.flatMap((pattern) => folders.map((folder) => absolute(pattern, folder)));
  const touches = [...pathsOf(input), ...given, ...found].flatMap((path) => guard.path(path, cwd) ?? []);
  touches.push(...patterns.filter(namesSecrets).map((pattern) => `${pattern} matches credential files`));
  const args = { name: tool, files: shortNames(given, cwd), input: shown(input) };
  if (!SEARCHES.test(tool)) return { tool: "code.read", args, files: [], touches };
  // A search through the complete home directory would show every key in it.
  if (folders.some((path) => home === path || home.startsWith(join(path, "/"))))
    touches.push("it searches your entire home directory");
  // A pattern that matches everything also finds files that git ignores.
  const all = input["no_ignore"] === true || patterns.some((pattern) => /(?:^|\/)\*+$/.test(pattern));
  const looked = [...folders, ...found.map((path) => path.replace(/\/[^/*?[{]*[*?[{].*$/, "/"))];
  const covers = looked.some((folder) => guard.holds(folder, cwd, all));
  return { tool: covers ? "code.other" : "code.read", args, files: [], touches };
}

/** Every field from which a client may take the command or its directory. */
const COMMANDS = ["command", "cmd"];
const FOLDERS = ["working_directory", "cwd", "workdir", "dir_path", "directory"];

function shellCall({ tool, input, cwd }: HookEvent, guard: PathGuard, around: Around): Read {
  const commands = COMMANDS.flatMap((name) => commandText(input[name]) ?? []);
  if (commands.length === 0)
    return {
      tool: "code.shell_unknown",
      args: { input: shown(input) },
      files: [],
      touches: named(input, guard, cwd),
    };
  const folders = FOLDERS.flatMap((name) => nonEmptyString(input[name]) ?? []).map((name) =>
    resolve(cwd, name),
  );
  const places = [...new Set(folders.length === 0 ? [cwd] : folders)];
  const judged = commands.flatMap((command) =>
    places.map((place) => judgeIn(tool, command, { ...around, cwd: place }, guard)),
  );
  // With several commands it is unknown which one the client runs.
  const kinds = judged.map((one) => one.class);
  const kind = worstClass(judged.length > 1 ? [...kinds, "unknown"] : kinds);
  const [where] = places;
  return {
    tool: `code.shell_${kind === "format" ? "write" : kind}`,
    args: { command: commands[0]!, cwd: where!, ...(judged.length > 1 ? { input: shown(input) } : {}) },
    files: [],
    touches: [
      ...judged.flatMap((one) => one.touches),
      ...folders.flatMap((one) => guard.path(one, cwd) ?? []),
    ],
    writes: judged.flatMap((one) => one.writes),
    ...(kind === "read" ? {} : { ran_in: where! }),
    started_only: isStartedOnly(input) || tool === "Monitor" || judged.some((one) => one.background),
  };
}

function commandText(given: unknown): string | null {
  return Array.isArray(given) ? given.map(String).map(quoted).join(" ") : nonEmptyString(given);
}

function judgeIn(tool: string, command: string, place: CommandLocation, guard: PathGuard): ClassifiedCommand {
  // Other shells of these clients on Windows are PowerShell.
  if (tool === "PowerShell" || (process.platform === "win32" && tool !== "Bash"))
    return {
      class: "unknown",
      touches: powershellViolations(command, place, guard),
      background: false,
      writes: [],
    };
  return classifyCommand(command, place, guard);
}

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

function fileCall(
  tool: string,
  paths: readonly string[],
  { tool: name, input, cwd }: HookEvent,
  { guard, around }: { guard: PathGuard; around: Around },
): Read {
  const edited = paths.flatMap((path) => editedPaths(path, cwd, around.home));
  // The undo also removes directories that the edit creates.
  const files = [...new Set(edited.flatMap((path) => [...missingDirectories(path), path]))].sort();
  const args = { name, paths: files, files: shortNames(edited, cwd), input: shown(input) };
  // An edit without a file name cannot be undone, so it needs approval.
  if (files.length === 0) return { tool: "code.other", args, files, touches: named(input, guard) };
  const unasked = edited.some(
    (path) => guard.runsUnasked(path, cwd) || (isOutside(path, around.began ?? cwd) && !isOfClient(path)),
  );
  return {
    tool: unasked ? "code.edit_unasked" : tool,
    args,
    files,
    touches: edited.flatMap((path) => guard.path(path, cwd) ?? []),
  };
}

/** Clients write plans and notes into their own directories. Everything else there runs unasked. */
const isOfClient = (path: string): boolean => /\/\.(?:claude|codex|gemini|cursor)\//.test(path);

/** Every file that a client may edit under this name: some read `~` as the home directory. */
function editedPaths(path: string, cwd: string, home: string): string[] {
  const literal = isAbsolute(path) && !path.endsWith("/") ? path : resolve(cwd, path);
  const expanded = expandHome(path, home, cwd);
  return expanded === null || expanded === path ? [literal] : [resolve(cwd, expanded), literal];
}

/** File names as a person would say them: relative to the directory, if they are below it. */
function shortNames(paths: readonly string[], cwd: string): string {
  const short = (path: string) => {
    const name = relative(cwd, path);
    return name === "" || name.startsWith("..") || isAbsolute(name) ? path : name;
  };
  return [...new Set(paths.map(short))].join(", ");
}

function pathsOf(input: Record<string, unknown>): string[] {
  const named = PATH_FIELDS.flatMap((name) => textsIn(input[name]));
  // Some clients take blanks off the ends of a path.
  return [...new Set(named.flatMap((path) => [path, path.trim()]))].filter((path) => path !== "");
}

const PATH_FIELDS = [
  "file_path",
  "path",
  "notebook_path",
  "target_file",
  "absolute_path",
  "dir_path",
  "filePath",
  "target_directory",
  "target_directories",
];

const PATCH_HEADER = /^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+)$/s;
/** The client treats U+0085 as blank and U+FEFF as part of a name. `trim` does the opposite. */
const BLANK = /^\p{White_Space}$/u;

/**
 * File names in Codex's patch format, which allows indented headers and ends lines only at a line feed. Works line by
 * line: one pattern over the complete text could take longer than the client waits if it contains many blank lines.
 */
function patchedPaths(patch: string): string[] {
  // The client trims every header except `Move to`, so both readings of a name with trailing blanks are used.
  return patch
    .split("\n")
    .filter((line) => line.includes("*** "))
    .flatMap((line) => [withoutBlankEnds(line), line.replace(/\r$/, "")])
    .flatMap((header) => PATCH_HEADER.exec(header)?.[1] ?? []);
}

function withoutBlankEnds(line: string): string {
  let [from, to] = [0, line.length];
  while (from < to && BLANK.test(line[from]!)) from++;
  while (from < to && BLANK.test(line[to - 1]!)) to--;
  return line.slice(from, to);
}

/** Protected things that the arguments name. With `cwd`, for an unknown tool, each one-word argument may be a path. */
function named(input: Record<string, unknown>, guard: PathGuard, cwd?: string): string[] {
  const path = (one: string) => (cwd === undefined || /\s/.test(one) ? null : guard.path(one, cwd));
  return [...new Set(textsIn(input).flatMap((one) => guard.text(one) ?? path(one) ?? []))];
}

function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}

/** Fields to ignore: if they change between two attempts, the approval of the first must still cover the second. */
const PASSING = new Set(["description", "explanation", "timeout"]);

function shown(input: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(input).flatMap(([name, value]) => (PASSING.has(name) ? [] : [[name, short(value)]])),
  );
}

function short(value: unknown): unknown {
  if (typeof value === "string")
    return value.length > MAX_TEXT ? `[${value.length} characters, sha256 ${hexHash(value)}]` : value;
  if (Array.isArray(value)) return value.map(short);
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, short(inner)]));
}

/** From a client's own tools to the tools of the pack: what the call is, its arguments, and the files it changes. */
import { isAbsolute, join, resolve } from "node:path";
import { cutText } from "../kernel/cut.ts";
import { type HookClient, type HookEvent, isRecord, textOrNull } from "./clients.ts";
import { isStartedOnly, unknownFields } from "./fields.ts";
import { foldersToMake } from "./files.ts";
import { DECIDING_TOOL, type Guard, namesSecrets } from "./guard.ts";
import { hexHash } from "./hash.ts";
import { type Place, withHome } from "./homes.ts";
import { powershellTouches } from "./powershell.ts";
import { worst } from "./shell/classes.ts";
import { type Judged, judgeCommand } from "./shell/classify.ts";

interface PackCall {
  tool: string;
  args: Record<string, unknown>;
  reason: string;
  /** Files whose bytes are kept, so that they can be put back. */
  files: string[];
  touches: string[];
  command: { cwd: string; began_ms: number } | null;
  /** It is only started: the event after it does not mean its end. */
  started_only: boolean;
}

type Kind = "shell" | "edit" | "patch" | "read" | "web" | "client";

const kinds = (kind: Kind, names: string): [string, Kind][] =>
  names
    .trim()
    .split(/\s+/)
    .map((name) => [name, kind]);

/** The tools of all clients together: none gives a name another meaning. */
const KINDS: ReadonlyMap<string, Kind> = new Map([
  ...kinds("shell", "Bash PowerShell Shell run_shell_command shell local_shell exec_command"),
  ...kinds("edit", "Edit Write MultiEdit NotebookEdit Delete StrReplace write_file replace"),
  ...kinds("patch", "apply_patch"),
  ...kinds(
    "read",
    `
    Read Glob Grep LS NotebookRead LSP SemanticSearch read_file read_many_files list_directory glob grep_search
    search_file_content view_image`,
  ),
  ...kinds("web", "WebFetch WebSearch web_fetch google_web_search web_search"),
  ...kinds(
    "client",
    `
    TodoWrite TodoRead Task Agent TaskCreate TaskUpdate TaskGet TaskList TaskOutput TaskStop BashOutput KillShell KillBash
    AskUserQuestion ExitPlanMode EnterPlanMode Skill SlashCommand ToolSearch ListMcpResourcesTool ReadMcpResourceTool
    write_todos ask_user update_plan spawn_agent wait_agent save_memory activate_skill`,
  ),
]);

/** They show what stands in the files they find. */
const SEARCHES = /^(?:Grep|grep_search|search_file_content|SemanticSearch|read_many_files)$/;
const LISTS = /^[Gg]lob$/;
const MCP = /^(?:mcp__|mcp_|MCP:)/;
/** Arguments are sent with the call; for a longer text stands its hash, so that an approval covers no other. */
const MOST_TEXT = 200_000;
const REASON_CHARS = 1_000;

export function packCall(client: HookClient, event: HookEvent, guard: Guard, home: string): PackCall {
  const { tool, input } = event;
  const said = textOrNull(input["description"]) ?? textOrNull(input["explanation"]);
  const {
    ran_in,
    started_only = false,
    ...call
  } = understood(client, event, read(event, guard, home), guard);
  const touches = [...new Set(call.touches)];
  return {
    ...call,
    touches,
    started_only,
    command: ran_in === undefined ? null : { cwd: ran_in, began_ms: Date.now() },
    args: {
      client,
      ...call.args,
      ...(touches.length === 0 ? {} : { touches }),
    },
    reason: cutText(said ?? `${client}: ${tool}`, REASON_CHARS),
  };
}

type Read = Omit<PackCall, "reason" | "command" | "started_only"> & {
  ran_in?: string;
  started_only?: boolean;
};

/** With a field that the tool does not have, what the client does is not known: a person looks at the whole input. */
function understood(client: HookClient, { tool, input, cwd }: HookEvent, call: Read, guard: Guard): Read {
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

function read(event: HookEvent, guard: Guard, home: string): Read {
  const { tool, input } = event;
  const kind = MCP.test(tool) ? "mcp" : KINDS.get(tool);
  switch (kind) {
    case "shell":
      return shellCall(event, guard, home);
    case "edit":
      return fileCall("code.edit", pathsOf(input), event, guard);
    case "patch":
      return fileCall(
        "code.edit",
        ["command", "input"].flatMap((name) => patchedPaths(textOrNull(input[name]) ?? "")),
        event,
        guard,
      );
    case "read":
      return lookCall(event, guard, home);
    case "web":
    case "client":
      return {
        tool: `code.${kind}`,
        args: { name: tool, input: shown(input) },
        files: [],
        touches: named(input, guard),
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

const PATTERN_FIELDS = ["glob", "glob_pattern", "include", "include_pattern", "paths"];

function lookCall({ tool, input, cwd }: HookEvent, guard: Guard, home: string): Read {
  const absolute = (path: string, from: string) => resolve(from, withHome(path, home, cwd) ?? path);
  const given = pathsOf(input).map((path) => absolute(path, cwd));
  const folders = given.length === 0 ? [cwd] : given;
  const patterns = [...PATTERN_FIELDS, ...(LISTS.test(tool) ? ["pattern"] : [])]
    .flatMap((name) => textsIn(input[name]))
    .flatMap((pattern) => pattern.split(/[\s,]+(?![^{]*\})/).filter((one) => /^[^!]/.test(one)));
  const found = patterns.flatMap((pattern) => folders.map((folder) => absolute(pattern, folder)));
  const touches = [...pathsOf(input), ...given, ...found].flatMap((path) => guard.path(path, cwd) ?? []);
  touches.push(...patterns.filter(namesSecrets).map((pattern) => `${pattern} stands for credentials`));
  const args = { name: tool, input: shown(input) };
  if (!SEARCHES.test(tool)) return { tool: "code.read", args, files: [], touches };
  // Looking through all of home would show every key there.
  if (folders.some((path) => home === path || home.startsWith(join(path, "/"))))
    touches.push("it searches all of your home folder");
  // A pattern for everything also finds what git ignores.
  const all = input["no_ignore"] === true || patterns.some((pattern) => /(?:^|\/)\*+$/.test(pattern));
  const looked = [...folders, ...found.map((path) => path.replace(/\/[^/]*[*?[{].*$/, "/"))];
  const covers = looked.some((folder) => guard.holds(folder, cwd, all));
  return { tool: covers ? "code.other" : "code.read", args, files: [], touches };
}

/** Every field that a client may take the command or its folder from. */
const COMMANDS = ["command", "cmd"];
const FOLDERS = ["working_directory", "cwd", "workdir", "dir_path", "directory"];

function shellCall({ tool, input, cwd }: HookEvent, guard: Guard, home: string): Read {
  const commands = COMMANDS.flatMap((name) => commandText(input[name]) ?? []);
  if (commands.length === 0)
    return {
      tool: "code.shell_unknown",
      args: { input: shown(input) },
      files: [],
      touches: named(input, guard, cwd),
    };
  const folders = FOLDERS.flatMap((name) => textOrNull(input[name]) ?? []).map((name) => resolve(cwd, name));
  const places = [...new Set(folders.length === 0 ? [cwd] : folders)];
  const judged = commands.flatMap((command) =>
    places.map((place) => judgeIn(tool, command, { cwd: place, home }, guard)),
  );
  // Which of several a client takes is not known.
  const kinds = judged.map((one) => one.class);
  const kind = worst(judged.length > 1 ? [...kinds, "unknown"] : kinds);
  const [where] = places;
  return {
    tool: `code.shell_${kind}`,
    args: { command: commands[0]!, cwd: where!, ...(judged.length > 1 ? { input: shown(input) } : {}) },
    files: [],
    touches: [
      ...judged.flatMap((one) => one.touches),
      ...folders.flatMap((one) => guard.path(one, cwd) ?? []),
    ],
    ...(kind === "read" ? {} : { ran_in: where! }),
    started_only: isStartedOnly(input) || judged.some((one) => one.background),
  };
}

function commandText(given: unknown): string | null {
  return Array.isArray(given) ? given.map(String).map(quoted).join(" ") : textOrNull(given);
}

function judgeIn(tool: string, command: string, place: Place, guard: Guard): Judged {
  // On Windows the clients' other shells are PowerShell.
  if (tool === "PowerShell" || (process.platform === "win32" && tool !== "Bash"))
    return { class: "unknown", touches: powershellTouches(command, place, guard), background: false };
  return judgeCommand(command, place, guard);
}

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

function fileCall(
  tool: string,
  paths: readonly string[],
  { tool: name, input, cwd }: HookEvent,
  guard: Guard,
): Read {
  const edited = paths.map((path) => (isAbsolute(path) && !path.endsWith("/") ? path : resolve(cwd, path)));
  // Folders that the edit makes are removed with it.
  const files = [...new Set(edited.flatMap((path) => [...foldersToMake(path), path]))].sort();
  const args = { name, paths: files, input: shown(input) };
  // An edit that names no file cannot be put back, so a person looks at it.
  if (files.length === 0) return { tool: "code.other", args, files, touches: named(input, guard) };
  const unasked = edited.some((path) => guard.runsUnasked(path, cwd));
  return {
    tool: unasked ? "code.edit_unasked" : tool,
    args,
    files,
    touches: edited.flatMap((path) => guard.path(path, cwd) ?? []),
  };
}

function pathsOf(input: Record<string, unknown>): string[] {
  return PATH_FIELDS.flatMap((name) => textsIn(input[name])).filter((path) => path !== "");
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
/** The client takes U+0085 for blank and U+FEFF for part of a name; `trim` has it the other way round. */
const BLANK = /^\p{White_Space}$/u;

/**
 * The files of Codex's patch form, which takes indented headers as well, and ends a line at nothing but its feed. Line by
 * line: a pattern over the whole would look at a run of blank lines anew from each, past what the client waits.
 */
function patchedPaths(patch: string): string[] {
  // The client trims every header but `Move to`, so a name that ends in blanks is taken both ways.
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

/** With `cwd`, for a tool of which nothing is known: each argument that is one word may be a path. */
function named(input: Record<string, unknown>, guard: Guard, cwd?: string): string[] {
  const path = (one: string) => (cwd === undefined || /\s/.test(one) ? null : guard.path(one, cwd));
  return [...new Set(textsIn(input).flatMap((one) => guard.text(one) ?? path(one) ?? []))];
}

function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}

/** Fields that change between two tries of one call would make an approval of the first worthless for the second. */
const PASSING = new Set(["description", "explanation", "timeout"]);

function shown(input: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(input).flatMap(([name, value]) => (PASSING.has(name) ? [] : [[name, short(value)]])),
  );
}

function short(value: unknown): unknown {
  if (typeof value === "string")
    return value.length > MOST_TEXT ? `[${value.length} characters, sha256 ${hexHash(value)}]` : value;
  if (Array.isArray(value)) return value.map(short);
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, short(inner)]));
}

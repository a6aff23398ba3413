/**
 * Hook interfaces of coding agents, as their vendors document them: event format, answer format and configuration file.
 * The hook allows a call by staying silent, so the client still asks its user as usual.
 */
import { INPUT_REF } from "../../kernel/input-ref.ts";
import { hexHash } from "../workspace/hash.ts";

export const HOOK_CLIENTS = ["claude-code", "cursor", "codex", "gemini"] as const;
export type HookClient = (typeof HOOK_CLIENTS)[number];

/**
 * `ended`: the agent's turn or session is over, and none of its calls is in progress. `prompt`: the user wrote something.
 */
type Moment = "before" | "after" | "failed" | "ended" | "prompt";

/** One event in a common form for all clients. */
export interface HookEvent {
  moment: Moment;
  session: string;
  /** Id of the call, identical in all its events. */
  call: string;
  tool: string;
  input: Record<string, unknown>;
  cwd: string;
  /** The client's transcript of the session, or of the subagent. */
  transcript: string | null;
  /** The subagent that makes the call. Its turn may continue after the session's own turn ended. */
  agent: string | null;
  /** For `ended`: whether the session is over and not just a turn. */
  session_over: boolean;
  error: string | null;
  /** The call was cut short, so its effect is unknown. */
  interrupted: boolean;
  /** The client's report of the result, unparsed. */
  response: unknown;
  /** The client reports that its user or another hook refused the call. */
  declined: boolean;
  /** For `prompt`: what the user wrote. */
  prompt: string | null;
}

export interface HookAnswer {
  out: string;
  err: string;
  code: number;
}

interface ClientFiles {
  /** Hooks file of a project. The user's file has the same path under the home directory. */
  hooks: string;
  /** Variable that moves the user's directory of settings, and the file's path below it. */
  moved: { variable: string; below: string } | null;
  /** Hooks file of the machine, which users cannot switch off. */
  managed: Readonly<Partial<Record<NodeJS.Platform, string>>>;
  /** Files that can disable this client's hooks, relative to a project or the home directory. */
  settings: readonly string[];
}

export const CLIENT_FILES: Record<HookClient, ClientFiles> = {
  "claude-code": {
    hooks: ".claude/settings.json",
    moved: { variable: "CLAUDE_CONFIG_DIR", below: "settings.json" },
    managed: {
      linux: "/etc/claude-code/managed-settings.json",
      darwin: "/Library/Application Support/ClaudeCode/managed-settings.json",
    },
    settings: [".claude/settings.json", ".claude/settings.local.json"],
  },
  cursor: {
    hooks: ".cursor/hooks.json",
    moved: null,
    managed: { linux: "/etc/cursor/hooks.json", darwin: "/Library/Application Support/Cursor/hooks.json" },
    settings: [".cursor/hooks.json"],
  },
  codex: {
    hooks: ".codex/hooks.json",
    moved: { variable: "CODEX_HOME", below: "hooks.json" },
    managed: { linux: "/etc/codex/hooks.json", darwin: "/etc/codex/hooks.json" },
    settings: [".codex/hooks.json", ".codex/config.toml"],
  },
  gemini: {
    hooks: ".gemini/settings.json",
    moved: { variable: "GEMINI_CLI_HOME", below: ".gemini/settings.json" },
    managed: {
      linux: "/etc/gemini-cli/settings.json",
      darwin: "/Library/Application Support/GeminiCli/settings.json",
    },
    settings: [".gemini/settings.json"],
  },
};

const MOMENTS: Record<HookClient, Record<string, Moment>> = {
  "claude-code": {
    PreToolUse: "before",
    PostToolUse: "after",
    PostToolUseFailure: "failed",
    Stop: "ended",
    SessionEnd: "ended",
    UserPromptSubmit: "prompt",
  },
  cursor: {
    preToolUse: "before",
    postToolUse: "after",
    postToolUseFailure: "failed",
    stop: "ended",
    sessionEnd: "ended",
    beforeSubmitPrompt: "prompt",
  },
  codex: {
    PreToolUse: "before",
    PostToolUse: "after",
    Stop: "ended",
    SessionEnd: "ended",
    UserPromptSubmit: "prompt",
  },
  gemini: {
    BeforeTool: "before",
    AfterTool: "after",
    AfterAgent: "ended",
    SessionEnd: "ended",
    BeforeAgent: "prompt",
  },
};

const eventsWhere = (client: HookClient, test: (moment: Moment) => boolean): string[] =>
  Object.entries(MOMENTS[client]).flatMap(([name, moment]) => (test(moment) ? [name] : []));

/** Events that govern calls, the one before a call first. */
export const eventsOf = (client: HookClient): string[] =>
  eventsWhere(client, (moment) => moment !== "prompt");

/** Events that carry what the user wrote. */
export const promptEventsOf = (client: HookClient): string[] =>
  eventsWhere(client, (moment) => moment === "prompt");

/** Parses an event. Null for events without a meaning here. An error text refuses the call. */
export function readEvent(client: HookClient, given: unknown): HookEvent | string | null {
  if (!isRecord(given)) return "the hook's input is not a JSON object";
  const name = given["hook_event_name"];
  if (typeof name !== "string") return "the hook's input names no event";
  const moment = MOMENTS[client][name];
  if (moment === undefined) return null;
  const session = nonEmptyString(given["session_id"]) ?? nonEmptyString(given["conversation_id"]);
  if (session === null) return "the hook's input names no session";
  const tool = nonEmptyString(given["tool_name"]);
  const isCall = moment !== "ended" && moment !== "prompt";
  if (tool === null && isCall) return "the hook's input names no tool";
  const input = inputOf(given["tool_input"]);
  if (input === null && isCall) return "the tool's input is not an object";
  const response = given["tool_response"] ?? given["tool_output"];
  const error = errorOf(given, response);
  return {
    moment: moment === "after" && error !== null ? "failed" : moment,
    session,
    call: nonEmptyString(given["tool_use_id"]) ?? callFingerprint(tool, input),
    tool: tool ?? "",
    input: input ?? {},
    cwd: nonEmptyString(given["cwd"]) ?? firstText(given["workspace_roots"]) ?? process.cwd(),
    transcript: nonEmptyString(given["transcript_path"]),
    agent: nonEmptyString(given["agent_id"]),
    session_over: /^sessionEnd$/i.test(name),
    error,
    response,
    interrupted: given["is_interrupt"] === true || given["failure_type"] === "timeout",
    declined: given["failure_type"] === "permission_denied",
    prompt: nonEmptyString(given["prompt"]),
  };
}

/** Some clients send the arguments as a JSON string. */
function inputOf(given: unknown): Record<string, unknown> | null {
  if (isRecord(given)) return given;
  if (given === undefined || given === null) return {};
  if (typeof given !== "string") return null;
  try {
    const parsed: unknown = JSON.parse(given);
    return isRecord(parsed) ? parsed : null;
  } catch {
    return { input: given };
  }
}

function errorOf(given: Record<string, unknown>, response: unknown): string | null {
  const said = given["error"] ?? given["error_message"];
  if (said !== undefined && said !== null) return typeof said === "string" ? said : JSON.stringify(said);
  // Gemini reports a failed tool by an error inside its response.
  if (!isRecord(response) || response["error"] === undefined || response["error"] === null) return null;
  return typeof response["error"] === "string" ? response["error"] : JSON.stringify(response["error"]);
}

const NOTHING: HookAnswer = { out: "", err: "", code: 0 };

/** No objection: the client continues as if there were no hook. */
export function passAnswer(client: HookClient, remark: string | null = null): HookAnswer {
  // With failClosed, Cursor treats an answer that is not JSON as a failure.
  if (client === "cursor") return { ...NOTHING, out: "{}" };
  return remark === null ? NOTHING : { ...NOTHING, out: JSON.stringify({ systemMessage: remark }) };
}

/**
 * The only refusal: exit code 2 with text on stderr and nothing on stdout. Clients make the call on many other answers,
 * such as a denial in JSON with another code.
 */
export const refuseAnswer = (reason: string): HookAnswer => ({ out: "", err: reason, code: 2 });

/** Builds a run id from the client's session id, limited to the characters of run ids. */
export function runOfSession(client: HookClient, session: string): string {
  return `${client}-${session.replace(/[^A-Za-z0-9._-]/g, "_")}`.slice(0, 128);
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function nonEmptyString(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

function firstText(list: unknown): string | null {
  return Array.isArray(list) ? nonEmptyString(list[0]) : null;
}

/** Call id for Gemini, which sends none. */
export function callFingerprint(tool: string | null, input: unknown): string {
  return `${INPUT_REF}${hexHash(JSON.stringify([tool, input])).slice(0, 32)}`;
}

/**
 * The hook interfaces of coding agents, each as its maker documents it: how an event comes in, how an answer goes
 * out, and where the hook is configured. An allow of ours is always silence: the client then asks its user as ever.
 */
import { hexHash } from "./hash.ts";

export const HOOK_CLIENTS = ["claude-code", "cursor", "codex", "gemini"] as const;
export type HookClient = (typeof HOOK_CLIENTS)[number];

/** `ended`: the agent's turn or session is over, so no call of it is under way any more. */
type Moment = "before" | "after" | "failed" | "ended";

/** One event of a client, whatever the client calls its parts. */
export interface HookEvent {
  moment: Moment;
  session: string;
  /** The same for all events of one call. */
  call: string;
  tool: string;
  input: Record<string, unknown>;
  cwd: string;
  /** The subagent that makes the call; its turn goes on when the session's own has ended. */
  agent: string | null;
  /** With `ended`: the whole session, not a turn alone. */
  session_over: boolean;
  error: string | null;
  /** The call was cut short: what it did until then is not known. */
  interrupted: boolean;
  /** What the client reports of the call's result, as it comes. */
  response: unknown;
  /** The client tells that its user, or another hook, did not let the call happen. */
  declined: boolean;
}

export interface HookAnswer {
  out: string;
  err: string;
  code: number;
}

interface ClientFiles {
  /** The project's file, and under which name the same lies in the user's home. */
  hooks: string;
  /** Files in which this client's hooks can be switched off, in a project and at home alike. */
  settings: readonly string[];
}

export const CLIENT_FILES: Record<HookClient, ClientFiles> = {
  "claude-code": {
    hooks: ".claude/settings.json",
    settings: [".claude/settings.json", ".claude/settings.local.json"],
  },
  cursor: { hooks: ".cursor/hooks.json", settings: [".cursor/hooks.json"] },
  codex: { hooks: ".codex/hooks.json", settings: [".codex/hooks.json", ".codex/config.toml"] },
  gemini: { hooks: ".gemini/settings.json", settings: [".gemini/settings.json"] },
};

const MOMENTS: Record<HookClient, Record<string, Moment>> = {
  "claude-code": {
    PreToolUse: "before",
    PostToolUse: "after",
    PostToolUseFailure: "failed",
    Stop: "ended",
    SessionEnd: "ended",
  },
  cursor: {
    preToolUse: "before",
    postToolUse: "after",
    postToolUseFailure: "failed",
    stop: "ended",
    sessionEnd: "ended",
  },
  codex: { PreToolUse: "before", PostToolUse: "after", Stop: "ended", SessionEnd: "ended" },
  gemini: { BeforeTool: "before", AfterTool: "after", AfterAgent: "ended", SessionEnd: "ended" },
};

export const eventsOf = (client: HookClient): string[] => Object.keys(MOMENTS[client]);

/** Null where the event is none of ours; a text where it cannot be read, which refuses the call. */
export function readEvent(client: HookClient, given: unknown): HookEvent | string | null {
  if (!isRecord(given)) return "the hook's input is not a JSON object";
  const name = given["hook_event_name"];
  if (typeof name !== "string") return "the hook's input names no event";
  const moment = MOMENTS[client][name];
  if (moment === undefined) return null;
  const session = textOrNull(given["session_id"]) ?? textOrNull(given["conversation_id"]);
  if (session === null) return "the hook's input names no session";
  const tool = textOrNull(given["tool_name"]);
  if (tool === null && moment !== "ended") return "the hook's input names no tool";
  const input = inputOf(given["tool_input"]);
  if (input === null && moment !== "ended") return "the tool's input is not an object";
  const response = given["tool_response"] ?? given["tool_output"];
  const error = errorOf(given, response);
  return {
    moment: moment === "after" && error !== null ? "failed" : moment,
    session,
    call: textOrNull(given["tool_use_id"]) ?? fingerprint(tool, input),
    tool: tool ?? "",
    input: input ?? {},
    cwd: textOrNull(given["cwd"]) ?? firstText(given["workspace_roots"]) ?? process.cwd(),
    agent: textOrNull(given["agent_id"]),
    session_over: /^sessionEnd$/i.test(name),
    error,
    response,
    interrupted: given["is_interrupt"] === true || given["failure_type"] === "timeout",
    declined: given["failure_type"] === "permission_denied",
  };
}

/** Some clients give the arguments as JSON in a text. */
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
  // Gemini tells a failed tool by an error inside its response.
  if (!isRecord(response) || response["error"] === undefined || response["error"] === null) return null;
  return typeof response["error"] === "string" ? response["error"] : JSON.stringify(response["error"]);
}

const NOTHING: HookAnswer = { out: "", err: "", code: 0 };

/** No opinion: the client goes on as if there were no hook. */
export function passAnswer(client: HookClient, remark: string | null = null): HookAnswer {
  // With failClosed Cursor takes an answer that is no JSON for a failure.
  if (client === "cursor") return { ...NOTHING, out: "{}" };
  return remark === null ? NOTHING : { ...NOTHING, out: JSON.stringify({ systemMessage: remark }) };
}

export function denyAnswer(client: HookClient, reason: string): HookAnswer {
  return { ...NOTHING, out: JSON.stringify(DENIALS[client](reason)) };
}

const decision = (reason: string) => ({
  hookSpecificOutput: {
    hookEventName: "PreToolUse",
    permissionDecision: "deny",
    permissionDecisionReason: reason,
  },
});
const DENIALS: Record<HookClient, (reason: string) => object> = {
  "claude-code": decision,
  codex: decision,
  cursor: (reason) => ({ permission: "deny", user_message: reason, agent_message: reason }),
  gemini: (reason) => ({ decision: "deny", reason }),
};

/** Where nothing else can be said any more: all four take exit code 2 for a refusal, with stderr as its reason. */
export const refuseAnswer = (reason: string): HookAnswer => ({ out: "", err: reason, code: 2 });

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function textOrNull(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

function firstText(list: unknown): string | null {
  return Array.isArray(list) ? textOrNull(list[0]) : null;
}

/** Gemini numbers no calls: the same call again is the same one, which only a pair of equal ones at once confuses. */
function fingerprint(tool: string | null, input: unknown): string {
  return hexHash(JSON.stringify([tool, input])).slice(0, 32);
}

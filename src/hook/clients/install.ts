/** Adds the hook to a client's settings, in that client's form, and keeps everything else in the file. */
import { join } from "node:path";
import { CLIENT_FILES, eventsOf, type HookClient, isRecord, promptEventsOf } from "./clients.ts";

interface Installed {
  title: string;
  /** Entry of one event, with its limit in the client's unit. */
  entry(hook: HookEntry): Record<string, unknown>;
  /** The client's unit of limits, in milliseconds. */
  unit_ms: number;
  /** Members that the file needs in addition to the hooks. */
  more: Record<string, unknown>;
  next: string;
}

interface HookEntry {
  command: string;
  before: boolean;
  timeout: number;
}

/** The hook finishes much earlier, unless it holds a call. */
const LIMIT_S = 30;
/** How much higher the client's limit is than a hold. */
const ABOVE_HOLD_S = 15;
const grouped = (handler: Record<string, unknown>) => ({ hooks: [{ type: "command", ...handler }] });

export const HOOK_INSTALLS: Record<HookClient, Installed> = {
  "claude-code": {
    title: "Claude Code",
    // Without onFailure (2.1.295) a hook that fails to start lets the call through.
    entry: ({ command, before, timeout }) =>
      grouped({ command, timeout, ...(before ? { onFailure: "block" } : {}) }),
    unit_ms: 1_000,
    more: {},
    next: "start claude in this workspace; /hooks shows the hook",
  },
  cursor: {
    title: "Cursor",
    entry: ({ command, before, timeout }) => ({ command, timeout, ...(before ? { failClosed: true } : {}) }),
    unit_ms: 1_000,
    more: { version: 1 },
    next: "restart Cursor; Cursor Settings, Hooks shows the hook",
  },
  codex: {
    title: "Codex",
    entry: ({ command, timeout }) => grouped({ command, timeout }),
    unit_ms: 1_000,
    more: {},
    next: "start codex and trust the hook under /hooks: until then Codex ignores it",
  },
  gemini: {
    title: "Gemini CLI",
    entry: ({ command, timeout }) => grouped({ name: "svc", command, timeout }),
    unit_ms: 1,
    more: {},
    next: "start gemini in this workspace; /hooks panel shows the hook",
  },
};

export function hooksFile(client: HookClient): string {
  return CLIENT_FILES[client].hooks;
}

/** The user's hooks file, where the client itself looks for it. */
export function userHooksFile(client: HookClient, env: NodeJS.ProcessEnv, home: string): string {
  const { hooks, moved } = CLIENT_FILES[client];
  const elsewhere = moved === null ? undefined : env[moved.variable];
  return elsewhere ? join(elsewhere, moved!.below) : join(home, hooks);
}

/** The machine's hooks file. Undefined on a platform for which the client has none. */
export const managedHooksFile = (client: HookClient): string | undefined =>
  CLIENT_FILES[client].managed[process.platform];

/** Whether one entry, or a whole file, starts our hook for this client. */
export const holdsHook = (client: HookClient, text: string): boolean =>
  text.includes(` hook ${client} --settings `) || text.includes(` hook ${client} --managed`);

interface ParsedSettings {
  config: Record<string, unknown>;
  hooks: Record<string, unknown>;
}

function parsed(text: string): ParsedSettings {
  const config: unknown = text.trim() === "" ? {} : JSON.parse(text);
  if (!isRecord(config)) throw new Error("the file does not contain a JSON object");
  const given = config["hooks"] ?? {};
  if (!isRecord(given)) throw new Error("hooks in the file is not an object");
  return { config, hooks: { ...given } };
}

/** Takes our hook out of the settings. Null if nothing else is left in them. */
export function withoutHooks(client: HookClient, text: string): string | null {
  const { config, hooks } = parsed(text);
  const others = Object.fromEntries(
    Object.entries(hooks).flatMap(([event, entries]) => {
      const kept = Array.isArray(entries)
        ? entries.filter((one) => !holdsHook(client, JSON.stringify(one)))
        : entries;
      return Array.isArray(kept) && kept.length === 0 ? [] : [[event, kept]];
    }),
  );
  const { hooks: _, ...rest } = config;
  const left = Object.keys(others).length === 0 ? rest : { ...config, hooks: others };
  const added = Object.entries(HOOK_INSTALLS[client].more);
  if (Object.keys(left).length === added.length && added.every(([name, value]) => left[name] === value))
    return null;
  return `${JSON.stringify(left, null, 2)}\n`;
}

export interface HookChoice {
  hold_s?: number;
  /** Also starts the hook for what the user writes. */
  give_prompts?: boolean;
}

/** Adds or replaces our hook in the settings. Throws if they cannot be parsed. */
export function withHooks(
  client: HookClient,
  text: string,
  command: string,
  { hold_s = 0, give_prompts = false }: HookChoice = {},
): string {
  const { config, hooks } = parsed(text);
  const { entry, more, unit_ms } = HOOK_INSTALLS[client];
  const limit_s = Math.max(LIMIT_S, hold_s + ABOVE_HOLD_S);
  const own = [...eventsOf(client), ...(give_prompts ? promptEventsOf(client) : [])];
  for (const event of own) {
    const before = event === eventsOf(client)[0];
    const there = hooks[event] ?? [];
    if (!Array.isArray(there)) throw new Error(`hooks.${event} in the file is not a list`);
    const others = there.filter((one) => !holdsHook(client, JSON.stringify(one)));
    hooks[event] = [
      ...others,
      entry({ command, before, timeout: ((before ? limit_s : LIMIT_S) * 1_000) / unit_ms }),
    ];
  }
  return `${JSON.stringify({ ...more, ...config, hooks }, null, 2)}\n`;
}

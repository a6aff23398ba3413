/** Adds the hook to a client's settings, in that client's form, and keeps everything else in the file. */
import { CLIENT_FILES, eventsOf, type HookClient, isRecord } from "./clients.ts";

interface Installed {
  title: string;
  /** Entry of one event. Its timeout is generous, because the hook finishes much earlier. */
  entry(command: string, before: boolean): Record<string, unknown>;
  /** Members that the file needs in addition to the hooks. */
  more: Record<string, unknown>;
  next: string;
}

const TIMEOUT_S = 30;
const grouped = (handler: Record<string, unknown>) => ({ hooks: [{ type: "command", ...handler }] });

export const HOOK_INSTALLS: Record<HookClient, Installed> = {
  "claude-code": {
    title: "Claude Code",
    // Without onFailure (2.1.295) a hook that fails to start lets the call through.
    entry: (command, before) =>
      grouped({ command, timeout: TIMEOUT_S, ...(before ? { onFailure: "block" } : {}) }),
    more: {},
    next: "start claude in this folder; /hooks shows the hook",
  },
  cursor: {
    title: "Cursor",
    entry: (command, before) => ({ command, timeout: TIMEOUT_S, ...(before ? { failClosed: true } : {}) }),
    more: { version: 1 },
    next: "restart Cursor; Cursor Settings, Hooks shows the hook",
  },
  codex: {
    title: "Codex",
    entry: (command) => grouped({ command, timeout: TIMEOUT_S }),
    more: {},
    next: "start codex and trust the hook under /hooks: until then Codex ignores it",
  },
  gemini: {
    title: "Gemini CLI",
    entry: (command) => grouped({ name: "svc", command, timeout: TIMEOUT_S * 1_000 }),
    more: {},
    next: "start gemini in this folder; /hooks panel shows the hook",
  },
};

export function hooksFile(client: HookClient): string {
  return CLIENT_FILES[client].hooks;
}

/** Adds or replaces our hook in the settings. Throws if they cannot be parsed. */
export function withHooks(client: HookClient, text: string, command: string): string {
  const config: unknown = text.trim() === "" ? {} : JSON.parse(text);
  if (!isRecord(config)) throw new Error("the file does not contain a JSON object");
  const given = config["hooks"] ?? {};
  if (!isRecord(given)) throw new Error("hooks in the file is not an object");
  const hooks = { ...given };
  const { entry, more } = HOOK_INSTALLS[client];
  for (const event of eventsOf(client)) {
    const there = hooks[event] ?? [];
    if (!Array.isArray(there)) throw new Error(`hooks.${event} in the file is not a list`);
    const others = there.filter((one) => !JSON.stringify(one).includes(` hook ${client} --settings `));
    hooks[event] = [...others, entry(command, event === eventsOf(client)[0])];
  }
  return `${JSON.stringify({ ...more, ...config, hooks }, null, 2)}\n`;
}

/**
 * A call that has the client obey a skill, a command, an agent or a tool server whose file changed since a person saw it.
 * Such a call needs approval, which counts for these contents.
 */
import { type HookClient, type HookEvent, isRecord } from "./clients/clients.ts";
import { usesClientFiles } from "./clients/tool-kinds.ts";
import { readSession } from "./sessions.ts";
import type { HookSettings } from "./settings.ts";
import { isMcpTool, type PackCall } from "./tool-calls.ts";
import { workspaceOf } from "./workspace/registered.ts";
import { SeenFiles, type SeenKind } from "./workspace/seen-files.ts";

interface SeenCall {
  call: PackCall;
  /** Remembers that the use was allowed. */
  keepSeen(): void;
}

/** `changed`: files that decide what runs, and that the session changed. */
export function judgeUse(
  client: HookClient,
  event: HookEvent,
  { folder, home }: HookSettings,
  call: PackCall,
  changed: readonly string[],
): SeenCall {
  const began = readSession(folder, client, event.session)?.began;
  const seen = new SeenFiles({ folder, home, workspace: workspaceOf(began || event.cwd) });
  const kind: SeenKind | null = usesClientFiles(event.tool) ? "used" : isMcpTool(event.tool) ? "mcp" : null;
  const unseen = kind === null ? [] : seen.unseen(kind, changed);
  if (unseen.length === 0) return { call, keepSeen: () => {} };
  const input = isRecord(call.args["input"]) ? call.args["input"] : {};
  const files = unseen.map(({ path, sha256 }) => `${path} (${sha256.slice(0, 12)})`);
  return {
    call: { ...call, tool: "code.other", args: { ...call.args, input: { ...input, not_seen: files } } },
    keepSeen: () => seen.keep(unseen),
  };
}

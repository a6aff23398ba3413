/**
 * Holds a call that waits for a person, so that the agent need not make it again. An approval in time is used only while
 * the client still waits. Otherwise it stays unused.
 */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { eventsOf, type HookClient, isRecord } from "./clients/clients.ts";
import { HOOK_INSTALLS, holdsHook, hooksFile, managedHooksFile } from "./clients/install.ts";
import type { CallContext } from "./resident/services.ts";
import { awaitApproval, type HookDecision, type RunOpening, requestDecision } from "./service.ts";
import type { HookSettings } from "./settings.ts";

/** Time between the end of a hold and the client's limit. */
const BELOW_LIMIT_MS = 10_000;
/** Limit of a client whose settings name none for the hook. */
const UNKNOWN_LIMIT_MS = 30_000;
const WAITS = /^approval required: request (apr_[\w-]+)/;

interface HeldCall {
  client: HookClient;
  cwd: string;
  opening: RunOpening;
  intent: object;
  /** A call that is refused anyway is not held. */
  holdable: boolean;
  /** Called before the wait for a person. */
  onHold(): void;
}

/** Requests a decision, and waits for a person's if the service asks for one. */
export async function decideCall(
  settings: HookSettings,
  { client, cwd, opening, intent, holdable, onHold }: HeldCall,
  context: CallContext,
): Promise<HookDecision> {
  const decided = await requestDecision(settings, opening, intent);
  const request = waitingRequest(decided);
  const ms = request === null || !holdable ? 0 : holdTime(settings, client, cwd);
  if (request === null || ms <= 0) return decided;
  onHold();
  context.extend(ms);
  const stop = AbortSignal.any([context.signal, context.ending]);
  const status = await awaitApproval(settings, request, ms, stop);
  if (status === "denied") return { ...decided, reasons: [`request ${request} was denied`] };
  if (status !== "approved" || stop.aborted || !(await context.isAwaited())) return decided;
  return requestDecision(settings, opening, intent);
}

function waitingRequest({ decision, reasons = [] }: HookDecision): string | null {
  if (decision !== "block") return null;
  return reasons.map((reason) => WAITS.exec(reason)?.[1]).find((id) => id !== undefined) ?? null;
}

/** The hold of the settings, shortened so that the hook answers before its client gives up. */
export function holdTime(settings: HookSettings, client: HookClient, cwd: string): number {
  const { hold_s = 0 } = settings;
  if (hold_s === 0) return 0;
  return Math.max(0, Math.min(hold_s * 1_000, clientLimit(settings, client, cwd) - BELOW_LIMIT_MS));
}

/** The shortest limit in milliseconds that the client's settings name for the hook. */
export function clientLimit({ home, hooks_file }: HookSettings, client: HookClient, cwd: string): number {
  const files = [
    hooks_file,
    join(home, hooksFile(client)),
    resolve(cwd, hooksFile(client)),
    managedHooksFile(client),
  ];
  const found = [...new Set(files)].flatMap((file) => (file === undefined ? [] : limitsIn(file, client)));
  return found.length === 0 ? UNKNOWN_LIMIT_MS : Math.min(...found);
}

function limitsIn(file: string, client: HookClient): number[] {
  try {
    const given: unknown = JSON.parse(readFileSync(file, "utf8"));
    const hooks = isRecord(given) && isRecord(given["hooks"]) ? given["hooks"] : {};
    const entries = hooks[eventsOf(client)[0]!];
    return (Array.isArray(entries) ? entries : [])
      .flatMap((entry: unknown) =>
        isRecord(entry) && Array.isArray(entry["hooks"]) ? entry["hooks"] : [entry],
      )
      .filter((one) => isRecord(one) && holdsHook(client, JSON.stringify(one)))
      .map(({ timeout }) =>
        typeof timeout === "number" ? timeout * HOOK_INSTALLS[client].unit_ms : UNKNOWN_LIMIT_MS,
      );
  } catch {
    return [];
  }
}

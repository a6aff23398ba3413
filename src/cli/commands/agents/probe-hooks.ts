/**
 * Tests each connected hook: starts it as its client does, and makes a call only if the hook lets it pass. A refusal is
 * exit code 2 with text on standard error and nothing on standard output.
 */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventsOf, HOOK_CLIENTS, type HookClient, runOfSession } from "../../../hook/clients/clients.ts";
import { holdsHook, managedHooksFile, userHooksFile } from "../../../hook/clients/install.ts";
import { hooksFolder } from "../../../hook/settings.ts";
import type { ProbeVerdict } from "../../../library/probe.ts";
import type { CommandIo } from "../../io.ts";
import { homeOf } from "./hook-places.ts";

interface HookLine {
  surface: string;
  guarantee: string;
  verdict: ProbeVerdict;
  reason: string | null;
}

/** Longer than the hook takes for an answer, and shorter than clients wait. */
const PATIENCE_MS = 20_000;
/** A call that still waits after this long is held for a person. */
const HELD_MS = 5_000;

/** The service that decides the hook's calls. */
export interface HookProbeService {
  /** Withdraws the run's open requests. Returns how many there were. */
  withdraw(run: string): Promise<number>;
  /** Whether everything was undone. Null if no command for it is configured. */
  rollback(run: string): Promise<boolean | null>;
}

export async function probeHooks(io: CommandIo, service: HookProbeService): Promise<HookLine[]> {
  const lines: HookLine[] = [];
  for (const client of HOOK_CLIENTS) {
    const settings = join(hooksFolder(io.env), `${client}.json`);
    if (!existsSync(settings)) continue;
    const command = commandOf(io, client, settings);
    const lineOf = ([guarantee, verdict, reason = null]: Judgement): HookLine => ({
      ...{ surface: `hook of ${client}`, guarantee, verdict, reason },
    });
    if (command === null)
      lines.push(lineOf(["the client starts the hook", "BROKEN", "its settings do not name the hook"]));
    else lines.push(...(await judgeHook(new ProbedHook(client, command, settings), service)).map(lineOf));
  }
  return lines;
}

type Judgement = [guarantee: string, verdict: ProbeVerdict, reason?: string | null];

/** Makes the calls that a client would make, on its own file. A call happens only if the hook lets it pass. */
async function judgeHook(hook: ProbedHook, service: HookProbeService): Promise<Judgement[]> {
  const file = join(hook.folder, "canary");
  const write = { tool_name: "Write", tool_input: { file_path: file, content: "canary" } };
  try {
    const edited = await hook.call(write, () => writeFileSync(file, "canary"));
    const runs = "an allowed call runs";
    const allowed: Judgement = edited.passed
      ? [runs, "holds"]
      : [runs, "not checked", edited.err.trim() || edited.why];
    const secret = { tool_name: "Bash", tool_input: { command: `cat ${JSON.stringify(hook.settings)}` } };
    const unknown = { tool_name: "svc_probe_unknown", tool_input: {} };
    return [
      allowed,
      denied(await hook.call(secret)),
      await waiting(hook, service, file),
      await undone(hook, service, { file, edited: edited.passed }),
      refusedBy("a call of an unknown tool does not run", await hook.call(unknown, undefined, HELD_MS)),
      refusedBy("an event that cannot be read is refused", await hook.answer("{")),
    ];
  } finally {
    await service.withdraw(hook.run).catch(() => 0);
    rmSync(hook.folder, { recursive: true, force: true });
  }
}

const refusedBy = (about: string, { refused, why }: HookReply): Judgement =>
  refused ? [about, "holds"] : [about, "BROKEN", why];

function denied(reply: HookReply): Judgement {
  const about = "a denied call does not run";
  return reply.refused && !/protected|decides about the agent/.test(reply.err)
    ? [about, "not checked", "the service did not judge it"]
    : refusedBy(about, reply);
}

async function waiting(hook: ProbedHook, service: HookProbeService, file: string): Promise<Judgement> {
  const about = "a call that waits for approval does not run";
  const remove = { tool_name: "Bash", tool_input: { command: `rm -r ${JSON.stringify(file)}` } };
  const reply = await hook.call(remove, undefined, HELD_MS);
  const waits = await service.withdraw(hook.run).catch(() => 0);
  if (!reply.refused) return [about, "BROKEN", reply.why];
  return waits > 0 ? [about, "holds"] : [about, "not checked", "the service opened no request"];
}

async function undone(
  hook: ProbedHook,
  service: HookProbeService,
  { file, edited }: { file: string; edited: boolean },
): Promise<Judgement> {
  const about = "an undone call is undone";
  if (!edited) return [about, "not checked", "the canary's edit did not run"];
  const complete = await service.rollback(hook.run).catch((error: Error) => error.message);
  if (complete === null) return [about, "not checked", "no rollback.compensator_cmd is configured"];
  if (typeof complete === "string") return [about, "not checked", complete];
  return existsSync(file) ? [about, "BROKEN", "the canary's file is still there"] : [about, "holds"];
}

/** The hook of one client, started as the client does. */
class ProbedHook {
  readonly settings: string;
  readonly folder = mkdtempSync(join(tmpdir(), "svc-probe-"));
  readonly run: string;
  private readonly client: HookClient;
  private readonly command: string;
  private readonly session = `svc-probe-${randomUUID()}`;
  private calls = 0;

  constructor(client: HookClient, command: string, settings: string) {
    this.client = client;
    this.command = command;
    this.settings = settings;
    this.run = runOfSession(client, this.session);
  }

  /** `act`: what the client does if the hook lets the call pass. A call that is held for longer counts as refused. */
  async call(tool: object, act?: () => void, held_ms?: number): Promise<HookReply> {
    const cwd = firstWorkspace(this.settings) ?? this.folder;
    const [before, after] = eventsOf(this.client);
    const event = {
      ...{ session_id: this.session, conversation_id: this.session, cwd, workspace_roots: [cwd] },
      ...{ tool_use_id: `svc-probe-${this.calls++}`, ...tool },
    };
    const send = (hook_event_name: string | undefined) =>
      this.answer(JSON.stringify({ ...event, hook_event_name, tool_response: {} }), held_ms);
    const reply = await send(before);
    if (reply.passed && act !== undefined) {
      act();
      await send(after);
    }
    return reply;
  }

  answer(input: string, held_ms?: number): Promise<HookReply> {
    return answerOf(this.command, input, held_ms);
  }
}

/** The command of the client's first event, in the settings that the client reads. */
function commandOf(io: CommandIo, client: HookClient, settings: string): string | null {
  const recorded = jsonIn(settings)?.["hooks_file"];
  const files = [recorded, managedHooksFile(client), userHooksFile(client, io.env, homeOf(io))];
  for (const file of files) {
    if (typeof file !== "string") continue;
    const hooks = jsonIn(file)?.["hooks"] as Record<string, unknown[]> | undefined;
    for (const entry of hooks?.[eventsOf(client)[0]!] ?? []) {
      const { command, hooks: inner } = entry as { command?: unknown; hooks?: { command?: unknown }[] };
      for (const one of [command, ...(inner ?? []).map((each) => each.command)])
        if (typeof one === "string" && holdsHook(client, one.replaceAll("\\", ""))) return one;
    }
  }
  return null;
}

/** The hook decides calls only in a registered workspace. */
function firstWorkspace(settings: string): string | null {
  const listed = jsonIn(settings)?.["workspaces"];
  const [first] = Array.isArray(listed) ? listed : [];
  return typeof first === "string" && existsSync(first) ? first : null;
}

function jsonIn(path: string): Record<string, unknown> | null {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
  } catch {
    return null;
  }
}

interface HookReply {
  passed: boolean;
  refused: boolean;
  err: string;
  why: string;
}

/** As clients start a hook: through a shell, with the event on standard input. */
function answerOf(command: string, input: string, held_ms?: number): Promise<HookReply> {
  return new Promise((resolve) => {
    const child = spawn(command, { shell: true, cwd: tmpdir(), stdio: ["pipe", "pipe", "pipe"] });
    let [out, err, held] = ["", "", false];
    const timer = setTimeout(() => {
      held = held_ms !== undefined;
      child.kill("SIGKILL");
    }, held_ms ?? PATIENCE_MS);
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      err += text;
    });
    child.stdin.on("error", () => {});
    child.stdin.end(input);
    child.on("error", (error) => resolve({ passed: false, refused: false, err, why: error.message }));
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({
        passed: code === 0,
        refused: held || (code === 2 && out === "" && err.trim() !== ""),
        err,
        why: `it ended with ${code}${out === "" ? "" : " and text on standard output"}`,
      });
    });
  });
}

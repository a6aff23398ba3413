/**
 * Tests each connected hook: starts it as its client does, with calls that it must refuse. A refusal is exit code 2 with
 * text on standard error and nothing on standard output.
 */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventsOf, HOOK_CLIENTS, type HookClient } from "../../../hook/clients/clients.ts";
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

export async function probeHooks(io: CommandIo): Promise<HookLine[]> {
  const lines: HookLine[] = [];
  for (const client of HOOK_CLIENTS) {
    const settings = join(hooksFolder(io.env), `${client}.json`);
    if (existsSync(settings)) lines.push(...(await probeHook(io, client, settings)));
  }
  return lines;
}

async function probeHook(io: CommandIo, client: HookClient, settings: string): Promise<HookLine[]> {
  const line = (guarantee: string, verdict: ProbeVerdict, reason: string | null = null): HookLine => ({
    surface: `hook of ${client}`,
    guarantee,
    verdict,
    reason,
  });
  const command = commandOf(io, client, settings);
  if (command === null)
    return [line("the client starts the hook", "BROKEN", "its settings do not name the hook")];
  const cwd = firstWorkspace(settings) ?? tmpdir();
  const event = {
    session_id: "svc-probe",
    conversation_id: "svc-probe",
    hook_event_name: eventsOf(client)[0],
    cwd,
    workspace_roots: [cwd],
    tool_name: "Bash",
    tool_use_id: "svc-probe",
    tool_input: { command: `cat ${JSON.stringify(settings)}` },
  };
  const secret = await answerOf(command, JSON.stringify(event));
  const broken = await answerOf(command, "{");
  const about = "a call that reads the hook's settings is refused";
  return [
    secret.refused && !/protected|decides about the agent/.test(secret.err)
      ? line(about, "not checked", "the service did not judge it")
      : line(about, secret.refused ? "holds" : "BROKEN", secret.refused ? null : secret.why),
    line(
      "an event that cannot be read is refused",
      broken.refused ? "holds" : "BROKEN",
      broken.refused ? null : broken.why,
    ),
  ];
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

/** A call is judged in a registered workspace alone. */
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
  refused: boolean;
  err: string;
  why: string;
}

/** As clients start a hook: through a shell, with the event on standard input. */
function answerOf(command: string, input: string): Promise<HookReply> {
  return new Promise((resolve) => {
    const child = spawn(command, { shell: true, cwd: tmpdir(), stdio: ["pipe", "pipe", "pipe"] });
    let [out, err] = ["", ""];
    const timer = setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS);
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      err += text;
    });
    child.stdin.on("error", () => {});
    child.stdin.end(input);
    child.on("error", (error) => resolve({ refused: false, err, why: error.message }));
    child.on("close", (code) => {
      clearTimeout(timer);
      const refused = code === 2 && out === "" && err.trim() !== "";
      resolve({
        refused,
        err,
        why: `it ended with ${code}${out === "" ? "" : " and text on standard output"}`,
      });
    });
  });
}

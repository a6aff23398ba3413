/** Runs a real coding agent without a person, in a home and its own workspace, against a scripted model. */
import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PROVES_ALL_CLIENTS } from "./chosen.ts";
import type { RealClient } from "./install.ts";

export interface ClientRun {
  code: number | null;
  out: string;
  err: string;
}

export interface ClientPlace {
  home: string;
  workspace: string;
  /** Address of the scripted model. */
  model: string;
}

interface Headless {
  /** Files that the client needs in its home before it starts. */
  prepare(home: string): void;
  args(prompt: string, place: ClientPlace): string[];
  env(place: ClientPlace): Record<string, string>;
}

const settle = (path: string, text: string): void => {
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, text, { flag: "wx" });
};

/** Settings of the client that exist already stay, because `svc connect` may have written them. */
function settleOnce(path: string, text: string): void {
  try {
    settle(path, text);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

export const HEADLESS: Record<RealClient, Headless> = {
  gemini: {
    prepare: (home) =>
      settleOnce(
        join(home, ".gemini", "settings.json"),
        JSON.stringify({
          security: { auth: { selectedType: "gemini-api-key" } },
          privacy: { usageStatisticsEnabled: false },
          general: { disableAutoUpdate: true, disableUpdateNag: true },
        }),
      ),
    args: (prompt) => ["-m", "gemini-2.5-pro", "--approval-mode", "yolo", "--skip-trust", "-p", prompt],
    env: ({ model }) => ({
      GEMINI_API_KEY: "none",
      GOOGLE_GEMINI_BASE_URL: model,
      GEMINI_CLI_TRUST_WORKSPACE: "true",
      GEMINI_TELEMETRY_ENABLED: "false",
      GEMINI_SANDBOX: "false",
      GEMINI_CLI_NO_RELAUNCH: "true",
      CI: "true",
    }),
  },
  codex: {
    prepare: (home) =>
      settleOnce(
        join(home, ".codex", "config.toml"),
        [
          'model = "gpt-6-sol"',
          'model_provider = "scripted"',
          "check_for_update_on_startup = false",
          "[analytics]",
          "enabled = false",
          "[model_providers.scripted]",
          'name = "scripted"',
          'base_url = "http://127.0.0.1:9/v1"',
          'wire_api = "responses"',
          'env_key = "SCRIPTED_KEY"',
          // Codex ignores hooks, skills and servers of a project that is not trusted.
          `[projects."${join(home, "shop")}"]`,
          'trust_level = "trusted"',
          "",
        ].join("\n"),
      ),
    args: (prompt, { model }) => [
      "exec",
      "-c",
      `model_providers.scripted.base_url="${model}/v1"`,
      "--skip-git-repo-check",
      "--dangerously-bypass-approvals-and-sandbox",
      "--dangerously-bypass-hook-trust",
      prompt,
    ],
    env: () => ({ SCRIPTED_KEY: "none" }),
  },
  "claude-code": {
    prepare: () => {},
    args: (prompt) => ["--dangerously-skip-permissions", "--model", "claude-sonnet-4-5", "-p", prompt],
    env: ({ model }) => ({
      ANTHROPIC_BASE_URL: model,
      ANTHROPIC_API_KEY: "none",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      // Root may skip permissions only in a sandbox.
      IS_SANDBOX: "1",
    }),
  },
};

/**
 * How long a client may take for a scripted session before it counts as hanging. Gemini CLI needs 2 s of processor time
 * before its first request, which a busy machine stretches to 30 s.
 */
const LIMIT_MS = PROVES_ALL_CLIENTS ? 300_000 : 120_000;

export function runClient(
  client: RealClient,
  command: readonly string[],
  place: ClientPlace,
  prompt: string,
  more: { args?: readonly string[]; env?: Readonly<Record<string, string>> } = {},
): Promise<ClientRun> {
  const headless = HEADLESS[client];
  const [program, ...first] = command;
  return new Promise((resolve, reject) => {
    const child = spawn(program!, [...first, ...(more.args ?? []), ...headless.args(prompt, place)], {
      cwd: place.workspace,
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: place.home,
        TERM: "dumb",
        SHELL: "/bin/bash",
        ...headless.env(place),
        ...more.env,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let [out, err] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      err += text;
    });
    const timer = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
    child.once("error", reject);
    child.once("close", (code) => {
      clearTimeout(timer);
      resolve({ code, out, err });
    });
  });
}

/**
 * The state of a coding agent's client for one confined run: a copy, from which only transcripts and renewed logins come
 * back.
 */
import { cpSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

interface ClientState {
  /** Directory in the home directory. */
  readonly folder: string;
  /** Entries that stay behind: other projects' transcripts, caches, histories. */
  readonly left_out: RegExp;
  /** Transcripts, by their path below the directory. */
  readonly transcript: RegExp;
  readonly login: string;
  /** Files that decide about the client, and files that it runs. Read-only in the copy, existing or not. */
  readonly files: readonly string[];
  readonly folders: readonly string[];
  /** The variable that names the directory to the client. */
  readonly variable: string | null;
}

const LEFT_OUT =
  /^(?:projects|file-history|shell-snapshots|todos|debug|statsig|cache|logs?|paste-cache|history\.jsonl|sessions|archived_sessions|tmp|telemetry|backups)(?:\/|$)/;

const STATES: Readonly<Record<string, ClientState>> = {
  claude: {
    folder: ".claude",
    left_out: LEFT_OUT,
    transcript: /^projects\/.+\.jsonl$/,
    login: ".credentials.json",
    files: ["settings.json", "settings.local.json"],
    folders: ["skills", "commands", "agents", "hooks"],
    variable: "CLAUDE_CONFIG_DIR",
  },
  codex: {
    folder: ".codex",
    left_out: LEFT_OUT,
    transcript: /^sessions\/.+\.jsonl$/,
    login: "auth.json",
    files: ["config.toml", "hooks.json"],
    folders: ["prompts", "rules"],
    variable: "CODEX_HOME",
  },
  gemini: {
    folder: ".gemini",
    left_out: LEFT_OUT,
    transcript: /^tmp\/[^/]+\/(?:chats|logs)\/?.*\.json$/,
    login: "oauth_creds.json",
    files: ["settings.json"],
    folders: ["commands", "extensions", "skills"],
    variable: null,
  },
};

const MAX_LOGIN_BYTES = 65_536;
const MAX_TRANSCRIPT_BYTES = 268_435_456;

export interface CopiedState {
  readonly from: string;
  /** Where the confined side sees it. */
  readonly to: string;
  readonly env: Readonly<Record<string, string>>;
  /** Paths of the confined side that stay as they are. */
  readonly read_only: readonly (readonly [from: string, to: string])[];
  /** Copies transcripts and a renewed login back. */
  bringBack(): void;
}

/** Null for an unknown program. */
export function copyClientState(program: string, home: string, into: string): CopiedState | null {
  const name = basename(program).replace(/\.[cm]?js$/, "");
  const state = Object.hasOwn(STATES, name) ? STATES[name]! : undefined;
  if (state === undefined) return null;
  const own = join(home, state.folder);
  const copy = join(into, state.folder);
  mkdirSync(copy, { recursive: true, mode: 0o700 });
  if (existsSync(own))
    cpSync(own, copy, {
      recursive: true,
      verbatimSymlinks: true,
      filter: (path) => path === own || !state.left_out.test(path.slice(own.length + 1)),
    });
  const settings = join(home, ".claude.json");
  if (name === "claude" && existsSync(settings)) cpSync(settings, join(copy, ".claude.json"));
  for (const folder of state.folders) mkdirSync(join(copy, folder), { recursive: true });
  for (const file of state.files)
    if (!existsSync(join(copy, file))) writeFileSync(join(copy, file), file.endsWith(".json") ? "{}\n" : "");
  return {
    from: copy,
    to: own,
    read_only: [...state.folders, ...state.files].map((path) => [join(copy, path), join(own, path)] as const),
    env: state.variable === null ? {} : { [state.variable]: own },
    bringBack: () => bringBack(state, copy, own),
  };
}

function bringBack({ transcript, login }: ClientState, copy: string, own: string): void {
  for (const path of filesBelow(copy, ""))
    if (transcript.test(path)) copyPlainFile(join(copy, path), join(own, path), MAX_TRANSCRIPT_BYTES);
  const renewed = join(copy, login);
  const stats = lstatSync(renewed, { throwIfNoEntry: false });
  if (stats?.isFile() !== true || stats.size > MAX_LOGIN_BYTES) return;
  const text = readFileSync(renewed, "utf8");
  const before = existsSync(join(own, login)) ? readFileSync(join(own, login), "utf8") : null;
  if (text === before || !isJsonObjectText(text)) return;
  writeFileSync(join(own, login), text, { mode: 0o600 });
}

function isJsonObjectText(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** Files and no links: the confined side may have planted some. */
function filesBelow(folder: string, below: string): string[] {
  return readdirSync(join(folder, below), { withFileTypes: true }).flatMap((entry) => {
    const path = below === "" ? entry.name : `${below}/${entry.name}`;
    if (entry.isDirectory()) return filesBelow(folder, path);
    return entry.isFile() ? [path] : [];
  });
}

function copyPlainFile(from: string, to: string, max_bytes: number): void {
  const there = lstatSync(to, { throwIfNoEntry: false });
  if (lstatSync(from).size > max_bytes || (there !== undefined && !there.isFile())) return;
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  writeFileSync(to, readFileSync(from), { mode: 0o600 });
}

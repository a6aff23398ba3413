/**
 * What no call of a coding agent may touch: the service's own folder, keys and settings, the hook's settings in the
 * client, and credentials. It recognises what is written plainly; it is no boundary against a program that hides it.
 */
import { readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { CLIENT_FILES } from "./clients.ts";
import { braces, filesOf, GLOB, liesBelow, matches } from "./globs.ts";

export interface Surroundings {
  home: string;
  /** Folders and files of the service, from the hook's settings. */
  protect: readonly string[];
  /** Host and port of the service. */
  authority: string;
}

/** Every client's settings, whichever runs: one agent must not unhook another. */
const CLIENT_SETTINGS = [...new Set(Object.values(CLIENT_FILES).flatMap(({ settings }) => settings))];
const OF_HOME: readonly string[] = [
  ".config/svc",
  ".ssh",
  ".aws",
  ".gnupg",
  ".kube",
  ".azure",
  ".config/gcloud",
  ".config/gh",
  ".docker/config.json",
  ".netrc",
  ".npmrc",
  ".pypirc",
  ".git-credentials",
  ".pgpass",
  ".claude.json",
  ".claude/.credentials.json",
  ".codex/auth.json",
  ".gemini/oauth_creds.json",
  ...CLIENT_SETTINGS,
];
/** Files that hold credentials wherever they lie. */
const SECRET_NAME =
  /^(?:\.env(?:\.(?!example$|sample$|template$|dist$)[\w.-]+)?|id_(?:rsa|dsa|ecdsa|ed25519)|\.netrc|\.git-credentials|\.pgpass|.+\.(?:pem|key|p12|pfx|jks|keystore)|credentials(?:\.json)?)$/i;
const OWN_NAME = /^svc\.config\.ya?ml$/;
/** Programs that git runs by itself stand there. */
const RUN_BY_GIT = /\/\.git\/(?:.+\/)?(?:hooks(?:\/|$)|config$)/;
/** What a pattern is tried on where the files that it will meet are not known. */
const SECRET_SAMPLES: readonly string[] = [
  ".env",
  ".env.local",
  ".netrc",
  ".git-credentials",
  ".pgpass",
  "id_rsa",
  "id_ed25519",
];
const EVERYWHERE = ["/proc/*/environ", "/etc/shadow", "/etc/sudoers"];

export interface Guard {
  /** Why this path may not be touched, or null. `reach`: everything below it is touched as well. */
  path(text: string, cwd: string, reach?: boolean): string | null;
  /** The same for a word with the shell's wildcards; `maybe`: it could stand for such a file. */
  glob(text: string, cwd: string): { why: string | null; maybe: boolean };
  /** Whether something protected lies in this folder; `files`: its files are looked at as well, hidden ones too. */
  holds(folder: string, cwd: string, files: boolean): boolean;
  /** Why this text, which only running would explain, may not be run, or null. */
  text(text: string): string | null;
}

export function createGuard({ home, protect, authority }: Surroundings): Guard {
  const own = [...protect, ...OF_HOME.map((path) => join(home, path)), ...EVERYWHERE];
  const paths = [...new Set(own.flatMap((path) => [path, real(path)]))];
  const service = addressOf(authority);
  const namesOf = (cwd: string) =>
    [...CLIENT_SETTINGS, ".git/hooks"].map((name) => join(cwd, name)).flatMap((name) => [name, real(name)]);
  const whyNot = (text: string, cwd: string, reach: boolean): string | null => {
    const full = absolute(text, home, cwd);
    for (const seen of new Set([full, real(full)])) {
      const why = byName(seen);
      if (why !== null) return why;
      for (const kept of [...paths, ...namesOf(cwd)]) {
        const how = relation(segments(seen), segments(kept));
        if (how === "inside" || (reach && how === "above")) return `${kept} is protected`;
      }
    }
    return null;
  };
  return {
    path: (text, cwd, reach = false) => whyNot(text, cwd, reach),
    glob(text, cwd) {
      if (!GLOB.test(text.replaceAll("{}", ""))) return { why: null, maybe: false };
      const words = braces(text).map((word) => absolute(word, home, cwd));
      const files = words.map((word) => (GLOB.test(word) ? filesOf(word, cwd) : [word]));
      for (const file of files.flatMap((some) => some ?? [])) {
        const why = whyNot(file, cwd, false);
        if (why !== null) return { why, maybe: true };
      }
      const maybe = words.some((word) => {
        const name = basename(word);
        const hidden = name.startsWith(".") || word.includes("**");
        return hidden && GLOB.test(name) && SECRET_SAMPLES.some((sample) => matches(name, sample));
      });
      return { why: null, maybe: maybe || files.includes(null) };
    },
    holds(folder, cwd, files) {
      const full = absolute(folder, home, cwd);
      const above = [full, real(full)].some((seen) =>
        paths.some((kept) => relation(segments(seen), segments(kept)) === "above"),
      );
      return above || (files && liesBelow(full, (name) => byName(`/${name}`) !== null));
    },
    text(text) {
      if (service.test(text)) return "it talks to the service";
      const found =
        paths.find((path) => text.includes(path)) ?? /svc\.config\.ya?ml|\.svc-backup/.exec(text)?.[0];
      if (found !== undefined) return `${found} is protected`;
      return DECIDING_TEXT.test(text) ? "it names a deciding svc command" : null;
    },
  };
}

function byName(full: string): string | null {
  const name = basename(full);
  const slashed = full.replaceAll("\\", "/");
  if (SECRET_NAME.test(name) && !/\s/.test(name)) return `${name} holds credentials`;
  if (OWN_NAME.test(name)) return `${name} is the service's configuration`;
  if (CLIENT_SETTINGS.some((end) => slashed.endsWith(`/${end}`)))
    return `${name} holds the hook's own settings`;
  return RUN_BY_GIT.test(slashed) ? `git runs what ${name} says` : null;
}

/** Whether a search tool's pattern, which finds hidden files too, asks for files that hold credentials. */
export function namesSecrets(pattern: string): boolean {
  return braces(pattern).some((word) => {
    const name = basename(word);
    if (/^\**$/.test(name)) return false;
    return byName(`/${name}`) !== null || SECRET_SAMPLES.some((sample) => matches(name, sample, true));
  });
}

const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1?\])$/;

/** A service on this machine has many names. */
function addressOf(authority: string): RegExp {
  const { hostname, port } = new URL(`http://${authority}`);
  const host = LOOPBACK.test(hostname) ? LOOPBACK.source.slice(1, -1) : literal(hostname);
  return new RegExp(`(?<![\\w.-])${host}${port === "" ? "(?![\\w.:-])" : `:${port}\\b`}`, "i");
}

const literal = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

const DECIDING_TEXT =
  /\b(?:svc|takeback)\b[^\n]{0,200}\b(?:approve|deny|halt|resume|rollback|keys|grants?|contain|resolve|kill-switch|reload|break-glass)\b|\/v1\/(?:approvals|halt|resume|keys|grants|contain|plans)\b/;

/** Tools of the gateway's operator endpoint, however a client spells an MCP tool. */
export const DECIDING_TOOL =
  /svc[._](?:approve|deny|halt|resume|execute_rollback|contain|grant|revoke|decide|resolve|export_evidence)/i;

function absolute(text: string, home: string, cwd: string): string {
  const path = text === "~" || text.startsWith("~/") ? join(home, text.slice(1)) : text;
  return isAbsolute(path) ? resolve(path) : resolve(cwd, path);
}

const MOST_LINKS = 20;

/** With links followed as far as it exists; a link to what does not exist yet is followed too. */
function real(path: string, links = 0): string {
  const missing: string[] = [];
  for (let at = path; ; at = dirname(at)) {
    try {
      return join(realpathSync(at), ...missing);
    } catch {
      if (dirname(at) === at) return path;
      const target = linkAt(at);
      if (target !== null && links < MOST_LINKS)
        return real(join(resolve(dirname(at), target), ...missing), links + 1);
      missing.unshift(basename(at));
    }
  }
}

function linkAt(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}

const FOLDS_CASE = process.platform === "darwin" || process.platform === "win32";
const segments = (path: string): string[] =>
  (FOLDS_CASE ? path.toLowerCase() : path).split(/[\\/]/).filter(Boolean);

function relation(path: readonly string[], kept: readonly string[]): "inside" | "above" | null {
  const both = Math.min(path.length, kept.length);
  for (let i = 0; i < both; i++) if (!alike(path[i]!, kept[i]!)) return null;
  return path.length >= kept.length ? "inside" : "above";
}

function alike(a: string, b: string): boolean {
  if (a === b) return true;
  if (!GLOB.test(a)) return GLOB.test(b) && matches(b, a);
  return GLOB.test(b) || matches(a, b);
}

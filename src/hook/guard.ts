/**
 * What no call of a coding agent may touch: the service's own folder, keys and settings, the hook's settings in the
 * client, and credentials. It recognises what is written plainly; it is no boundary against a program that hides it.
 */
import { existsSync, lstatSync, readlinkSync, realpathSync, type Stats, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { CLIENT_FILES } from "./clients.ts";
import { braces, filesOf, GLOB, liesBelow, shellGlobMatches } from "./globs.ts";
import { withHome } from "./homes.ts";
import { foldPath, GIT_FILES, isRunUnasked, MCP_FILES, whyRunByItself } from "./unasked.ts";

interface Surroundings {
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
  ...MCP_FILES,
  ...GIT_FILES,
];
/** By their names alone the others are known. */
const MCP_FOLDERS = MCP_FILES.filter((path) => path.includes("/"));
/** Files that hold credentials wherever they lie. */
const SECRET_NAME =
  /^(?:\.env(?:\.(?!example$|sample$|template$|dist$)[\w.-]+)?|id_(?:rsa|dsa|ecdsa|ed25519)|\.netrc|\.git-credentials|\.pgpass|.+\.(?:pem|key|p12|pfx|jks|keystore)|credentials(?:\.json)?)$/i;
const OWN_NAME = /^svc\.config\.ya?ml$/;
/** What `svc connect --undo` puts back. */
const BACKUP_NAME = /\.svc-backup$/i;
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
const EVERYWHERE = ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/gitconfig"];
/** Each process's variables and memory, and its own names for the root and its folder. */
const OF_PROCESSES = /^\/proc\/(?:.+\/)?(?:environ|mem|auxv|root|cwd)(?:\/|$)/;

export interface Guard {
  /** Why this path may not be touched, or null. `reach`: everything below it is touched as well. */
  path(text: string, cwd: string, reach?: boolean): string | null;
  /** Whether something runs this file by itself, so that a person looks at a change of it. */
  runsUnasked(text: string, cwd: string): boolean;
  /** The same for a word with the shell's wildcards; `maybe`: it could stand for such a file. */
  glob(text: string, cwd: string): { why: string | null; maybe: boolean };
  /** Whether something protected lies in this folder; `files`: its files are looked at as well, hidden ones too. */
  holds(folder: string, cwd: string, files: boolean): boolean;
  /** Why this text, which only running would explain, may not be run, or null. */
  text(text: string): string | null;
}

interface Kept {
  name: string;
  parts: string[];
}

/** Which paths are protected, each judged once a call of the hook. */
function protectedPaths({ home, protect }: Surroundings) {
  const own = [...protect, ...OF_HOME.map((path) => join(home, path)), ...EVERYWHERE];
  const keptAt = (names: readonly string[]): Kept[] =>
    [...new Set(names.flatMap((name) => [name, real(name)]))].map((name) => ({
      name,
      parts: segments(name),
    }));
  const everywhere = keptAt(own);
  const perFolder = new Map<string, Kept[]>();
  const keptIn = (cwd: string): Kept[] => {
    const known =
      perFolder.get(cwd) ??
      keptAt(
        [...CLIENT_SETTINGS, ...MCP_FOLDERS, ".git/hooks", ".git/config"].map((name) => join(cwd, name)),
      );
    perFolder.set(cwd, known);
    return known;
  };
  const judge = (text: string, cwd: string, reach: boolean): string | null => {
    if (text.includes("\0")) return "no name of a file holds a zero byte";
    const expanded = withHome(text, home, cwd);
    if (expanded === null) return `whose folder ${text} lies in cannot be told`;
    // In quotes a `~` is a name like any other.
    const full = new Set([resolve(cwd, expanded), resolve(cwd, text)]);
    for (const seen of new Set([...full].flatMap((path) => [path, real(path)]))) {
      const why = byName(seen) ?? asGitFile(seen) ?? asHardLink(seen, [...everywhere, ...keptIn(cwd)]);
      if (why !== null) return why;
      const parts = segments(seen);
      for (const kept of [...everywhere, ...keptIn(cwd)]) {
        const how = relation(parts, kept.parts);
        if (how === "inside" || (reach && how === "above")) return `${kept.name} is protected`;
      }
    }
    return null;
  };
  const judged = new Map<string, string | null>();
  const whyNot = (text: string, cwd: string, reach: boolean): string | null => {
    const key = `${reach} ${cwd}\0${text}`;
    const known = judged.get(key);
    if (known !== undefined) return known;
    const why = judge(text, cwd, reach);
    judged.set(key, why);
    return why;
  };
  return { everywhere, whyNot };
}

export function createGuard(surroundings: Surroundings): Guard {
  const { home } = surroundings;
  const { everywhere, whyNot } = protectedPaths(surroundings);
  const service = addressOf(surroundings.authority);
  return {
    path: (text, cwd, reach = false) => whyNot(text, cwd, reach),
    runsUnasked(text, cwd) {
      const full = absolute(text, home, cwd);
      return [full, real(full)].some((path) => isRunUnasked(foldPath(path.replaceAll("\\", "/"))));
    },
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
        return hidden && GLOB.test(name) && SECRET_SAMPLES.some((sample) => shellGlobMatches(name, sample));
      });
      return { why: null, maybe: maybe || files.includes(null) };
    },
    holds(folder, cwd, files) {
      const full = absolute(folder, home, cwd);
      const above = [full, real(full)].some((seen) =>
        everywhere.some(({ parts }) => relation(segments(seen), parts) === "above"),
      );
      return above || (files && liesBelow(full, (name) => byName(`/${name}`) !== null));
    },
    text(text) {
      if (service(text)) return "it talks to the service";
      const found =
        everywhere.find(({ name }) => text.includes(name))?.name ??
        /svc\.config\.ya?ml|\.svc-backup/.exec(text)?.[0];
      if (found !== undefined) return `${found} is protected`;
      for (const [url] of text.matchAll(/\bfile:[^\s"'`<>]+/gi)) {
        const path = pathOf(url);
        const why = path === null ? `${url} cannot be read` : whyNot(path, "/", false);
        if (why !== null) return why;
      }
      return DECIDING_TEXT.test(text) ? "it names a deciding svc command" : null;
    },
  };
}

function byName(full: string): string | null {
  const folded = foldPath(full.replaceAll("\\", "/"));
  const name = basename(folded);
  if (SECRET_NAME.test(name) && !/\s/.test(name)) return `${name} holds credentials`;
  if (OWN_NAME.test(name)) return `${name} is the service's configuration`;
  if (BACKUP_NAME.test(name) || CLIENT_SETTINGS.some((end) => folded.endsWith(`/${end}`)))
    return `${name} holds the hook's own settings`;
  if (OF_PROCESSES.test(folded)) return "it shows a process's variables or files";
  return whyRunByItself(folded);
}

/** A `.git` that is a file, or is not there yet, says where git finds its configuration. */
function asGitFile(path: string): string | null {
  if (foldPath(basename(path)) !== ".git") return null;
  const found = statSync(path, { throwIfNoEntry: false });
  return found?.isDirectory() ? null : "git runs what .git says";
}

/** Another name of a file that is protected. */
function asHardLink(path: string, kept: readonly Kept[]): string | null {
  const found = statOf(path);
  if (!found?.isFile() || found.nlink < 2) return null;
  const same = kept.find(({ name }) => {
    const one = statOf(name);
    return one !== null && isSameOrHolds(name, one, found);
  });
  return same === undefined ? null : `${same.name} is protected`;
}

function isSameOrHolds(name: string, one: Stats, found: Stats): boolean {
  if (!one.isDirectory()) return one.ino === found.ino && one.dev === found.dev;
  return liesBelow(name, (_, path) => {
    const inner = statOf(path);
    return inner?.ino === found.ino && inner.dev === found.dev;
  });
}

function statOf(path: string): Stats | null {
  try {
    return statSync(path, { throwIfNoEntry: false }) ?? null;
  } catch {
    return null;
  }
}

/** Whether a search tool's pattern, which finds hidden files too, asks for files that hold credentials. */
export function namesSecrets(pattern: string): boolean {
  return braces(pattern).some((word) => {
    const name = basename(word);
    if (/^\**$/.test(name)) return false;
    return (
      byName(`/${name}`) !== null || SECRET_SAMPLES.some((sample) => shellGlobMatches(name, sample, true))
    );
  });
}

const LOOPBACK =
  /^(?:(?:.+\.)?localhost\.?|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::(?:1|ffff:(?:0:0|7f\w\w:\w+))?\])$/;
const ADDRESS = /(?:\[[\da-f:.]+\]|[\w.-]+)(?::\d+)?/gi;
/** Numbers that are an address where one is expected, and are numbers or versions anywhere else: `0`, `0.0`. */
const SHORT_NUMBER = /^(?:0x[\da-f]+|\d+)(?:\.(?:0x[\da-f]+|\d+)){0,2}$/i;

/** Behind what a host stands behind, or before a path: programs take an address without its scheme. */
const isPlacedAsHost = (text: string, at: number, length: number): boolean =>
  /(?:\/\/|@)$/.test(text.slice(Math.max(0, at - 2), at)) || text[at + length] === "/";

/** Whether a text holds the service's address; one on this machine has many names, and numbers have many forms. */
function addressOf(authority: string): (text: string) => boolean {
  const service = new URL(`http://${authority}`);
  const same = ({ hostname, port }: URL) =>
    (port === service.port || (service.port === "" && port === "443")) &&
    (hostname === service.hostname || (LOOPBACK.test(service.hostname) && LOOPBACK.test(hostname)));
  return (text) => {
    // Most texts are long and hold no such port.
    if (!text.includes(service.port)) return false;
    for (const { 0: one, index } of text.matchAll(ADDRESS)) {
      if (SHORT_NUMBER.test(one) && !isPlacedAsHost(text, index, one.length)) continue;
      if (URL.canParse(`http://${one}`) && same(new URL(`http://${one}`))) return true;
    }
    return false;
  };
}

const DECIDING_TEXT =
  /\b(?:svc|takeback)\b[^\n]{0,200}\b(?:approve|deny|halt|resume|rollback|keys|grants?|contain|resolve|kill-switch|reload|break-glass)\b|\/v1\/(?:approvals|halt|resume|keys|grants|contain|plans)\b/;

/** Tools of the gateway's operator endpoint, however a client spells an MCP tool. */
export const DECIDING_TOOL =
  /svc[._](?:approve|deny|halt|resume|execute_rollback|contain|grant|revoke|decide|resolve|export_evidence)/i;

const absolute = (text: string, home: string, cwd: string): string =>
  resolve(cwd, withHome(text, home, cwd) ?? text);

/** The path that a file URL stands for, as a browser reads it; null where it is none. */
function pathOf(url: string): string | null {
  try {
    return decodeURIComponent(new URL(url).pathname);
  } catch {
    return null;
  }
}

const MOST_LINKS = 20;

/** With links followed as far as it exists; a link to what does not exist yet is followed too. */
function real(path: string, links = 0): string {
  const missing: string[] = [];
  for (let at = path; ; at = dirname(at)) {
    const found = realAt(at);
    if (found !== null) return join(found, ...missing);
    if (dirname(at) === at) return path;
    const target = linkAt(at);
    if (target !== null && links < MOST_LINKS)
      return real(join(resolve(dirname(at), target), ...missing), links + 1);
    missing.unshift(basename(at));
  }
}

// Most of what is asked for is not there, and a thrown error takes longer than the question.
function realAt(path: string): string | null {
  try {
    return existsSync(path) ? realpathSync.native(path) : null;
  } catch {
    return null;
  }
}

function linkAt(path: string): string | null {
  try {
    const link = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink();
    return link ? readlinkSync(path) : null;
  } catch {
    return null;
  }
}

const segments = (path: string): string[] => foldPath(path).split(/[\\/]/).filter(Boolean);

function relation(path: readonly string[], kept: readonly string[]): "inside" | "above" | null {
  const both = Math.min(path.length, kept.length);
  for (let i = 0; i < both; i++) if (!alike(path[i]!, kept[i]!)) return null;
  return path.length >= kept.length ? "inside" : "above";
}

function alike(a: string, b: string): boolean {
  if (a === b) return true;
  if (!GLOB.test(a)) return GLOB.test(b) && shellGlobMatches(b, a);
  return GLOB.test(b) || shellGlobMatches(a, b);
}

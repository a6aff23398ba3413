/**
 * Protects paths from all calls of a coding agent: the service's directory, keys and settings, the hook's settings in
 * the client, and credentials. It recognizes plain spellings and is not a boundary against programs that hide a path.
 */
import { basename, dirname, join, resolve } from "node:path";
import { CLIENT_FILES } from "./clients/clients.ts";
import { foldPath, isMcpFile, MCP_FILES, wordsOf } from "./workspace/auto-run-files.ts";
import { CREDENTIAL_FILES, hasWrittenSecret, isCredentialName } from "./workspace/credential-files.ts";
import { expandHome } from "./workspace/expand-home.ts";
import {
  expandShellBraces,
  filesMatching,
  GLOB_CHARACTER,
  hasFileBelow,
  shellGlobMatches,
} from "./workspace/globs.ts";
import { hardLinkTo, type KeptPath, keptPaths, pathSegments, relationTo } from "./workspace/kept-paths.ts";
import { readTextOrNull } from "./workspace/read-text.ts";
import { resolveLinks } from "./workspace/resolve-links.ts";
import { createUnaskedTest, type UnaskedTest } from "./workspace/unasked-files.ts";

interface Surroundings {
  home: string;
  /** Directories and files of the service, from the hook's settings. */
  protect: readonly string[];
  /** Host and port of the service. */
  authority: string;
}

/** Settings of every client, because one agent must not disable another agent's hook. */
const CLIENT_SETTINGS = [...new Set(Object.values(CLIENT_FILES).flatMap(({ settings }) => settings))];
const TRANSCRIPTS: readonly string[] = [
  ".claude/projects/*/*.jsonl",
  ".claude/projects/*/*/subagents",
  ".codex/sessions",
  ".gemini/tmp/*/chats",
];
const MANAGED: readonly string[] = [
  ...new Set(Object.values(CLIENT_FILES).flatMap(({ managed }) => Object.values(managed).map(dirname))),
];
/** Files of the clients that decide whether the hook runs, or say what ran. Every call that touches one is refused. */
export const REFUSED_CLIENT_FILES: Readonly<Record<string, readonly string[]>> = {
  "settings of the clients, in any directory": CLIENT_SETTINGS,
  "settings of the clients, of the machine": MANAGED,
  "transcripts in the home directory": TRANSCRIPTS,
};
const OF_HOME: readonly string[] = [
  ".config/svc",
  ...wordsOf(CREDENTIAL_FILES["in the home directory"]),
  ...wordsOf(CREDENTIAL_FILES["histories in the home directory, which hold typed passwords"]),
  ...TRANSCRIPTS,
  ...CLIENT_SETTINGS,
];
const OWN_NAME = /^svc\.config\.ya?ml$/;
/** Backups that `svc connect --undo` restores. */
const BACKUP_NAME = /\.svc-backup$/i;
/** Sample names for testing a pattern whose matching files are unknown. */
const SECRET_SAMPLES: readonly string[] = [
  ".env",
  ".env.local",
  ".netrc",
  ".git-credentials",
  ".pgpass",
  "id_rsa",
  "id_ed25519",
];
const EVERYWHERE: readonly string[] = [...wordsOf(CREDENTIAL_FILES["of the machine"]), ...MANAGED];
/** Variables and memory of processes, and their links to the root and the working directory. */
const OF_PROCESSES = /^\/proc\/(?:.+\/)?(?:environ|mem|auxv|root|cwd)(?:\/|$)/;

const OPEN_FILES = /^\/proc\/(\d+)\/(?:task\/\d+\/)?(?:fd|map_files)(?:\/|$)/;

/** Whether a path is a file that another process has open. A command's own resolves to this process. */
const isOpenElsewhere = (path: string): boolean =>
  (OPEN_FILES.exec(path)?.[1] ?? `${process.pid}`) !== `${process.pid}`;

export interface PathGuard {
  /** Explains why this path is protected, or returns null. `reach`: the call affects everything below the path. */
  path(text: string, cwd: string, reach?: boolean): string | null;
  /** Whether another program runs this file automatically, so that a change needs approval. */
  runsUnasked: UnaskedTest;
  /** Like `path`, for a word with shell wildcards. `maybe`: the word could match a protected file. */
  glob(text: string, cwd: string): { why: string | null; maybe: boolean };
  /** Whether this directory contains something protected. `files`: also checks its files, including hidden ones. */
  holds(folder: string, cwd: string, files: boolean): boolean;
  /** Explains why a text that cannot be parsed must not run, or returns null. */
  text(text: string): string | null;
}

/** Decides which paths are protected. Each path is checked once per call of the hook. */
function protectedPaths({ home, protect, authority }: Surroundings) {
  const own = [...protect, ...OF_HOME.map((path) => join(home, path)), ...EVERYWHERE];
  const leadsToGateway = gatewayTest(authority);
  const gatewayFiles = (folder: string) => MCP_FILES.map((name) => join(folder, name)).filter(leadsToGateway);
  const everywhere = keptPaths([...own, ...gatewayFiles(home)]);
  const perFolder = new Map<string, KeptPath[]>();
  const keptIn = (cwd: string): KeptPath[] => {
    const known =
      perFolder.get(cwd) ??
      keptPaths([...CLIENT_SETTINGS.map((name) => join(cwd, name)), ...gatewayFiles(cwd)]);
    perFolder.set(cwd, known);
    return known;
  };
  const judge = (text: string, cwd: string, reach: boolean): string | null => {
    if (text.includes("\0")) return "a file name cannot contain a zero byte";
    const expanded = expandHome(text, home, cwd);
    if (expanded === null) return `the home directory in ${text} is unknown`;
    // In quotes, `~` is an ordinary name.
    const full = new Set([resolve(cwd, expanded), resolve(cwd, text)]);
    for (const seen of new Set([...full].flatMap((path) => [path, resolveLinks(path)]))) {
      const why = reasonByName(seen);
      if (why !== null) return why;
      if (hasWrittenSecret(seen)) return `${basename(seen)} holds credentials`;
      if (isMcpFile(seen) && leadsToGateway(seen)) return `${basename(seen)} names the gateway`;
      const all = [...everywhere, ...keptIn(cwd)];
      const linked = hardLinkTo(seen, all);
      if (linked !== undefined) return `${linked.name} is protected`;
      const parts = pathSegments(seen);
      for (const kept of all) {
        const how = relationTo(parts, kept.parts);
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

export function createPathGuard(surroundings: Surroundings): PathGuard {
  const { home } = surroundings;
  const { everywhere, whyNot } = protectedPaths(surroundings);
  const service = addressOf(surroundings.authority);
  return {
    path: (text, cwd, reach = false) => whyNot(text, cwd, reach),
    runsUnasked: createUnaskedTest(home),
    glob(text, cwd) {
      if (!GLOB_CHARACTER.test(text.replaceAll("{}", ""))) return { why: null, maybe: false };
      const words = expandShellBraces(text).map((word) => absolute(word, home, cwd));
      const files = words.map((word) => (GLOB_CHARACTER.test(word) ? filesMatching(word, cwd) : [word]));
      for (const file of files.flatMap((some) => some ?? [])) {
        const why = whyNot(file, cwd, false);
        if (why !== null) return { why, maybe: true };
      }
      const maybe = words.some((word) => {
        const name = basename(word);
        const hidden = name.startsWith(".") || word.includes("**");
        return (
          hidden &&
          GLOB_CHARACTER.test(name) &&
          SECRET_SAMPLES.some((sample) => shellGlobMatches(name, sample))
        );
      });
      return { why: null, maybe: maybe || files.includes(null) };
    },
    holds(folder, cwd, files) {
      const full = absolute(folder, home, cwd);
      const above = [full, resolveLinks(full)].some((seen) =>
        everywhere.some(({ parts }) => relationTo(pathSegments(seen), parts) === "above"),
      );
      return above || (files && hasFileBelow(full, isProtectedFile));
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

/** Explains why a path is protected by its name alone, or returns null. */
export function reasonByName(full: string): string | null {
  const folded = foldPath(full.replaceAll("\\", "/"));
  const name = basename(folded);
  if (isCredentialName(name)) return `${name} holds credentials`;
  if (OWN_NAME.test(name)) return `${name} is the service's configuration`;
  if (BACKUP_NAME.test(name) || isHookSettings(full)) return `${name} holds the hook's own settings`;
  if (OF_PROCESSES.test(folded) || isOpenElsewhere(folded)) return "it shows a process's variables or files";
  return null;
}

const isProtectedFile = (name: string, path: string): boolean =>
  reasonByName(`/${name}`) !== null || hasWrittenSecret(path);

/** True for files in which a client looks for its hooks. */
export function isHookSettings(path: string): boolean {
  const folded = foldPath(path.replaceAll("\\", "/"));
  return CLIENT_SETTINGS.some((end) => folded.endsWith(`/${end}`));
}

/** Whether a pattern of a search tool asks for credential files. Search tools also find hidden files. */
export function namesSecrets(pattern: string): boolean {
  return expandShellBraces(pattern).some((word) => {
    const name = basename(word);
    if (/^\**$/.test(name)) return false;
    return (
      reasonByName(`/${name}`) !== null ||
      SECRET_SAMPLES.some((sample) => shellGlobMatches(name, sample, true))
    );
  });
}

const LOOPBACK =
  /^(?:(?:.+\.)?localhost\.?|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::(?:1|ffff:(?:0:0|7f\w\w:\w+))?\])$/;
const ADDRESS = /(?:\[[\da-f:.]+\]|[\w.-]+)(?::\d+)?/gi;
/** Numbers such as `0` or `0.0`, which are an address in some positions and plain numbers in others. */
const SHORT_NUMBER = /^(?:0x[\da-f]+|\d+)(?:\.(?:0x[\da-f]+|\d+)){0,2}$/i;

/** Whether the text follows a host prefix or precedes a path, because programs accept addresses without a scheme. */
const isPlacedAsHost = (text: string, at: number, length: number): boolean =>
  /(?:\/\/|@)$/.test(text.slice(Math.max(0, at - 2), at)) || text[at + length] === "/";

/** Returns a test for the service's address in a text. A local address has many names and number formats. */
function addressOf(authority: string): (text: string) => boolean {
  const service = new URL(`http://${authority}`);
  const same = ({ hostname, port }: URL) =>
    (port === service.port || (service.port === "" && port === "443")) &&
    (hostname === service.hostname || (LOOPBACK.test(service.hostname) && LOOPBACK.test(hostname)));
  const names = (text: string): boolean => {
    // Fast path: most texts do not contain the port.
    if (!text.includes(service.port)) return false;
    for (const [url] of text.matchAll(/\b(?:https?|wss?):[^\s"'`<>]{1,2048}/gi))
      if (URL.canParse(url) && same(new URL(url))) return true;
    for (const { 0: one, index } of text.matchAll(ADDRESS)) {
      if (SHORT_NUMBER.test(one) && !isPlacedAsHost(text, index, one.length)) continue;
      if (URL.canParse(`http://${one}`) && same(new URL(`http://${one}`))) return true;
    }
    return false;
  };
  // To URL parsers, characters of other scripts are digits and letters, and line ends do not count.
  return (given) => {
    const text = given.normalize("NFKC");
    return names(text) || (/[\t\r\n]/.test(text) && names(text.replace(/[\t\r\n]/g, "")));
  };
}

/** How `svc connect` writes the gateway: as a command, or as an address with the agent's key. */
const GATEWAY_ENTRY = /(?:svc(?:\.js)?|takeback)["'\s,]+gateway\b|\bSVC_KEY\b/;

/** Returns a test for files that name the gateway or the service. */
function gatewayTest(authority: string): (path: string) => boolean {
  const service = addressOf(authority);
  return (path) => {
    const text = readTextOrNull(path);
    return text !== null && (GATEWAY_ENTRY.test(text) || service(text));
  };
}

const DECIDING_TEXT =
  /\b(?:svc|takeback)\b[^\n]{0,200}\b(?:approve|deny|halt|resume|rollback|keys|grants?|contain|resolve|kill-switch|reload|break-glass)\b|\/v1\/(?:approvals|halt|resume|keys|grants|contain|plans)\b/;

/** Deciding tools of the gateway's operator endpoint, in every spelling of an MCP tool. */
export const DECIDING_TOOL =
  /svc[._](?:approve|deny|halt|resume|execute_rollback|contain|grant|revoke|decide|resolve|export_evidence)/i;

const absolute = (text: string, home: string, cwd: string): string =>
  resolve(cwd, expandHome(text, home, cwd) ?? text);

/** The path of a file URL, parsed as browsers do. Null if the URL is invalid. */
function pathOf(url: string): string | null {
  try {
    return decodeURIComponent(new URL(url).pathname);
  } catch {
    return null;
  }
}

/** Plans the confinement of one run: the parts of the machine and the workspace that the command can see or write. */
import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, delimiter, dirname, join, relative, resolve } from "node:path";
import { rootCertificates } from "node:tls";
import type { ConfinementPlan } from "../../../child-process/confine/bwrap.ts";
import type { CredentialSpec } from "../../../config/sections/proxy.ts";
import { linkedRepositories } from "../../../hook/workspace/git-paths.ts";
import {
  decidingGitPaths,
  PROTECTED_FILES,
  PROTECTED_FOLDERS,
  type ProtectedTree,
} from "../../../hook/workspace/protected-tree.ts";
import { invalidError } from "../../../kernel/errors.ts";

const AGENT_UID = 1_000;
const TOP = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];
const SYSTEM_BUNDLES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/cert.pem",
];
const PASSED_ON = ["TERM", "COLORTERM", "LANG", "LC_ALL", "TZ", "NO_COLOR", "FORCE_COLOR"];

export const isBelow = (path: string, folder: string): boolean => {
  const way = relative(folder, path);
  return way === "" || (!way.startsWith("..") && !way.startsWith("/"));
};

/** The workspace, resolved. The home directory and its parents would expose too much. */
export function checkedWorkspace(path: string, home: string): string {
  if (!existsSync(path) || !lstatSync(realpathSync(path)).isDirectory())
    throw invalidError("--workspace: is not a directory");
  const workspace = realpathSync(path);
  if (isBelow(home, workspace) || workspace === "/")
    throw invalidError("--workspace: must not hold the home directory, which stays hidden");
  const top = workspace.split("/")[1]!;
  if (["usr", "etc", "proc", "sys", "dev", "run", "boot", ...TOP].includes(top))
    throw invalidError("--workspace: is a directory of the system");
  return workspace;
}

/** The program's real path, so that it finds its own files. Undefined if `PATH` does not have it. */
export function findProgram(name: string, env: Readonly<Record<string, string | undefined>>, cwd: string) {
  const paths = name.includes("/")
    ? [resolve(cwd, name)]
    : (env["PATH"] ?? "").split(delimiter).map((folder) => join(folder, name));
  return paths.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return lstatSync(realpathSync(path)).isFile();
    } catch {
      return false;
    }
  });
}

/** Mounts of a program outside of `/usr`: its package, or the file alone. */
export function placesOfProgram(path: string, workspace: string): string[] {
  const real = realpathSync(path);
  if (isBelow(real, "/usr") || isBelow(real, workspace) || /^\/(?:s?bin|lib\w*)\//.test(real)) return [];
  const at = real.indexOf("/node_modules/");
  return [at < 0 ? real : real.slice(0, at + "/node_modules".length)];
}

/** Paths that mounts need and that are not there. Removed again afterwards, if they are still empty. */
export class MountPlaceholders {
  private readonly made: string[] = [];

  folder(path: string): string {
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) {
      mkdirSync(path);
      this.made.push(path);
    }
    return path;
  }

  file(path: string): string {
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) {
      writeFileSync(path, "", { flag: "wx" });
      this.made.push(path);
    }
    return path;
  }

  remove(): void {
    for (const path of this.made.splice(0).reverse()) {
      const stats = lstatSync(path, { throwIfNoEntry: false });
      try {
        if (stats?.isDirectory()) rmdirSync(path);
        else if (stats?.isFile() && stats.size === 0) rmSync(path);
      } catch {
        // Another program put something there.
      }
    }
  }
}

/** Mounts that protect the workspace. `own`: the service's files and directories. */
export function protectWorkspace(
  workspace: string,
  tree: ProtectedTree,
  own: readonly string[],
  placeholders: MountPlaceholders,
): Pick<ConfinementPlan, "writable" | "read_only" | "hidden_files" | "hidden_folders"> {
  const read_only: string[] = [...tree.read_only];
  const hidden_files: string[] = [...tree.hidden, ...tree.sockets];
  const repositories = [...tree.repositories, ...linkedRepositories(workspace)];
  for (const name of PROTECTED_FOLDERS) {
    const path = join(workspace, name);
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) read_only.push(placeholders.folder(path));
  }
  for (const name of PROTECTED_FILES) {
    const path = join(workspace, name);
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) hidden_files.push(placeholders.file(path));
  }
  for (const repository of repositories)
    for (const path of decidingGitPaths(repository, workspace)) {
      if (existsSync(path)) read_only.push(path);
      else if (basename(path) === "hooks" && existsSync(dirname(path)))
        read_only.push(placeholders.folder(path));
      else if (basename(path) === "config.worktree") hidden_files.push(placeholders.file(path));
      else if (basename(path) === "attributes" && existsSync(dirname(path)))
        hidden_files.push(placeholders.file(path));
    }
  const within = own.filter((path) => isBelow(path, workspace) && path !== workspace && existsSync(path));
  const isFolder = (path: string) => lstatSync(path).isDirectory();
  const links = (path: string) => lstatSync(path).isSymbolicLink();
  return {
    // Separate mounts, which cannot be renamed and replaced.
    writable: repositories
      .flatMap((path) => [path, join(path, "info")])
      .filter((path) => existsSync(path))
      .map((path) => [path, path] as const),
    read_only: [...new Set(read_only)].filter((path) => !links(path)),
    hidden_files: [...new Set([...hidden_files, ...within.filter((path) => !isFolder(path))])].filter(
      (path) => !links(path),
    ),
    hidden_folders: within.filter(isFolder),
  };
}

/** Directories at the top of the machine that are links into `/usr`, and those that are not. */
export function topDirectories(): Pick<ConfinementPlan, "top_links" | "top_folders"> {
  const there = readdirSync("/").filter((name) => TOP.includes(name));
  const isLink = (name: string) => lstatSync(`/${name}`).isSymbolicLink();
  return {
    top_links: there.filter(isLink).map((name) => [readlinkSync(`/${name}`), `/${name}`] as const),
    top_folders: there.filter((name) => !isLink(name)).map((name) => `/${name}`),
  };
}

/** Files that the confined side sees instead of the machine's. */
export function writeRunFiles(folder: string, home: string, ca_pem: string): void {
  const uid = userOf() ?? process.getuid!();
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text, { mode: 0o644 });
  write(
    "passwd",
    `agent:x:${uid}:${uid}:agent:${home}:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n`,
  );
  write("group", `agent:x:${uid}:\nnogroup:x:65534:\n`);
  // Git must not take the placeholders of protected files for new ones.
  write("gitignore", PROTECTED_FILES.map((name) => `/${name}\n`).join(""));
  write("hosts", "127.0.0.1 localhost\n::1 localhost\n");
  const system = SYSTEM_BUNDLES.find((path) => existsSync(path));
  const trusted = system === undefined ? rootCertificates.join("\n") : readFileSync(system, "utf8");
  const extra = process.env["NODE_EXTRA_CA_CERTS"];
  const more = extra !== undefined && existsSync(extra) ? readFileSync(extra, "utf8") : "";
  write("ca.pem", `${ca_pem}${more}`);
  write("bundle.pem", `${trusted}\n${ca_pem}${more}`);
}

/** The system's list of authorities, for programs that read no variable. */
export const replacedBundles = (folder: string): [from: string, to: string][] =>
  SYSTEM_BUNDLES.filter((path) => path.startsWith("/etc/ssl/certs/") && existsSync(path)).map((path) => [
    join(folder, "bundle.pem"),
    realpathSync(path),
  ]);

/** Root is an ordinary user inside. */
export const userOf = (): number | undefined => (process.getuid?.() === 0 ? AGENT_UID : undefined);

interface ConfinedSide {
  readonly home: string;
  readonly node: string;
  readonly credentials: readonly CredentialSpec[];
  /** URL of the proxy. */
  readonly proxy: string;
  /** Directory of the files that `writeRunFiles` made. */
  readonly files: string;
}

/** Variables of the confined side: the proxy, its authority, and placeholders for credentials that it never holds. */
export function confinedEnv({ home, node, credentials, proxy, files }: ConfinedSide): Record<string, string> {
  const doors = Object.fromEntries(
    [
      "http_proxy",
      "https_proxy",
      "HTTP_PROXY",
      "HTTPS_PROXY",
      "ALL_PROXY",
      "npm_config_proxy",
      "npm_config_https_proxy",
    ].map((name) => [name, proxy]),
  );
  const bundle = Object.fromEntries(
    [
      "SSL_CERT_FILE",
      "REQUESTS_CA_BUNDLE",
      "CURL_CA_BUNDLE",
      "GIT_SSL_CAINFO",
      "AWS_CA_BUNDLE",
      "npm_config_cafile",
      "PIP_CERT",
    ].map((name) => [name, `${files}/bundle.pem`]),
  );
  const kept = PASSED_ON.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  const path = [...new Set(["/usr/local/bin", "/usr/bin", "/bin", dirname(node)])].join(":");
  return {
    ...placeholders(credentials),
    ...Object.fromEntries(kept),
    PATH: path,
    HOME: home,
    USER: "agent",
    LOGNAME: "agent",
    SHELL: "/bin/bash",
    TMPDIR: "/tmp",
    NODE_USE_ENV_PROXY: "1",
    NODE_EXTRA_CA_CERTS: `${files}/ca.pem`,
    SVC_SANDBOXED: "1",
    GIT_CONFIG_COUNT: "1",
    GIT_CONFIG_KEY_0: "core.excludesFile",
    GIT_CONFIG_VALUE_0: `${files}/gitignore`,
    ...doors,
    ...bundle,
  };
}

/** Values that make tools start. The proxy replaces the values that they send. */
function placeholders(credentials: readonly CredentialSpec[]): Record<string, string> {
  return Object.assign(
    {},
    ...credentials.map((credential) => {
      const { name, from, placeholders: named } = credential;
      const given = Object.fromEntries(
        (named ?? variablesOf(name, from)).map((one) => [one, `placeholder-${name}`]),
      );
      if (!("aws_sigv4" in credential)) return given;
      const { region } = credential.aws_sigv4;
      return {
        ...given,
        AWS_ACCESS_KEY_ID: "AKIAPLACEHOLDER00000",
        AWS_SECRET_ACCESS_KEY: "placeholder-the-proxy-signs-requests-000",
        AWS_REGION: region,
      };
    }),
  );
}

/** The variable that the proxy reads, or those that tools usually read for a service of this name. */
function variablesOf(name: string, from: CredentialSpec["from"]): string[] {
  if ("env" in from) return [from.env];
  const stem = name
    .toUpperCase()
    .replaceAll("-", "_")
    .replace(/^(?=\d)/, "_");
  return [`${stem}_TOKEN`, `${stem}_API_KEY`];
}

/** What well-known programs do, by name. A program that is named nowhere is unknown, which asks a person. */
import type { ShellClass } from "./classes.ts";
import { type ProgramRow, programRow, readOptions } from "./options.ts";
import { knownProgram } from "./tables.ts";

const named = (names: string): readonly string[] => names.trim().split(/\s+/);

/** What asks whatever its options are; programs that pass are in the tables, with every option. */
const BY_CLASS: Partial<Record<ShellClass, readonly string[]>> = {
  network: named(`
    curl wget nc ncat netcat telnet ftp sftp ssh scp rsync gh glab aws gcloud az heroku vercel netlify flyctl psql mysql
    mongosh redis-cli sqlite3 docker podman kubectl helm terraform pulumi ansible ansible-playbook ping dig nslookup
    host traceroute http https openssl`),
  packages: named(`
    pip pip3 pipx uv poetry conda brew apt apt-get dnf yum pacman apk snap gem bundle composer cpan nuget pod mise asdf
    nvm volta corepack npm pnpm yarn bun cargo go`),
  destructive: named(`
    rm rmdir unlink shred dd mkfs fdisk truncate kill pkill killall shutdown reboot halt poweroff chown chgrp crontab
    systemctl launchctl service iptables ufw mount umount userdel useradd passwd visudo at`),
};

const PROGRAMS: ReadonlyMap<string, ShellClass> = new Map(
  Object.entries(BY_CLASS).flatMap(([one, names]) => names.map((name) => [name, one as ShellClass] as const)),
);

/** Subcommands that ask, where the program's other ones are in the tables. */
const BY_WORD: Record<string, Partial<Record<ShellClass, readonly string[]>>> = {
  git: {
    network: named("fetch pull clone push ls-remote submodule"),
    destructive: named("clean reset rm gc prune filter-branch filter-repo update-ref"),
  },
  docker: { destructive: named("rm rmi prune kill system volume") },
  kubectl: { destructive: named("delete drain apply replace patch scale edit") },
  terraform: { destructive: named("apply destroy import state taint") },
};
const SAME: Record<string, string> = { pnpm: "npm", yarn: "npm", bun: "npm", pip3: "pip", podman: "docker" };

/** They stand before a program's command and have no value that could be taken for it. */
const BEFORE_COMMAND = /^(?:-[hpPqsvV]|--[\w-]+=.*|-chdir=.*|--(?:no-pager|paginate|silent|quiet|verbose))$/;

/** The word that says what the program does; undefined where another could be it. */
export function commandOf(texts: readonly string[]): string | undefined {
  const word = texts.find((text) => !BEFORE_COMMAND.test(text));
  return word?.startsWith("-") ? undefined : word;
}

/** What a program does with these words, as far as the tables know each of them. */
export function classesOf(program: string, texts: readonly string[]): ShellClass[] {
  const row = knownProgram(program);
  if (row === undefined && SAME[program] === undefined) return [PROGRAMS.get(program) ?? "unknown"];
  if (!hasCommands(program)) return row === undefined ? ["unknown"] : rowClasses(row, texts);
  const before = readOptions(row ?? NO_OPTIONS, texts, true);
  const [word, ...rest] = texts.slice(before.first);
  if (word === undefined) return [row?.class ?? "unknown", ...before.classes];
  return [...before.classes, ...commandClasses(program, word, rest)];
}

function commandClasses(program: string, word: string, rest: readonly string[]): ShellClass[] {
  const base = SAME[program] ?? program;
  const two = knownProgram(`${base} ${word} ${rest[0] ?? ""}`);
  if (two !== undefined) return rowClasses(two, rest.slice(1));
  const one = knownProgram(`${base} ${word}`);
  if (one !== undefined) return rowClasses(one, rest);
  for (const [kind, words] of Object.entries(BY_WORD[base] ?? {}))
    if (words.includes(word)) return [kind as ShellClass];
  return [PROGRAMS.get(program) ?? "unknown"];
}

const rowClasses = (row: ProgramRow, texts: readonly string[]): ShellClass[] => [
  row.class,
  ...readOptions(row, texts).classes,
];

/** The first plain word of these says what they do. */
const hasCommands = (program: string): boolean =>
  /^(?:git|npm|pnpm|yarn|bun|cargo|go|docker|podman|kubectl|terraform|pip3?)$/.test(program);
const NO_OPTIONS = programRow("unknown");

/** Options that make a harmless use of a program something else. */
const TURNED: readonly { program: RegExp; option: RegExp; into: ShellClass }[] = [
  {
    program: /^[gmn]?awk$/,
    option: /system\s*\(|getline|(?<!\|)\|(?!\|)|>(?!=)|@|ENVIRON|PROCINFO/,
    into: "unknown",
  },
  // A command that stands in an index is run, in quotes, too.
  {
    program: /^(?:test|\[\[?|printf|unset|export|local|readonly|expr)$/,
    option: /\[.*[$`]/s,
    into: "unknown",
  },
  {
    program: /^[jy]q$/,
    option: /\benv\b|\$ENV|\b(?:import|include|load\w*|strenv|envsubst|input_filename|\$__\w+)\b/,
    into: "unknown",
  },
  // Without a dash, or as -E, it is the letter for each process's environment.
  { program: /^ps$/, option: /^(?:[a-zA-Z]*e[a-zA-Z]*|-[a-zA-Z]*E[a-zA-Z]*)$/, into: "unknown" },
  // What they get is shown, and of these it is credentials.
  { program: /^(?:kubectl|oc)$/, option: /(?:^|[,/])secrets?(?:$|[,./])/i, into: "unknown" },
  // What an archive would overwrite stands in the archive; a name with a colon is on another machine.
  { program: /^tar$/, option: /^(?:-?[vzjJpk]*x[a-zA-Z]*|--extract|--get|[^/-][^/]*:.*)$/, into: "unknown" },
  { program: /^git$/, option: /^--(?:work-tree|git-dir|config-env)/, into: "unknown" },
  {
    program: /^git$/,
    option: /^(?:--hard|--force|--force-with-lease|--mirror|-[a-zA-Z]*[fD]|--delete|--exec-path.*)$/,
    into: "destructive",
  },
  { program: /^date$/, option: /^(?:-s|--set)/, into: "destructive" },
  { program: /^mv$|^cp$/, option: /^(?:--remove-destination)$/, into: "destructive" },
];

export function turnedInto(program: string, options: readonly string[]): ShellClass[] {
  return TURNED.filter(
    (turn) => turn.program.test(program) && options.some((text) => turn.option.test(text)),
  ).map(({ into }) => into);
}

/** Variables that programs obey: which program or library runs, with which options, configuration and home. */
const OBEYED =
  /^(?:PATH|IFS|PS[0-4]|ENV|BASH\w*|SHELL|SHELLOPTS|ZDOTDIR|FPATH|KSH_\w+|PROMPT_COMMAND|CDPATH|HOME|PWD|OLDPWD|GLOBIGNORE|FIGNORE|POSIXLY_CORRECT|LD_\w+|DYLD_\w+|GCONV_PATH|LOCPATH|NLSPATH|HOSTALIASES|GIT_\w+|SSH_\w+|GPG\w*|GNUPGHOME|\w*PAGER|LESS\w*|MORE|\w*EDITOR|VISUAL|BROWSER|NODE_(?!ENV$)\w+|npm_\w+|NPM_\w+|YARN_\w+|PNPM_\w+|BUN_\w+|COREPACK\w*|TS_NODE\w*|TSX_\w+|ESLINT_\w+|BABEL_\w+|PYTHON\w*|PIP_\w+|PYTEST_\w+|MYPY\w*|VIRTUAL_ENV|CONDA\w*|UV_\w+|PERL\w*|RUBY\w*|GEM_\w+|BUNDLE_\w+|LUA_\w+|PHP\w*|COMPOSER\w*|JAVA_\w*|_JAVA_OPTIONS|JDK_\w+|MAVEN_\w+|MVN_\w+|GRADLE_\w+|CLASSPATH|DOTNET_\w+|MSBUILD\w*|GO(?!OS$|ARCH$)[A-Z]\w*|CC|CXX|CPP|AR|AS|LD|\w*FLAGS|RUSTC\w*|RUSTDOC\w*|RUSTUP_\w+|CARGO_(?!TERM_)\w+|MAKE\w*|CMAKE_\w+|DOCKER_\w+|KUBE\w+|AWS_\w+|GOOGLE_\w+|AZURE_\w+|TF_\w+|XDG_\w+|TMPDIR|TAR_OPTIONS|GREP_\w+|RIPGREP_CONFIG_PATH|ACKRC|FZF_\w+|BAT_\w+|JQ_\w+|\w+_PROXY|\w+_proxy|SSL_\w+|CURL_\w+|REQUESTS_\w+|TERMINFO\w*|TERMCAP|DISPLAY|SVC_\w+)$/;

export const isObeyed = (variable: string): boolean => OBEYED.test(variable);

/** Without words of their own they print every variable. */
export const PRINT_VARIABLES = /^(?:set|export|readonly|local)$/;

/** Git commands that write or remove the files that are named. */
export const GIT_REWRITES = /^(?:checkout|restore|mv|rm|clean)$/;

/** Options with which git looks at files that are not in its index. */
export const GIT_UNINDEXED = /^--(?:no-ind|untr|no-exclude)/;

/** Git commands that run others: what follows the word, or stands with the option, is a command. */
export const GIT_RUNS = /^(?:run|foreach)$/;
export const GIT_RUNS_OPTION = /^(?:-x|--exe[a-z]*)(?:=|(?=[^-=])|$)(.*)$/s;

/** Options with which a search also reads hidden and ignored files. */
export const SEARCHES_ALL = /^(?:-[a-zA-Z]*[ug.]|--hidden|--no-ignore.*|--unrestricted|--i?glob.*|--all.*)/;

/** How many words of its own a wrapper has between its options and the program. */
export const WRAPPER_WORDS: Readonly<Record<string, number>> = {
  nohup: 0,
  time: 0,
  command: 0,
  builtin: 0,
  exec: 0,
  setsid: 0,
  nice: 0,
  ionice: 0,
  stdbuf: 0,
  caffeinate: 0,
  timeout: 1,
};

export const SHELLS = /^(?:sh|bash|zsh|dash|ksh|ash|fish)$/;
export const INTERPRETERS =
  /^(?:node|nodejs|tsx|ts-node|deno|python[0-9.]*|pypy3?|ruby|perl|php|lua|Rscript|osascript|pwsh|powershell)$/;
export const RUNNERS: Readonly<Record<string, readonly string[]>> = {
  npx: [],
  bunx: [],
  pnpx: [],
  npm: ["exec", "x"],
  pnpm: ["dlx", "exec"],
  yarn: ["dlx", "exec"],
  bun: ["x"],
};

export const RECURSIVE =
  /^(?:-[a-zA-Z]*[rR][a-zA-Z]*|--recursive|--dereference-recursive|(?:--directories=)?recurse)$/;
export const READS_TREES = /^(?:[ef]?grep|diff)$/;
/** They go through folders without being told to. */
export const SEARCHES_TREES = /^(?:rg|ag|ack)$/;
/** Programs that take whole trees. */
export const TREES = /^(?:rm|mv|cp|rsync|tar|zip|chmod|chown|chgrp|shred|ln)$/;
/** Programs that write into a folder that is named, or over the files in it. */
export const REWRITES = /^(?:install|patch|unzip)$/;
/** They print or keep the text that they are fed, and do nothing with it. */
export const KEEPS_TEXT = /^(?:cat|tee|git)$/;
/** To them `svc` is a kind of thing. */
export const OTHER_SVC = /^(?:kubectl|oc)$/;
export const DEVICES = /^\/dev\/(?:null|stdout|stderr|tty|fd\/\d+)$/;
export const SOCKETS = /^\/dev\/(?:tcp|udp)\//;

/** What an interpreter does with these words, as far as they tell. */
export function interpreted(name: string, texts: readonly string[]): ShellClass[] {
  const [first = "", second = "", ...rest] = texts;
  if (/^(?:--version|-V|-v)$/.test(first) && texts.length === 1) return ["read"];
  if (
    /^python/.test(name) &&
    first === "-m" &&
    /^(?:pytest|mypy|ruff|black|isort|flake8|pylint)$/.test(second)
  )
    return classesOf(second, rest);
  const tests =
    /^node/.test(name) && first === "--test" && texts.slice(1).every((text) => !text.startsWith("-"));
  const unit = /^python/.test(name) && first === "-m" && second === "unittest";
  if (tests || (unit && rest.every((text) => /^(?:-[vqfb]|discover|[^-].*)$/.test(text)))) return ["build"];
  return ["unknown"];
}

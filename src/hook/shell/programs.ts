/** Classes of well-known programs by name. A program without an entry is unknown and needs approval. */
import type { ShellClass } from "./classes.ts";
import { type ProgramRow, programRow, readOptions } from "./options.ts";
import { isReadingPsql } from "./rules/sql-select.ts";
import { hasSubcommands, knownProgram, knownSubcommand } from "./tables/tables.ts";

const named = (names: string): readonly string[] => names.trim().split(/\s+/);

/** Programs that need approval with any options. Allowed programs are in the tables, with every option. */
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

/** Subcommands that need approval, for programs whose other subcommands are in the tables. */
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

/** Options before a subcommand whose value cannot be confused with it. */
const BEFORE_COMMAND = /^(?:-[hpPqsvV]|--[\w-]+=.*|-chdir=.*|--(?:no-pager|paginate|silent|quiet|verbose))$/;

/** The subcommand of a program. Undefined if another word could be the subcommand. */
export function commandOf(texts: readonly string[]): string | undefined {
  const word = texts.find((text) => !BEFORE_COMMAND.test(text));
  return word?.startsWith("-") ? undefined : word;
}

/** Classes of a program with these words, as far as the tables know them. */
export function classesOf(program: string, texts: readonly string[]): ShellClass[] {
  if (program === "psql" && isReadingPsql(texts)) return ["read"];
  const row = knownProgram(program);
  if (row === undefined && SAME[program] === undefined) return [PROGRAMS.get(program) ?? "unknown"];
  if (!hasSubcommands(SAME[program] ?? program))
    return row === undefined ? ["unknown"] : rowClasses(row, texts);
  const before = readOptions(row ?? NO_OPTIONS, texts, true);
  const [word, ...rest] = texts.slice(before.first);
  if (word === undefined) return [row?.class ?? "unknown", ...before.classes];
  return [...before.classes, ...commandClasses(program, word, rest)];
}

function commandClasses(program: string, word: string, rest: readonly string[]): ShellClass[] {
  const base = SAME[program] ?? program;
  const words = [word, ...rest];
  const known = knownSubcommand(program, words) ?? knownSubcommand(base, words);
  if (known !== undefined) return rowClasses(known.row, words.slice(known.words));
  for (const [kind, words] of Object.entries(BY_WORD[base] ?? {}))
    if (words.includes(word)) return [kind as ShellClass];
  return [PROGRAMS.get(program) ?? "unknown"];
}

const rowClasses = (row: ProgramRow, texts: readonly string[]): ShellClass[] => [
  row.class,
  ...readOptions(row, texts).classes,
];

/** The row that applies to these words. Undefined for an unknown program or subcommand. */
export function rowOf(program: string, texts: readonly string[]): ProgramRow | undefined {
  const row = knownProgram(program);
  const base = SAME[program] ?? program;
  if (!hasSubcommands(base)) return row;
  const words = texts.slice(readOptions(row ?? NO_OPTIONS, texts, true).first);
  return (knownSubcommand(program, words) ?? knownSubcommand(base, words))?.row;
}

const CODING_AGENT =
  /^(?:@[\w.-]+\/)?(?:claude(?:-code)?|codex|gemini(?:-cli)?|cursor-agent|opencode(?:-ai)?|aider(?:-chat)?|qwen(?:-code)?|copilot|amp|goose|crush|cline|kilocode|droid|auggie)(?:@[^/]*)?$/i;

/** Whether a word names the program or the package of a coding agent, which makes its own calls. */
export const isCodingAgent = (word: string): boolean => CODING_AGENT.test(word);

const NO_OPTIONS = programRow("unknown");

const OUTWARD =
  "deploy|undeploy|redeploy|publish|unpublish|ship|push|upload|promote|provision|destroy|teardown|nuke|wipe|purge|drop|reset|seed|migrate|rollback|apply";
const ONLY_PRINTS = /^(?:-[a-zA-Z]*n|--dry-run|--just-print)$/;
/** Matches a task with such a verb in its name, also as the value of an option. */
const outwardTask = (verbs: string): RegExp =>
  new RegExp(`^(?:-[tes]|--targets?=)?(?:[\\w@./-]+[:#])?(?:\\w+[:_-])*(?:${verbs})(?:[:_-]\\w+)*$`);

/** Options that change the class of an otherwise harmless program. */
const TURNED: readonly { program: RegExp; option: RegExp; into: ShellClass; unless?: RegExp }[] = [
  // A comparison comes before the first `print`. After it, the sign writes to a file.
  {
    program: /^[gmn]?awk$/,
    option: /system\s*\(|getline|(?<!\|)\|(?!\|)|^(?:(?!print)[\s\S])*print[\s\S]*>(?!=)|@|ENVIRON|PROCINFO/,
    into: "unknown",
  },
  // The shell runs a command in an array index, even in quotes.
  {
    program: /^(?:test|\[\[?|printf|unset|export|local|readonly|expr)$/,
    option: /^[^[]*\[.*[$`]/s,
    into: "unknown",
  },
  {
    program: /^[jy]q$/,
    option: /\benv\b|\$ENV|\b(?:import|include|load\w*|strenv|envsubst|input_filename|\$__\w+)\b/,
    into: "unknown",
  },
  // Without a dash, or as -E, this letter shows the environment of each process.
  {
    program: /^gh$/,
    option: /\benv\b|\$ENV|:\/\/|^(?!repos\/)(?:-R|--repo=)?[\w.-]+\/[^/]+\/./,
    into: "unknown",
  },
  // A parameter can name a file or an address that the program reads.
  { program: /^aws$/, option: /(?:^|=)(?:fileb?|https?):\/\//, into: "unknown" },
  { program: /^ps$/, option: /^(?:[a-df-zA-Z]*e[a-zA-Z]*|-[a-zA-DF-Z]*E[a-zA-Z]*)$/, into: "unknown" },
  // The output contains credentials.
  { program: /^(?:kubectl|oc)$/, option: /(?:^|[,/])secrets?(?:$|[,./])/i, into: "unknown" },
  // The archive decides which files are overwritten. A name with a colon is on another machine.
  { program: /^tar$/, option: /^(?:-?[vzjJpk]*x[a-zA-Z]*|--extract|--get|[^/-][^/:]*:.*)$/, into: "unknown" },
  // The words of a program come from a file, or go to its assembler, linker or preprocessor.
  {
    program:
      /^(?:gcc|g\+\+|cc|c\+\+|clang(?:\+\+)?|javac|javap|jar|kotlinc|swiftc|rustc|ghc|tsc|vue-tsc|pytest|coverage|mypy|pylint|dotnet|nm|objdump|readelf|size|strings)$/,
    option: /^@/,
    into: "unknown",
  },
  { program: /^(?:gcc|g\+\+|cc|c\+\+|clang(?:\+\+)?)$/, option: /^-W[alp],/, into: "unknown" },
  // They name another program or script.
  {
    program: /^cmake$/,
    option:
      /^(?:-D)?CMAKE_\w*(?:COMPILER|LAUNCHER|LINKER|INCLUDE|TOOLCHAIN|EMULATOR|PROGRAM|RULE|CLANG_TIDY)/,
    into: "unknown",
  },
  { program: /^git$/, option: /^--(?:work-tree|git-dir|config-env)/, into: "unknown" },
  {
    program: /^git$/,
    option: /^(?:--hard|--force|--force-with-lease|--mirror|-[a-zA-Z]*[fD]|--delete|--exec-path.*)$/,
    into: "destructive",
  },
  // Scripts and targets whose name says that they change more than the workspace.
  {
    program: /^(?:make|npm|pnpm|yarn|bun|turbo|nx|lerna|tox|nox)$/,
    option: outwardTask(`release|${OUTWARD}`),
    into: "unknown",
    unless: ONLY_PRINTS,
  },
  {
    program: /^(?:make|cmake|ninja|meson|zig)$/,
    option: outwardTask("(?:un)?install"),
    into: "unknown",
    unless: ONLY_PRINTS,
  },
  { program: /^(?:cmake|ninja|meson|zig)$/, option: outwardTask(OUTWARD), into: "unknown" },
  // They rewrite files outside the output of builds.
  {
    program: /^(?:npm|pnpm|yarn|bun|turbo|nx|lerna|make|composer)$/,
    option:
      /^(?:--fix|--write|--update|--updateSnapshot|-u|(?:[\w-]+:)*(?:format|fmt|prettier|fix|generate|codegen|write)(?!:check$)(?::[\w:-]+)?|[\w:-]+-fix)$/,
    into: "format",
  },
  {
    program: /^(?:gradlew?|mvnw?)$/,
    option: /(?:^|:)(?:spotless:?apply|ktlint\w*Format)$/i,
    into: "format",
  },
  // Every user who starts such a program has its owner's rights.
  {
    program: /^(?:chmod|install)$/,
    option: /^(?:-m|--mode=)?(?:0?[2-7]\d{3}|(?:.*,)?[ugoa]*[+=][rwxXtugo]*s.*)$/,
    into: "unknown",
  },
  // It prints the variables of a container, and credentials are among them.
  { program: /^(?:docker|podman)$/, option: /^inspect$/, into: "unknown" },
  { program: /^date$/, option: /^(?:-s|--set)/, into: "destructive" },
  { program: /^mv$|^cp$/, option: /^(?:--remove-destination)$/, into: "destructive" },
];

export function classifyByOptions(program: string, options: readonly string[]): ShellClass[] {
  return TURNED.filter(
    ({ program: named, option, unless }) =>
      named.test(program) &&
      options.some((text) => option.test(text)) &&
      !options.some((text) => unless?.test(text)),
  ).map(({ into }) => into);
}

/** Variables that control programs: which program or library runs, its options, its configuration and its home. */
const OBEYED =
  /^(?:PATH|IFS|PS[0-4]|ENV|BASH\w*|SHELL|SHELLOPTS|ZDOTDIR|FPATH|KSH_\w+|PROMPT_COMMAND|CDPATH|HOME|PWD|OLDPWD|GLOBIGNORE|FIGNORE|POSIXLY_CORRECT|LD_\w+|DYLD_\w+|GCONV_PATH|LOCPATH|NLSPATH|HOSTALIASES|GIT_\w+|SSH_\w+|GPG\w*|GNUPGHOME|\w*PAGER|LESS\w*|MORE|\w*EDITOR|VISUAL|BROWSER|NODE_(?!ENV$)\w+|npm_\w+|NPM_\w+|YARN_\w+|PNPM_\w+|BUN_\w+|COREPACK\w*|TS_NODE\w*|TSX_\w+|ESLINT_\w+|BABEL_\w+|PYTHON\w*|PIP_\w+|PYTEST_\w+|MYPY\w*|VIRTUAL_ENV|CONDA\w*|UV_\w+|PERL\w*|RUBY\w*|GEM_\w+|BUNDLE_\w+|LUA_\w+|PHP\w*|COMPOSER\w*|JAVA_\w*|_JAVA_OPTIONS|JDK_\w+|MAVEN_\w+|MVN_\w+|GRADLE_\w+|CLASSPATH|DOTNET_\w+|MSBUILD\w*|GO(?!OS$|ARCH$)[A-Z]\w*|CC|CXX|CPP|AR|AS|LD|\w*FLAGS|RUSTC\w*|RUSTDOC\w*|RUSTUP_\w+|CARGO_(?!TERM_)\w+|MAKE\w*|CMAKE_\w+|DOCKER_\w+|KUBE\w+|AWS_\w+|GOOGLE_\w+|AZURE_\w+|TF_\w+|XDG_\w+|TMPDIR|TAR_OPTIONS|GREP_\w+|PG[A-Z]+|CLOUDSDK_\w+|GH_\w+|HELM_\w+|POETRY_\w+|PDM_\w+|PIPENV_\w+|DENO_\w+|RIPGREP_CONFIG_PATH|ACKRC|FZF_\w+|BAT_\w+|JQ_\w+|\w+_PROXY|\w+_proxy|SSL_\w+|CURL_\w+|REQUESTS_\w+|TERMINFO\w*|TERMCAP|DISPLAY|SVC_\w+)$/;

export const isControlVariable = (variable: string): boolean => OBEYED.test(variable);

/** Builtins that print every variable if they have no arguments. */
export const PRINT_VARIABLES = /^(?:set|export|readonly|local)$/;

/** Git commands that write or remove the named files. */
export const GIT_REWRITES = /^(?:checkout|restore|mv|rm|clean|worktree)$/;

/** Options that make git read files outside its index. */
export const GIT_UNINDEXED = /^--(?:no-ind|untr|no-exclude)/;

/** Git commands that run other commands, in the following words or in an option. */
export const GIT_RUNS = /^(?:run|foreach)$/;
export const GIT_RUNS_OPTION = /^(?:-x|--exe[a-z]*)(?:=|(?=[^-=])|$)(.*)$/s;

/** Options that make a search include hidden and ignored files. */
export const SEARCHES_ALL = /^(?:-[a-zA-Z]*[ug.]|--hidden|--no-ignore.*|--unrestricted|--i?glob.*|--all.*)/;

/** Number of a wrapper's own words between its options and the program. */
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

/** Programs that obey keys in a terminal, and can start others. Output to another program needs no terminal. */
export const OBEYS_KEYS =
  /^(?:less|more|most|man|help|bat|info|top|htop|vim?|nano|emacs|psql|sqlite3|bc|fzf|tig|gdb|lldb|git-gui|gitk)$/;

export const SHELL_PROGRAMS = /^(?:sh|bash|zsh|dash|ksh|ash|fish)$/;
export const INTERPRETER_PROGRAMS =
  /^(?:node|nodejs|tsx|ts-node|deno|python[0-9.]*|pypy3?|ruby|perl|php|lua|Rscript|osascript|pwsh|powershell)$/;
export const PACKAGE_RUNNERS: Readonly<Record<string, readonly string[]>> = {
  npx: [],
  bunx: [],
  pnpx: [],
  npm: ["exec", "x"],
  pnpm: ["dlx", "exec"],
  yarn: ["dlx", "exec"],
  bun: ["x"],
};

export const RECURSIVE_OPTION =
  /^(?:-[a-qs-zA-QS-Z]*[rR][a-zA-Z]*|--recursive|--dereference-recursive|(?:--directories=)?recurse)$/;
export const READS_TREES = /^(?:[ef]?grep|diff)$/;
/** Searches that descend into directories by default. */
export const SEARCHES_TREES = /^(?:rg|ag|ack)$/;
/** Programs that affect complete directory trees. */
export const AFFECTS_TREES = /^(?:rm|mv|cp|rsync|tar|zip|chmod|chown|chgrp|shred|ln)$/;
/** Programs that write into a named directory or overwrite its files. */
export const REWRITES_FILES = /^(?:install|patch|unzip)$/;
/** Programs that print or store their input without running it. */
export const KEEPS_TEXT = /^(?:cat|tee|git)$/;
/** Programs in whose arguments `svc` is a resource type. */
export const OTHER_SVC = /^(?:kubectl|oc)$/;
export const DEVICE_FILES = /^\/dev\/(?:null|stdout|stderr|tty|fd\/\d+)$/;
export const SOCKET_FILES = /^\/dev\/(?:tcp|udp)\//;

/** Classes of an interpreter with these words. */
export function interpreterClasses(name: string, texts: readonly string[]): ShellClass[] {
  const [first = "", second = "", ...rest] = texts;
  if (/^(?:--version|-V|-v)$/.test(first) && texts.length === 1) return ["read"];
  if (
    /^python/.test(name) &&
    first === "-m" &&
    /^(?:pytest|mypy|ruff|black|isort|flake8|pylint|bandit|vulture|pydocstyle)$/.test(second)
  )
    return [...classesOf(second, rest), ...classifyByOptions(second, rest)];
  // Both only translate files.
  const translates = /^python/.test(name) && first === "-m" && /^(?:compileall|py_compile)$/.test(second);
  if (translates && rest.every((text) => /^(?:-[qflr]|[^-].*)$/.test(text))) return ["build"];
  // `--check` only parses. Anything before the file could load another one.
  if (/^node/.test(name) && /^(?:--check|-c)$/.test(first) && texts.length === 2 && /^[^-]/.test(second))
    return ["read"];
  if (/^python3?$/.test(name) && first === "-m" && isHarmlessModule(second, rest)) return ["build"];
  if (name === "ruby" && /^-w?c$/.test(first) && texts.slice(1).every((text) => !text.startsWith("-")))
    return ["build"];
  if (name === "php" || (name === "deno" && /^[a-z]/.test(first))) return classesOf(name, texts);
  const tests =
    /^node/.test(name) && first === "--test" && texts.slice(1).every((text) => !text.startsWith("-"));
  const unit = /^python/.test(name) && first === "-m" && second === "unittest";
  if (
    tests ||
    (unit &&
      rest.every((text) =>
        /^(?:-[vqfbcstpk]|--(?:verbose|quiet|failfast|buffer|catch|locals)|[^-].*)$/.test(text),
      ))
  )
    return ["build"];
  return ["unknown"];
}

/** Modules of Python that print a file again, or set up an environment without a download. */
function isHarmlessModule(name: string, texts: readonly string[]): boolean {
  const options = texts.filter((text) => text.startsWith("-"));
  const files = texts.filter((text) => !text.startsWith("-"));
  if (name === "json.tool")
    // A second file is written.
    return (
      files.length <= 1 &&
      options.every((text) =>
        /^--(?:sort-keys|compact|tab|no-indent|no-ensure-ascii|json-lines|indent=\d+)$/.test(text),
      )
    );
  return (
    name === "venv" &&
    files.length === 1 &&
    /^[\w.][\w.-]*$/.test(files[0]!) &&
    files[0] !== "." &&
    options.every((text) =>
      /^--(?:system-site-packages|without-pip|copies|symlinks|prompt=[\w-]+)$/.test(text),
    )
  );
}

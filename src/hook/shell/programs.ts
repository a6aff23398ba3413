/** What well-known programs do, by name. A program that stands nowhere here is unknown, which asks a person. */

/** From the harmless to what a person should look at; a command is as bad as its worst part. */
const CLASSES = ["read", "build", "write", "vcs", "network", "packages", "unknown", "destructive"] as const;
export type ShellClass = (typeof CLASSES)[number];

export const worst = (classes: readonly ShellClass[]): ShellClass =>
  CLASSES[Math.max(0, ...classes.map((one) => CLASSES.indexOf(one)))]!;

const named = (names: string): readonly string[] => names.trim().split(/\s+/);

const BY_CLASS: Partial<Record<ShellClass, readonly string[]>> = {
  read: named(`
    ls cat head tail less more grep egrep fgrep rg ag ack wc sort uniq cut tr diff cmp comm file stat du df pwd echo
    printf true false which whereis type date whoami id uname hostname ps tree realpath readlink basename dirname test
    [ [[ : sleep cd pushd popd unset umask wait jobs seq jq yq column nl tac rev fold fmt paste join md5sum sha1sum
    sha256sum shasum cksum xxd hexdump od strings man help cal bc expr tput clear locale getconf nproc free uptime
    export local readonly return exit break continue shift set tokei cloc fd bat sed awk gawk find`),
  build: named(`
    make cmake ninja meson bazel tsc vitest jest mocha ava eslint biome prettier stylelint webpack vite rollup esbuild
    tsup turbo nx pytest mypy ruff black flake8 pylint isort tox nox rustc rustfmt gofmt golangci-lint javac mvn gradle
    gradlew sbt dotnet phpunit rspec rubocop shellcheck hadolint gcc g++ clang cc ctest swiftc playwright cypress`),
  write: named(`
    mkdir touch cp mv ln tee install tar zip gzip gunzip bzip2 xz zstd chmod split csplit ed mktemp`),
  network: named(`
    curl wget nc ncat netcat telnet ftp sftp ssh scp rsync gh glab aws gcloud az heroku vercel netlify flyctl psql mysql
    mongosh redis-cli sqlite3 docker podman kubectl helm terraform pulumi ansible ansible-playbook ping dig nslookup
    host traceroute http https openssl`),
  packages: named(`
    pip pip3 pipx uv poetry conda brew apt apt-get dnf yum pacman apk snap gem bundle composer cpan nuget pod mise asdf
    nvm volta corepack`),
  destructive: named(`
    rm rmdir unlink shred dd mkfs fdisk truncate kill pkill killall shutdown reboot halt poweroff chown chgrp crontab
    systemctl launchctl service iptables ufw mount umount userdel useradd passwd visudo at`),
};

export const PROGRAMS: ReadonlyMap<string, ShellClass> = new Map(
  Object.entries(BY_CLASS).flatMap(([one, names]) => names.map((name) => [name, one as ShellClass] as const)),
);

/** Programs whose first word says what they do; what is not listed there is the program's own class. */
const BY_WORD: Record<string, Partial<Record<ShellClass, readonly string[]>>> = {
  git: {
    read: named(`
      status log diff show blame ls-files ls-tree rev-parse describe shortlog grep cat-file for-each-ref reflog version
      help whatchanged name-rev merge-base check-ignore count-objects`),
    vcs: named(`
      add commit checkout switch branch merge rebase tag cherry-pick revert init mv restore worktree bisect notes`),
    network: named("fetch pull clone push remote ls-remote submodule"),
    destructive: named("clean reset rm gc prune filter-branch filter-repo update-ref"),
  },
  npm: {
    build: named("test t run run-script start"),
    read: named("ls list view info outdated explain why root prefix bin help pack"),
  },
  cargo: {
    build: named("build b check c test t bench clippy fmt doc run r"),
    read: named("tree metadata version search"),
  },
  go: {
    build: named("build test vet fmt run generate"),
    read: named("version list env doc"),
  },
  docker: {
    read: named("ps images logs inspect version info"),
    destructive: named("rm rmi prune kill system volume"),
  },
  kubectl: {
    read: named("get describe logs version"),
    destructive: named("delete drain apply replace patch scale edit"),
  },
  terraform: {
    read: named("plan validate fmt show version"),
    destructive: named("apply destroy import state taint"),
  },
  pip: { read: named("list show freeze check") },
};
const SAME: Record<string, string> = { pnpm: "npm", yarn: "npm", bun: "npm", pip3: "pip", podman: "docker" };
/** Where the first word is not listed. */
const OTHERWISE: Record<string, ShellClass> = {
  git: "unknown",
  npm: "packages",
  cargo: "packages",
  go: "packages",
  docker: "network",
  kubectl: "network",
  terraform: "network",
  pip: "packages",
};

/** They stand before a program's command and have no value that could be taken for it. */
const BEFORE_COMMAND = /^(?:-[hpPqsvV]|--[\w-]+=.*|-chdir=.*|--(?:no-pager|paginate|silent|quiet|verbose))$/;

/** The word that says what the program does; undefined where another could be it. */
export function commandOf(texts: readonly string[]): string | undefined {
  const word = texts.find((text) => !BEFORE_COMMAND.test(text));
  return word?.startsWith("-") ? undefined : word;
}

/** Undefined where the program is not one whose first word counts. */
export function byFirstWord(program: string, texts: readonly string[]): ShellClass | undefined {
  const table = BY_WORD[SAME[program] ?? program];
  if (table === undefined) return undefined;
  const word = commandOf(texts);
  if (word === undefined && texts.some((text) => !text.startsWith("-"))) return "unknown";
  for (const [one, words] of Object.entries(table))
    if (word !== undefined && words.includes(word)) return one as ShellClass;
  return word === undefined ? "read" : OTHERWISE[SAME[program] ?? program];
}

/** Options that make a harmless use of a program something else. */
const TURNED: readonly { program: RegExp; option: RegExp; into: ShellClass }[] = [
  { program: /^sed$/, option: /^(?:-[a-zA-Z]*i|--in-place)/, into: "write" },
  { program: /^sort$/, option: /^(?:-[a-zA-Z]*o|--output)/, into: "write" },
  { program: /^g?awk$/, option: /system\s*\(|getline|[|>]|ENVIRON/, into: "unknown" },
  // A command that stands in an index is run, in quotes, too.
  { program: /^(?:test|\[\[?|printf|unset|export|local|readonly)$/, option: /\[.*[$`]/s, into: "unknown" },
  { program: /^[jy]q$/, option: /\benv\b|\$ENV/, into: "unknown" },
  // Without a dash, or as -E, it is the letter for each process's environment.
  { program: /^ps$/, option: /^(?:[a-zA-Z]*e[a-zA-Z]*|-[a-zA-Z]*E[a-zA-Z]*)$/, into: "unknown" },
  // What they get is shown, and of these it is credentials.
  { program: /^(?:kubectl|oc)$/, option: /(?:^|[,/])secrets?(?:$|[,./])/i, into: "unknown" },
  { program: /^rg$/, option: /^--(?:pre|hostname-bin)(?:=|$)/, into: "unknown" },
  { program: /^sort$/, option: /^--comp/, into: "unknown" },
  // What an archive would overwrite stands in the archive.
  {
    program: /^tar$/,
    option:
      /^(?:-?[vzjJpk]*x[a-zA-Z]*|--extract|--get|-[a-zA-Z]*[IF]|--(?:use-compress|to-command|checkpoint-action|info-script|new-volume).*)$/,
    into: "unknown",
  },
  { program: /^git$/, option: /^--(?:work-tree|git-dir|config-env)/, into: "unknown" },
  { program: /^sed$/, option: /(?:^|[;{}\d\s/])[ewW]\s*(?:\s\S|$)/, into: "unknown" },
  // What their script says stands in a file.
  { program: /^(?:sed|g?awk)$/, option: /^(?:-[nErsuz]*f|--file)/, into: "unknown" },
  // The program that they are to run the others with.
  { program: /^make$/, option: /^(?:SHELL|\.SHELLFLAGS)\s*[:?+]?=|^--eval/, into: "unknown" },
  { program: /^go$/, option: /^--?(?:exec|toolexec)\b/, into: "unknown" },
  { program: /^cargo$/, option: /^--config/, into: "unknown" },
  { program: /^git$/, option: /^(?:-O|--open)/, into: "unknown" },
  { program: /^find$/, option: /^-delete$/, into: "destructive" },
  { program: /^find$/, option: /^-fprint/, into: "write" },
  { program: /^fd$/, option: /^(?:-[a-zA-Z]*[xX]|--exec)/, into: "unknown" },
  {
    program: /^git$/,
    option: /^(?:--hard|--force|--force-with-lease|--mirror|-[a-zA-Z]*[fD]|--delete|-c|--exec-path.*)$/,
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

/** Variables that make a program run something else. */
export const TURNING =
  /^(?:PATH|LD_\w+|DYLD_\w+|NODE_OPTIONS|BASH_ENV|ENV|GIT_\w+|PYTHON\w*|PERL5\w*|RUBYOPT|IFS|PROMPT_COMMAND|POSIXLY_CORRECT|SHELLOPTS|SVC_\w+|EDITOR|PAGER|VISUAL)=/;

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

/** Running these runs what comes after them; the number says how many of their own words to pass over. */
export const WRAPPERS: Readonly<Record<string, number>> = {
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
/** Options of the wrappers that take a value. */
const WRAPPER_VALUES = /^(?:-n|-c|-p|-s|-k|-u|-o|-i|-e|--signal|--kill-after|--adjustment)$/;

/** `{}` stands for what `find` and `xargs` put there. */
export const isWritten = ({ text }: { text: string }): boolean => text !== "{}";

export const ASSIGNMENT = /^[A-Za-z_]\w*=/;

/** The words from the wrapped program on. */
export function afterOptions<W extends { text: string }>(words: readonly W[], skip: number): readonly W[] {
  let at = 0;
  while (at < words.length && (words[at]!.text.startsWith("-") || ASSIGNMENT.test(words[at]!.text)))
    at += WRAPPER_VALUES.test(words[at]!.text) ? 2 : 1;
  return words.slice(at + skip);
}

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
export function interpreted(name: string, [first = "", second = ""]: readonly string[]): ShellClass {
  if (/^(?:--version|-V|-v)$/.test(first)) return "read";
  const tests = name.startsWith("python") && first === "-m";
  if (tests && /^(?:pytest|unittest|mypy|ruff|black)$/.test(second)) return "build";
  return /^node/.test(name) && first === "--test" ? "build" : "unknown";
}

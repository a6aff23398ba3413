/** The arguments of bubblewrap for one confined command. A pure function over the plan. */

/** What a confined command sees of the machine. All paths are absolute and resolved. */
export interface ConfinementPlan {
  readonly workspace: string;
  readonly home: string;
  /** Directory with the generated files: `passwd`, `group`, `hosts`, `ca.pem`, `bundle.pem`, `empty`. */
  readonly run_folder: string;
  /** Writable mounts: copies of a client's state, and the repository's own directory. */
  readonly writable: readonly (readonly [from: string, to: string])[];
  /** Files mounted over others, read-only. */
  readonly replaced: readonly (readonly [from: string, to: string])[];
  /** Read-only where they are. */
  readonly read_only: readonly string[];
  /** Files that appear empty. */
  readonly hidden_files: readonly string[];
  /** Directories that appear empty. */
  readonly hidden_folders: readonly string[];
  /** Arguments for the socket of hook events; empty without hooks. */
  readonly hook_mounts: readonly string[];
  /** Programs outside of `/usr`. */
  readonly programs: readonly string[];
  readonly top_links: readonly (readonly [target: string, path: string])[];
  readonly top_folders: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly new_session: boolean;
  readonly as_user: number | undefined;
}

export const RUN_PLACE = "/run/svc";
const ETC = [
  "ssl/certs",
  "alternatives",
  "ld.so.cache",
  "localtime",
  "nsswitch.conf",
  "mime.types",
  "protocols",
  "services",
];

export function bwrapArguments(plan: ConfinementPlan): string[] {
  const { run_folder, home, workspace } = plan;
  const each = <T>(list: readonly T[], make: (one: T) => string[]) => list.flatMap(make);
  return [
    ...[
      "--unshare-user",
      "--unshare-pid",
      "--unshare-net",
      "--unshare-ipc",
      "--unshare-uts",
      "--unshare-cgroup-try",
    ],
    ...["--hostname", "agent", "--disable-userns", "--die-with-parent", "--cap-drop", "ALL", "--clearenv"],
    ...(plan.new_session ? ["--new-session"] : []),
    ...(plan.as_user === undefined ? [] : ["--uid", String(plan.as_user), "--gid", String(plan.as_user)]),
    ...["--ro-bind", "/usr", "/usr"],
    ...each(plan.top_links, ([target, path]) => ["--symlink", target, path]),
    ...each(plan.top_folders, (path) => ["--ro-bind", path, path]),
    ...["--dir", "/etc"],
    ...each(["passwd", "group", "hosts"], (name) => ["--ro-bind", `${run_folder}/${name}`, `/etc/${name}`]),
    ...each(ETC, (name) => ["--ro-bind-try", `/etc/${name}`, `/etc/${name}`]),
    ...["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev"],
    ...[
      "--size",
      String(1_024 ** 3),
      "--tmpfs",
      "/tmp",
      "--size",
      String(64 * 1_024 ** 2),
      "--tmpfs",
      "/run",
    ],
    ...["--size", String(256 * 1_024 ** 2), "--tmpfs", "/dev/shm"],
    ...["--size", String(1_024 ** 3), "--tmpfs", home],
    ...plan.hook_mounts,
    ...each(plan.programs, (path) => ["--ro-bind", path, path]),
    ...["--bind", workspace, workspace],
    ...each(plan.writable, ([from, to]) => ["--bind", from, to]),
    ...each(plan.read_only, (path) => ["--ro-bind", path, path]),
    ...each(plan.hidden_folders, (path) => ["--size", "4096", "--tmpfs", path, "--remount-ro", path]),
    ...each(plan.hidden_files, (path) => ["--ro-bind", "/dev/null", path]),
    ...each(plan.replaced, ([from, to]) => ["--ro-bind", from, to]),
    ...each(["ca.pem", "bundle.pem", "gitignore"], (name) => [
      "--ro-bind",
      `${run_folder}/${name}`,
      `${RUN_PLACE}/${name}`,
    ]),
    ...["--remount-ro", "/run", "--remount-ro", "/dev", "--remount-ro", "/"],
    ...each(Object.entries(plan.env), ([name, value]) => ["--setenv", name, value]),
    ...["--chdir", workspace, "--seccomp", "5"],
  ];
}

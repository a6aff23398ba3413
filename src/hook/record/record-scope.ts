/** Which paths of a workspace a record holds: the exclusions, and the few files of `.git` that name the checked-out commit. */

/** Settings of a record, from `snapshot` in the hook's settings. */
export interface SnapshotSettings {
  max_file: number;
  max_total: number;
  exclude: readonly string[];
  required: boolean;
}

/** Directories that a command rebuilds. One in which git tracks a file is recorded. */
export const REBUILT_DIRECTORIES: readonly string[] = [
  "node_modules",
  "bower_components",
  "target",
  ".venv",
  "venv",
  "__pycache__",
  ".tox",
  ".nox",
  ".eggs",
  "*.egg-info",
  ".gradle",
  ".m2",
  ".ivy2",
  ".cargo",
  ".bundle",
  ".cache",
  ".pytest_cache",
  ".mypy_cache",
  ".ruff_cache",
  ".parcel-cache",
  ".turbo",
  ".next",
  ".nuxt",
  ".svelte-kit",
  ".angular",
  ".terraform",
  ".dart_tool",
  "DerivedData",
  "bazel-*",
  ".ccache",
  ".yarn",
  ".pnpm-store",
];

export const SNAPSHOT_DEFAULTS: SnapshotSettings = {
  max_file: 20 * 1_024 * 1_024,
  max_total: 2 * 1_024 * 1_024 * 1_024,
  exclude: REBUILT_DIRECTORIES,
  required: false,
};

/** Whether a directory's path matches an exclusion: by its name, or by its path if the exclusion has a slash. */
export function createExclusionTest(exclude: readonly string[]): (path: string) => boolean {
  const source = exclude
    .map((one) => one.replace(/^\.?\/+|(?<!\/)\/+$/g, ""))
    .filter((one) => one !== "")
    .map((one) => {
      const pattern = one.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", "[^/]*");
      return one.includes("/") ? `^${pattern}$` : `(?:^|/)${pattern}$`;
    })
    .join("|");
  if (source === "") return () => false;
  const test = new RegExp(source);
  return (path) => test.test(path);
}

/** Excluded directories that hold a tracked file, with all directories between, so that they are recorded. */
export function trackedExclusions(
  tracked: readonly string[],
  isExcluded: (path: string) => boolean,
): Set<string> {
  const found = new Set<string>();
  const seen = new Map<string, boolean>();
  for (const path of tracked)
    for (let cut = path.indexOf("/"); cut > 0; cut = path.indexOf("/", cut + 1)) {
      const folder = path.slice(0, cut);
      const excluded = seen.get(folder) ?? isExcluded(folder);
      seen.set(folder, excluded);
      if (excluded) found.add(folder);
    }
  return found;
}

const GIT_FOLDER = ".git";
const GIT_KEPT = new Set(["HEAD", "refs", "packed-refs", "index", "config", "logs"]);

/** Whether a record holds this path of a `.git` directory. Undefined for a path that is not in one. */
export function isKeptOfGit(path: string): boolean | undefined {
  const at =
    path === GIT_FOLDER || path.startsWith(`${GIT_FOLDER}/`) ? 0 : path.indexOf(`/${GIT_FOLDER}/`) + 1;
  if (at === 0 && !path.startsWith(`${GIT_FOLDER}/`)) return undefined;
  const [first = "", ...rest] = path.slice(at + GIT_FOLDER.length + 1).split("/");
  if (!GIT_KEPT.has(first)) return false;
  if (first !== "logs") return true;
  return rest.length === 0 || rest.join("/") === "refs" || rest.join("/") === "refs/stash";
}

export const isGitIndex = (path: string): boolean => path === ".git/index" || path.endsWith("/.git/index");

/** Directories that builds and tests write, besides what git ignores. */
const BUILD_OUTPUT =
  /(?:^|\/)(?:dist|build|out|output|bin|obj|target|coverage|htmlcov|\.nyc_output|\.coverage|reports?|test-results|playwright-report|__pycache__|__snapshots__|storybook-static|_build|cmake-build-[^/]*|CMakeFiles|pkg|lib-esm|esm|cjs|\.[a-z]+_cache|\.next|\.nuxt|\.output|\.turbo|\.svelte-kit|[^/]*\.egg-info)(?:\/|$)|\.(?:o|a|so|d|pyc|pyo|class|tsbuildinfo|gcda|gcno|profraw|lcov|log|tmp)$/;

/** Whether builds write there by their nature. */
export const isBuildOutput = (path: string): boolean => BUILD_OUTPUT.test(path);

/** The layers of the source: which may import which. The order is the one in CONTRIBUTING.md. */
import type { SourceFile } from "../files.ts";
import { findCycles, importsOf } from "./imports.ts";

interface Layer {
  readonly name: string;
  readonly folders: readonly string[];
  /** How the folders of one layer see each other: in the order given, freely, or not at all. */
  readonly within: "ordered" | "free" | "apart";
}

export const LAYERS: readonly Layer[] = [
  { name: "kernel", folders: ["kernel"], within: "free" },
  { name: "rules", folders: ["rules"], within: "free" },
  { name: "core", folders: ["ledger", "govern", "rollback", "simulate"], within: "ordered" },
  {
    name: "infrastructure",
    folders: ["store", "config", "auth", "egress", "telemetry", "child-process"],
    within: "free",
  },
  {
    name: "features",
    folders: ["evidence", "capture", "retention", "alerts", "notify", "registry"],
    within: "apart",
  },
  { name: "operations", folders: ["operations"], within: "free" },
  { name: "service", folders: ["service"], within: "free" },
  { name: "api", folders: ["http/api"], within: "free" },
  { name: "surfaces", folders: ["http", "console", "gateway", "library", "hook", "proxy"], within: "apart" },
  { name: "processes", folders: ["service/start", "cli"], within: "ordered" },
  { name: "adapters", folders: ["adapters"], within: "free" },
];

/** Directories that are a separate layer although they lie in another one's directory. */
const INNER_FOLDERS = LAYERS.flatMap(({ folders }) => folders).filter((folder) => folder.includes("/"));

/** The parts of src/operations, in their order. Every part may use app.ts, which holds types alone. */
const APP = "src/operations/app.ts";
const OPERATION_PARTS = ["worker", "pipeline", "background", "operations"];

const CONCRETE_STORE = /^src\/store\/(memory|files|sqlite|postgres)\//;

export function folderOf(path: string): string | undefined {
  const inner = INNER_FOLDERS.find((folder) => path.startsWith(`src/${folder}/`));
  return inner ?? /^src\/([^/]+)\//.exec(path)?.[1];
}

export function layerProblems(files: readonly SourceFile[]): string[] {
  return files.flatMap((file) =>
    importsOf(file).flatMap(({ target, typeOnly, line }) => {
      if (target === undefined) return [];
      const problem = arrowProblem(file.path, target, typeOnly);
      return problem === undefined ? [] : [`${file.path}:${line} imports ${target}: ${problem}`];
    }),
  );
}

export function arrowProblem(from: string, to: string, typeOnly: boolean): string | undefined {
  if (!to.startsWith("src/")) return "shipped code imports only from src/; move what it needs there";
  const store = CONCRETE_STORE.exec(to)?.[1];
  if (store !== undefined && !from.startsWith(`src/store/${store}/`) && from !== "src/store/open.ts") {
    return "only src/store/open.ts names a concrete store; ask it for one, or take the Store as a parameter";
  }
  const source = folderOf(from);
  const target = folderOf(to);
  if (source === "operations" && target === "operations") return partProblem(from, to, typeOnly);
  if (source === undefined || source === target) return undefined;
  const fromLayer = LAYERS.findIndex(({ folders }) => folders.includes(source));
  if (fromLayer < 0)
    return `the folder src/${source} belongs to no layer; add it in test/support/tidy/layers.ts`;
  if (target === undefined) return "nothing imports the library's entry; import the part itself";
  const toLayer = LAYERS.findIndex(({ folders }) => folders.includes(target));
  if (toLayer < 0)
    return `the folder src/${target} belongs to no layer; add it in test/support/tidy/layers.ts`;
  if (toLayer < fromLayer) return undefined;
  if (toLayer > fromLayer) {
    return `${LAYERS[fromLayer]!.name} may not know ${LAYERS[toLayer]!.name}; take what you need as a parameter, or move it to the left`;
  }
  const { name, folders, within } = LAYERS[fromLayer]!;
  if (within === "free" || (within === "ordered" && folders.indexOf(target) < folders.indexOf(source)))
    return;
  return within === "apart"
    ? `${name} do not import one another; let ${name === "surfaces" ? "src/service/start" : "src/service"} bring them together`
    : `within ${name} the order is ${folders.join(" <- ")}; take what you need as a parameter`;
}

function partProblem(from: string, to: string, typeOnly: boolean): string | undefined {
  if (to === APP) return undefined;
  if (from === APP)
    return typeOnly ? undefined : "src/operations/app.ts holds types alone; only src/service makes the app";
  return partOf(to) <= partOf(from)
    ? undefined
    : `within operations the order is ${OPERATION_PARTS.join(" <- ")}; take what you need as a parameter`;
}

/** Position of a file's part; every subject folder belongs to the last one. */
function partOf(path: string): number {
  const part = OPERATION_PARTS.indexOf(path.split("/")[2]!);
  return part < 0 ? OPERATION_PARTS.length - 1 : part;
}

/** Rings of files, and rings of folders. */
export function cycleProblems(files: readonly SourceFile[]): string[] {
  const byFile = new Map<string, string[]>();
  const byFolder = new Map<string, Set<string>>();
  for (const file of files) {
    const arrows = importsOf(file).filter(({ target }) => target !== undefined);
    byFile.set(
      file.path,
      arrows.map(({ target }) => target!),
    );
    const folder = folderOf(file.path);
    if (folder === undefined) continue;
    const others = byFolder.get(folder) ?? new Set<string>();
    byFolder.set(folder, others);
    for (const { target } of arrows) {
      const other = folderOf(target!);
      if (other !== undefined && other !== folder) others.add(other);
    }
  }
  const advice = "move what both need into a file of its own, to the left of both";
  return [...findCycles(byFile), ...findCycles(byFolder)].map(
    (ring) => `${[...ring, ring[0]].join(" -> ")}: an import cycle; ${advice}`,
  );
}

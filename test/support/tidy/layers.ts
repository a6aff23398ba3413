/** The layers of the house: who may import whom. The order is the one in CONTRIBUTING.md. */
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
  { name: "model", folders: ["model"], within: "free" },
  { name: "core", folders: ["ledger", "port", "engine", "rollback", "sandbox"], within: "ordered" },
  {
    name: "infrastructure",
    folders: ["store", "config", "auth", "egress", "telemetry", "process"],
    within: "free",
  },
  {
    name: "features",
    folders: ["evidence", "capture", "retention", "alerts", "notify", "registry"],
    within: "apart",
  },
  { name: "app", folders: ["app"], within: "free" },
  { name: "api", folders: ["api"], within: "free" },
  { name: "surfaces", folders: ["http", "console", "gateway", "library", "hook"], within: "apart" },
  { name: "processes", folders: ["serve", "cli"], within: "ordered" },
  { name: "adapters", folders: ["adapters"], within: "free" },
];

/** The rooms of src/app, in their order: each knows those before it. What all of them see is app.ts, a type. */
const APP = "src/app/app.ts";
const ROOMS = ["sandbox", "door", "background", "operations", "wiring"];

const CONCRETE_STORE = /^src\/store\/(memory|files|sqlite|postgres)\//;

export function folderOf(path: string): string | undefined {
  return /^src\/([^/]+)\//.exec(path)?.[1];
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
  if (source === "app" && target === "app") return roomProblem(from, to, typeOnly);
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
    ? `${name} do not import one another; let ${name === "surfaces" ? "src/serve" : "src/app/wiring"} bring them together`
    : `within ${name} the order is ${folders.join(" <- ")}; take what you need as a parameter`;
}

function roomProblem(from: string, to: string, typeOnly: boolean): string | undefined {
  const [source, target] = [from, to].map((path) => ROOMS.indexOf(path.split("/")[2]!));
  if (to === APP) return undefined;
  if (target === -1 || (source === -1 && from !== APP))
    return `the rooms of src/app are ${ROOMS.join(", ")}; put the file into one of them`;
  if (from === APP)
    return typeOnly ? undefined : "src/app/app.ts says what is running; only src/app/wiring makes it";
  return target! <= source!
    ? undefined
    : `within app the order is ${ROOMS.join(" <- ")}; take what you need as a parameter`;
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

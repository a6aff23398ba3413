/** The jobs of a workspace's thread. */
import type { WindowEnd } from "./recorder.ts";

export type RecorderJob =
  | { do: "warm" | "save" }
  | { do: "begin" | "drop"; window: string }
  | ({ do: "end" } & WindowEnd)
  | { do: "sweep"; deleted: readonly string[] };

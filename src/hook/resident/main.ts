/** Executable of the resident process. The first hook starts it, or `svc hook serve`. */
import { fileURLToPath } from "node:url";
import { packageFile } from "../../child-process/package-files.ts";
import { PACKAGE_VERSION } from "../../service/version.ts";
import { type ResidentEnd, runResident } from "./resident.ts";

/** Serves until the process ends. `onReady` is called once the socket can be reached. */
export async function serveHooks(folder: string, onReady: () => void): Promise<ResidentEnd> {
  const stop = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.once(signal, () => stop.abort());
  // Every installation replaces this file.
  const program = fileURLToPath(packageFile("dist/hook/bin.cjs"));
  return runResident({ folder, version: PACKAGE_VERSION, program }, onReady, stop.signal);
}

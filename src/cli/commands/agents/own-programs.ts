/**
 * The programs that the hook starts: Node and this package. An agent can change every program in its workspace, and a
 * package manager replaces those of a project, so `svc connect` takes none from there.
 */
import { realpathSync } from "node:fs";
import { join } from "node:path";
import type { HookClient } from "../../../hook/clients/clients.ts";
import { resolvedDirectory, workspaceOf } from "../../../hook/workspace/registered.ts";
import { invalidError } from "../../../kernel/errors.ts";
import { type CommandIo, escapeControls } from "../../io.ts";
import { isBelow } from "./confinement.ts";
import { homeOf } from "./hook-places.ts";

const PACKAGES = "node_modules";

/** `everywhere`: every directory is a workspace, so every project's own installation is refused. */
export function refuseOwnPrograms(io: CommandIo, client: HookClient, everywhere: boolean): void {
  const programs = [process.argv[1]!, process.execPath].map((path) => realpathSync(path));
  const inside = programs.find((path) => {
    if (isChangeable(path, workspaceOf(io.cwd), io)) return true;
    const project = workspaceOf(path);
    return (
      everywhere && path.includes(`/${PACKAGES}/`) && project !== path && isChangeable(path, project, io)
    );
  });
  if (inside === undefined) return;
  throw invalidError(
    `the hook would start ${escapeControls(inside)}, which the agent of that workspace can change; ` +
      `install it outside with npm install --global takeback, then run svc connect ${client} --hooks`,
  );
}

/** A workspace around the home directory holds nearly every installation. There, only its own packages count. */
function isChangeable(path: string, workspace: string, io: CommandIo): boolean {
  const isAroundHome = isBelow(resolvedDirectory(homeOf(io)), workspace);
  return isBelow(path, isAroundHome ? join(workspace, PACKAGES) : workspace);
}

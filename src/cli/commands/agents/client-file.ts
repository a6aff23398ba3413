/** Edits a client's configuration file for `svc connect`, with a backup for `--undo`, and reports the change. */
import { undoWrite, writeWithBackup } from "../../../gateway/connect/backup.ts";
import { type CommandIo, escapeControls } from "../../io.ts";

type Flags = Record<string, unknown>;

export async function writeClientFile(
  io: CommandIo,
  path: string,
  text: string,
  command: string,
  flags: Flags,
): Promise<void> {
  const backup = await writeWithBackup(path, text);
  const where =
    flags["file"] !== undefined ? ` --file ${escapeControls(path)}` : flags["user"] === true ? " --user" : "";
  const undo = `${command}${where} --undo`;
  io.out(`wrote ${escapeControls(path)}`);
  io.out(
    backup === null
      ? `this file is new; ${undo} removes it`
      : `the previous file is ${escapeControls(backup)}; ${undo} restores it`,
  );
}

export async function restoreClientFile(io: CommandIo, path: string): Promise<void> {
  const what = await undoWrite(path);
  io.out(
    what === "restored"
      ? `restored ${escapeControls(path)}`
      : `removed ${escapeControls(path)}, which did not exist before`,
  );
}

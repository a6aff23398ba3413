/** A client's own configuration file, changed by `svc connect` with a way back, and what the person is told about it. */
import { undoWrite, writeWithBackup } from "../../gateway/connect/backup.ts";
import { type Io, printable } from "../io.ts";

type Flags = Record<string, unknown>;

export async function writeClientFile(
  io: Io,
  path: string,
  text: string,
  command: string,
  flags: Flags,
): Promise<void> {
  const backup = await writeWithBackup(path, text);
  const where =
    flags["file"] !== undefined ? ` --file ${printable(path)}` : flags["user"] === true ? " --user" : "";
  const undo = `${command}${where} --undo`;
  io.out(`wrote ${printable(path)}`);
  io.out(
    backup === null
      ? `there was no such file before; ${undo} removes it`
      : `what was there before is in ${printable(backup)}; ${undo} takes it back`,
  );
}

export async function undoClientFile(io: Io, path: string): Promise<void> {
  const what = await undoWrite(path);
  io.out(
    what === "restored"
      ? `restored ${printable(path)}`
      : `removed ${printable(path)}, which was not there before`,
  );
}

/** Where the resident process has its socket, and who may reach it. The directory's mode authenticates the caller. */
import { join } from "node:path";
import { makeOwnFolder } from "../own-folder.ts";

export const SOCKET_NAME = "hook.sock";

export const residentFolder = (folder: string): string => join(folder, "resident");

/** Makes the directory of the socket. Throws if it is not safe. */
export const prepareFolder = (folder: string): string => makeOwnFolder(residentFolder(folder));

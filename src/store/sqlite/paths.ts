/** File names in the data directory of a sqlite store. */
import { join } from "node:path";

export const databasePath = (folder: string): string => join(folder, "svc.db");
export const sqliteCheckpointPath = (folder: string): string => join(folder, "svc.checkpoint");

/** Entry of the resident process that a hook starts: its directory is the only argument. */
import { serveHooks } from "./main.ts";

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error("the resident process needs its directory");
await serveHooks(folder, () => {});
// Connections to the service would keep an idle process alive.
process.exit(0);

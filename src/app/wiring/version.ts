/** The version of the package, as its own manifest states it. */
import { readFileSync } from "node:fs";
import { packageFile } from "../../process/package.ts";

export const VERSION = (JSON.parse(readFileSync(packageFile("package.json"), "utf8")) as { version: string })
  .version;

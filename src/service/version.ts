/** Version of the package, from its package.json. */
import { readFileSync } from "node:fs";
import { packageFile } from "../child-process/package-files.ts";

export const PACKAGE_VERSION = (
  JSON.parse(readFileSync(packageFile("package.json"), "utf8")) as { version: string }
).version;

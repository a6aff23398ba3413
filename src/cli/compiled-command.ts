/**
 * The command as one script with V8's compiled code, which starts in half the time. A build leaves both next to the modules,
 * for its own Node only; any other Node, and the published package, use the modules.
 */
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { Script } from "node:vm";
import { packageFile } from "../child-process/package-files.ts";

type Command = typeof import("./command.ts");

export function compiledCommand(): Command | undefined {
  if (import.meta.url.endsWith(".ts")) return undefined;
  const url = packageFile("dist/shared/command.cjs");
  const cache = packageFile(`dist/shared/command-${process.version}-${process.arch}.cache`);
  if (!existsSync(cache)) return undefined;
  const script = commandScript(url, readFileSync(cache));
  return script.cachedDataRejected === true ? undefined : runScript(script, url);
}

/** The same text gives the same script to the build, which makes the cache. */
export function commandScript(url: URL, cachedData?: Buffer): Script {
  return new Script(readFileSync(url, "latin1"), { filename: fileURLToPath(url), cachedData });
}

export function runScript(script: Script, url: URL): Command {
  const module = { exports: {} };
  script.runInThisContext()(module, createRequire(url), url.href);
  return module.exports as Command;
}

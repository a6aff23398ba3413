/**
 * A Python with FastMCP at an exact version, in a virtual environment in the cache directory of the clients. An
 * environment that cannot be made is an error with the tool's own reason.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { program } from "../../support/programs.ts";
import { clientCache, install, makeWhole } from "./install.ts";

const FASTMCP = "fastmcp==4.0.10";
const PYTHON = join("bin", "python3");

/** The environment's Python. It finds its packages wherever the directory is. */
export async function fastMcpPython(): Promise<string> {
  const python = await program("python3");
  const folder = join(clientCache(), FASTMCP.replace("==", "-"));
  if (!existsSync(folder))
    await makeWhole(folder, async (beside) => {
      await install("a virtual environment (Debian: python3-venv)", [python, "-m", "venv", beside], beside);
      const own = join(beside, PYTHON);
      const pip = ["-m", "pip", "install", "--quiet", "--retries", "2"];
      await install(FASTMCP, [own, ...pip, FASTMCP], beside);
    });
  return join(folder, PYTHON);
}

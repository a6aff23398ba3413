/** The demo as `npm start` runs it, in its own process, with the links and keys that it printed. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../../support/files.ts";

export async function startDemo() {
  if (existsSync(join(ROOT, ".demo")))
    throw new Error("delete .demo first: the pictures begin at the beginning");
  const child = spawn(process.execPath, [join(ROOT, "dist/cli/demo.js")], {
    env: { PATH: process.env["PATH"], PORT: "0" },
  });
  let out = "";
  await new Promise<void>((resolve, reject) => {
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
      if (out.includes("Ctrl-C stops it")) resolve();
    });
    child.once("exit", () => reject(new Error("the demo ended")));
  });
  const found = (pattern: RegExp) => pattern.exec(out)![1]!;
  return {
    url: found(/svc is running at (\S+)/),
    link: found(/^ {2}(http\S+login\/link\S+)$/m),
    shop: found(/^ {2}(http:\/\/127\.0\.0\.1:\d+)$/m),
    key: (role: string) => found(new RegExp(`^ {2}${role} +(svc_\\S+)$`, "m")),
    shown: out.slice(0, out.indexOf("console  ")).trim(),
    stop: () => child.kill("SIGINT"),
  };
}

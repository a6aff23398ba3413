/** Programs that tests need: found, installed once, or missed in so many words. Machines are folders with fake programs. */
import { spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { ensureFrameworks } from "../../scripts/frameworks.mjs";
import { askBroker, serveBroker } from "./broker.ts";
import { ROOT } from "./files.ts";
import { tempDir } from "./tmp.ts";

const PROGRAMS = new URL("../../scripts/programs.mjs", import.meta.url).href;
const RUNS = "#!/bin/sh\nexit 0\n";
const ONLY_TELLS = "#!/bin/sh\necho 'install me first' >&2\nexit 1\n";
/** Notes each call, refuses to run concurrently with itself, and installs the requested programs. */
const APT_GET = `#!/bin/sh
here=\${0%/*}
echo "$4 $7" >> "$here/calls"
/bin/mkdir "$here/lock" || exit 100
/bin/sleep 0.1
if [ "$4" = install ]; then printf '#!/bin/sh\\nexit 0\\n' > "$here/$7"; /bin/chmod +x "$here/$7"; fi
/bin/rmdir "$here/lock"
`;

class Machine {
  readonly path = tempDir("machine");

  has(name: string, script: string): this {
    writeFileSync(join(this.path, name), script, { mode: 0o755 });
    return this;
  }

  get calls(): string[] {
    const file = join(this.path, "calls");
    return existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n") : [];
  }

  /** The answer for a caller that needs these programs, all at once: a path below the machine's, or a message. */
  async ensure(names: string[], { uid = 0, env = {} as Record<string, string> } = {}): Promise<string[]> {
    const script = `process.getuid = () => ${uid};
      const { ensureProgram } = await import(${JSON.stringify(PROGRAMS)});
      const told = ${JSON.stringify(names)}.map((name) => ensureProgram(name).catch((error) => error.message));
      console.log(JSON.stringify(await Promise.all(told)));`;
    const { out } = await run(["--input-type=module", "-e", script], { PATH: this.path, ...env });
    return (JSON.parse(out) as string[]).map((text) => text.replace(`${this.path}/`, ""));
  }
}

async function run(
  args: string[],
  env: Record<string, string>,
): Promise<{ out: string; code: number | null }> {
  const child = spawn(process.execPath, args, { cwd: ROOT, env, stdio: ["ignore", "pipe", "pipe"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let out = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
  });
  child.stderr.resume();
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { out, code };
}

describe("a program that a test needs", () => {
  it("is taken where it is, and nothing is installed", async () => {
    const machine = new Machine().has("apt-get", APT_GET).has("google-chrome", RUNS).has("python3", RUNS);
    expect(await machine.ensure(["chromium", "python3"])).toEqual(["google-chrome", "python3"]);
    expect(machine.calls).toEqual([]);
  });

  it("is installed where it is missing or does not run, one after the other", async () => {
    const machine = new Machine().has("apt-get", APT_GET).has("chromium-browser", ONLY_TELLS);
    expect(await machine.ensure(["chromium", "python3", "curl"])).toEqual(["chromium", "python3", "curl"]);
    expect(machine.calls.toSorted()).toEqual([
      ...["install chromium", "install curl", "install python3"],
      ...["update ", "update ", "update "],
    ]);
  });

  it.each([
    ["nobody may install", { uid: 1_000 }, APT_GET],
    ["installing fails", { uid: 0 }, ONLY_TELLS],
  ])("is asked for in so many words where %s", async (_, who, aptGet) => {
    const machine = new Machine().has("apt-get", aptGet);
    const [chromium, openssl] = await machine.ensure(["chromium", "openssl"], who);
    expect(chromium).toMatch(
      /^This test needs a Chromium and found none\. Run: .* chromium\n\(or set CHROME_PATH/,
    );
    expect(openssl).toMatch(/^This test needs openssl and found none\. Run: .* openssl$/);
  });

  it("may be chosen, and the choice must be right", async () => {
    const machine = new Machine().has("python3", RUNS).has("python3.13", RUNS).has("chromium", RUNS);
    const env = { PYTHON: "python3.13", CHROME_PATH: "/nowhere/chrome" };
    expect(await machine.ensure(["python3", "chromium"], { env })).toEqual([
      "python3.13",
      "CHROME_PATH names /nowhere/chrome, which cannot be run.",
    ]);
  });

  it("that cannot be had is reported once by the file that needs it", async () => {
    const machine = new Machine();
    symlinkSync("/bin/sh", join(machine.path, "sh"));
    const args = [join(ROOT, "node_modules/vitest/vitest.mjs"), "run", "--reporter=json"];
    const { out, code } = await run([...args, "test/http/python-sdk.test.ts"], { PATH: machine.path });
    const { testResults } = JSON.parse(out) as { testResults: { message: string; assertionResults: [] }[] };
    expect(testResults).toMatchObject([
      {
        message: expect.stringContaining(
          "This test needs a Python 3 with its standard library and found none. Run: ",
        ),
        assertionResults: [],
      },
    ]);
    expect(code).toBe(1);
  });
});

describe("the agent frameworks", () => {
  /** A substitute for npm: notes its arguments, and fails where the test orders it. */
  const NPM = `require("node:fs").appendFileSync("calls", process.argv.slice(2).join(" ") + "\\n");
    if (require("node:fs").existsSync("away")) { console.error("npm error network"); process.exit(1); }
    require("node:fs").mkdirSync("node_modules", { recursive: true });`;

  it("are installed once, and asked for in so many words where that fails", async () => {
    const folder = tempDir("frameworks");
    const put = (name: string, text: string) => writeFileSync(join(folder, name), text);
    put("package-lock.json", "{}");
    put("npm.js", NPM);
    put("away", "");
    vi.stubEnv("npm_execpath", join(folder, "npm.js"));
    onTestFinished(() => void vi.unstubAllEnvs());
    await expect(ensureFrameworks({ folder })).rejects.toThrow(
      /^This test needs the agent frameworks, .* Run: npm ci --prefix test\/adapters\/frameworks --omit=optional\nnpm error network/,
    );
    rmSync(join(folder, "away"));
    const ways = [{}, {}, { executables: true }, { executables: true }, {}];
    for (const way of ways) expect(await ensureFrameworks({ folder, ...way })).toBe(folder);
    const calls = readFileSync(join(folder, "calls"), "utf8").trimEnd().split("\n");
    expect(calls).toHaveLength(3);
    expect(calls[1]).toMatch(/^ci .*--engine-strict=false .*--omit=optional/);
    expect(calls[2]).not.toContain("--omit");
  });
});

describe("the broker", () => {
  it("makes each thing once, when it is first asked for, and tells everybody who asks", async () => {
    const made: string[] = [];
    const outer = process.env["SVC_TEST_BROKER"];
    const broker = await serveBroker(join(tempDir(), "sock"), async (name) => {
      made.push(name);
      if (name === "bad") throw new Error("cannot be had");
      return `the ${name}`;
    });
    onTestFinished(() => {
      if (outer !== undefined) process.env["SVC_TEST_BROKER"] = outer;
    });
    expect(made).toEqual([]);
    expect(await Promise.all([askBroker("one"), askBroker("two"), askBroker("one")])).toEqual([
      "the one",
      "the two",
      "the one",
    ]);
    for (let i = 0; i < 2; i++) await expect(askBroker("bad")).rejects.toThrow("cannot be had");
    expect(made).toEqual(["one", "two", "bad"]);
    await broker.close();
  });
});

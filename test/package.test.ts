/** The package as its users get it: packed, and installed into an empty project with its dependencies only. */
import { execFile } from "node:child_process";
import {
  copyFileSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { startSvcServer } from "./support/cli.ts";
import { ROOT } from "./support/files.ts";
import { tempDir } from "./support/tmp.ts";
import { verifies } from "./support/verifies.ts";

const run = promisify(execFile);
const own = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
  engines: { node: string };
  exports: Record<string, string | { types: string; default: string }>;
};

/** This one, and any that is named: `SVC_TEST_NODES=/path/to/node-20.19/bin/node:/path/to/node-24/bin/node`. */
const NODES = [process.execPath, ...(process.env["SVC_TEST_NODES"]?.split(":") ?? [])];

interface Locked {
  dev?: boolean;
  link?: boolean;
  bin?: Record<string, string>;
  engines?: { node?: string };
}
const { packages } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
  packages: Record<string, Locked>;
};
/** What a user's `npm install` brings: path under the project, and its lock entry. */
const production = Object.entries(packages).filter(([path, { dev, link }]) => path !== "" && !dev && !link);

/** The files of a package without the packages below it, as links where the disk allows. */
function graft(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    if (entry.name === "node_modules") continue;
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) graft(source, target);
    else link(source, target);
  }
}

function link(source: string, target: string): void {
  try {
    linkSync(source, target);
  } catch {
    copyFileSync(source, target);
  }
}

/** The dependencies as npm leaves them, so that installing the tarball asks no registry. */
function graftDependencies(project: string): void {
  for (const [path, { bin }] of production) {
    graft(join(ROOT, path), join(project, path));
    const commands = join(dirname(path), ".bin").replace(/(@[^/]+\/)?\.bin$/, ".bin");
    for (const name of Object.keys(bin ?? {})) {
      mkdirSync(join(project, commands), { recursive: true });
      symlinkSync(readlinkSync(join(ROOT, commands, name)), join(project, commands, name));
    }
  }
}

describe("the packed package", () => {
  const folder = tempDir("package");
  const project = join(folder, "project");
  let files: string[];

  beforeAll(async () => {
    mkdirSync(project);
    writeFileSync(join(project, "package.json"), '{"name": "project", "private": true}');
    const packing = run("npm", ["pack", "--json", "--pack-destination", folder], { cwd: ROOT });
    graftDependencies(project);
    const [packed] = JSON.parse((await packing).stdout) as [{ filename: string; files: { path: string }[] }];
    files = packed.files.map(({ path }) => path);
    // An empty cache and no network: anything that the tarball needs beyond its dependencies fails here.
    const offline = ["--offline", "--cache", join(folder, "cache"), "--ignore-scripts", "--no-audit"];
    await run("npm", ["install", ...offline, join(folder, packed.filename)], { cwd: project });
  });

  it("imports, judges and records a call, and its types are what a strict project sees", async () => {
    verifies("beyond.package.install");
    mkdirSync(join(project, "node_modules", "@types"), { recursive: true });
    symlinkSync(join(ROOT, "node_modules/@types/node"), join(project, "node_modules/@types/node"));
    symlinkSync(join(ROOT, "node_modules/undici-types"), join(project, "node_modules/undici-types"));
    writeFileSync(join(project, "manifests.yaml"), "- {tool: add, effect: read, permission: sums}\n");
    const program = (more: string) => `
      import { open } from "takeback";
      const svc = await open({ manifests: "manifests.yaml", data: "data" });
      const run = await svc.run({ actor: "adder", permissions: ["sums"] });
      const sum = await run.call({ tool: "add", args: { a: 1, b: 2 }, reason: "to know" }, async () => 3);
      ${more}
      await svc.close();`;
    writeFileSync(join(project, "index.mjs"), program("console.log(sum);"));
    for (const node of NODES)
      expect((await run(node, ["index.mjs"], { cwd: project })).stdout, node).toBe("3\n");

    // Calling with a tool that is not a string must not compile: the types are there and say something.
    const wrong =
      "// @ts-expect-error a tool's name is a string\n await run.call({ tool: 1, args: {}, reason: '' }, () => 0);";
    writeFileSync(join(project, "index.mts"), program(`const n: number = sum; console.log(n);\n${wrong}`));
    const options = { module: "NodeNext", target: "ES2023", strict: true, noEmit: true, types: ["node"] };
    writeFileSync(
      join(project, "tsconfig.json"),
      JSON.stringify({ compilerOptions: options, files: ["index.mts"] }),
    );
    const compiler = join(ROOT, "node_modules", "typescript", "bin", "tsc");
    const said = await run(process.execPath, [compiler, "-p", project]).catch((failed) => failed);
    expect(said.stdout).toBe("");
  });

  it.each(NODES)("brings the command, and a server that starts (%s)", async (node) => {
    const svc = join(project, "node_modules", ".bin", "svc");
    const { stdout } = await run(node, [svc, "validate", "manifests.yaml"], { cwd: project });
    expect(stdout).toContain("ok");
    const args = ["--manifests", "manifests.yaml", "--data", "data", "--store", "sqlite"];
    const server = await startSvcServer(args, { cwd: project, program: [node, svc] });
    expect(await (await fetch(`${server.url}/healthz`)).json()).toMatchObject({ ok: true });
    expect(await server.stop()).toBe(0);
  });

  it("holds every entry, the documents and their pictures, and no tests", () => {
    verifies("beyond.package.files");
    const entries = Object.values(own.exports).flatMap((one) =>
      typeof one === "string" ? [one] : [one.types, one.default],
    );
    for (const entry of entries) expect(files).toContain(entry.replace("./", ""));
    const readme = readFileSync(join(ROOT, "README.md"), "utf8");
    const pictures = [...readme.matchAll(/\((docs\/images\/[^)]+)\)|src="(docs\/images\/[^"]+)"/g)];
    expect(pictures.length).toBeGreaterThan(0);
    for (const [, inText, inTag] of pictures) expect(files).toContain(inText ?? inTag);
    const unwanted = /\.map$|\.test\.|(?:^|\/)tests?\/|^src\/|__pycache__|node_modules/;
    expect(files.filter((path) => unwanted.test(path))).toEqual([]);
  });
});

it("names an oldest Node that every package accepts, be it installed or bundled", () => {
  verifies("beyond.package.engines");
  const semver = createRequire(join(ROOT, "package.json"))("semver") as {
    minVersion(range: string): { version: string };
    satisfies(version: string, range: string): boolean;
  };
  const oldest = semver.minVersion(own.engines.node).version;
  const notices = readFileSync(join(ROOT, "dist/THIRD-PARTY.txt"), "utf8");
  const bundled = [...notices.matchAll(/^(\S+) \d+\.\S+ \(.*\)$/gm)].map(
    ([, name]) => `node_modules/${name}`,
  );
  expect(bundled).toContain("node_modules/fastify");
  const refusing = [...production, ...bundled.map((path) => [path, packages[path] ?? {}] as const)].filter(
    ([, { engines }]) => engines?.node !== undefined && !semver.satisfies(oldest, engines.node),
  );
  expect(refusing.map(([path]) => path)).toEqual([]);
});

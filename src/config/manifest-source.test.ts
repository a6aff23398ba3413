import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { tempDir } from "../../test/support/tmp.ts";
import { verifies } from "../../test/support/verifies.ts";
import type { EgressResponse } from "../egress/egress.ts";
import { SvcError } from "../kernel/errors.ts";
import { pathStamp } from "./files.ts";
import { loadManifests, manifestFiles, validateManifests } from "./manifest-source.ts";

const entry = (tool: string, more = "") => `- {tool: ${tool}, effect: read, permission: p${more}}\n`;
const names = async (path: string) => (await loadManifests({ path })).all.map(({ tool }) => tool);

describe("a file or a folder", () => {
  test("the examples are valid, and have no loose ends", async () => {
    const folder = join(import.meta.dirname, "../../examples/manifests");
    const set = await loadManifests({ path: folder });
    expect(set.warnings).toEqual([]);
    expect(set.all.length).toBeGreaterThan(15);
    expect(set.active("crm.delete_contact")?.version).toBe("2.0.0");
    const { manifests, ...told } = await validateManifests(folder);
    expect(told).toEqual({ count: set.all.length, errors: [] });
    expect(manifests?.all).toEqual(set.all);
  });

  test("one file; every .yaml and .yml below a folder in order; nothing else", async () => {
    verifies("core.manifest.file-or-folder", "contract.manifest.folder-recursive");
    const dir = tempDir("m");
    mkdirSync(join(dir, "b/c"), { recursive: true });
    writeFileSync(join(dir, "z.yaml"), entry("z"));
    writeFileSync(join(dir, "a.yml"), entry("a"));
    writeFileSync(join(dir, "b/c/m.yaml"), entry("m"));
    writeFileSync(join(dir, "b/notes.txt"), "not yaml: [");
    writeFileSync(join(dir, ".hidden.yaml"), "not yaml: [");
    expect(await names(join(dir, "z.yaml"))).toEqual(["z"]);
    expect(await names(dir)).toEqual(["a", "m", "z"]);
    expect((await manifestFiles(dir)).files.map(({ file }) => file)).toEqual([
      join(dir, "a.yml"),
      join(dir, "b/c/m.yaml"),
      join(dir, "z.yaml"),
    ]);
  });

  test("links are followed once: circles end, a mounted volume's second copies do not count", async () => {
    const dir = tempDir("m");
    mkdirSync(join(dir, "..2024"));
    writeFileSync(join(dir, "..2024/a.yaml"), entry("a"));
    symlinkSync("..2024", join(dir, "..data"));
    symlinkSync("..data/a.yaml", join(dir, "a.yaml"));
    symlinkSync("a.yaml", join(dir, "again.yaml"));
    symlinkSync(dir, join(dir, "self"));
    expect(await names(dir)).toEqual(["a"]);
  });

  test("an unreadable file is a problem next to the others, and never hangs", async () => {
    const dir = tempDir("m");
    execFileSync("mkfifo", [join(dir, "pipe.yaml")]);
    symlinkSync("loop.yaml", join(dir, "loop.yaml"));
    symlinkSync("/nowhere", join(dir, "gone.yaml"));
    symlinkSync("/dev/zero", join(dir, "zero.yaml"));
    writeFileSync(join(dir, "bytes.yaml"), Buffer.from([0xff, 0xff]));
    writeFileSync(join(dir, "bad.yaml"), entry("a", ", efect: x"));
    const error = await loadManifests({ path: dir }).catch((e: unknown) => e as Error);
    const text = (error as Error).message;
    for (const part of [
      "pipe.yaml: is a named pipe",
      "loop.yaml: is a symbolic link that leads to itself",
      "gone.yaml: does not exist",
      "zero.yaml: is a device",
      "bytes.yaml: is not UTF-8",
      "bad.yaml:1: tool a: efect: unknown key",
    ]) {
      expect(text).toContain(part);
    }
    await expect(loadManifests({ path: join(dir, "nope") })).rejects.toThrow(/nope: does not exist/);
    await expect(loadManifests({ path: "/dev/zero" })).rejects.toThrow(/is a device/);
  });

  test("no path and an empty folder register nothing", async () => {
    expect((await loadManifests({ path: null })).all).toEqual([]);
    const dir = tempDir("m");
    expect((await loadManifests({ path: dir })).warnings).toEqual([
      `${dir}: contains no .yaml file, so no tool is registered`,
    ]);
  });
});

test("validation gives one line for each invalid entry, and counts them all", async () => {
  const dir = tempDir("m");
  writeFileSync(
    join(dir, "a.yaml"),
    `${entry("a")}- {tool: b, effect: nope, permision: p}\n- {tool: c, effect: reversible, permission: p}\n`,
  );
  const { manifests, count, errors } = await validateManifests(dir);
  expect({ manifests, count, lines: errors.length }).toEqual({ manifests: null, count: 3, lines: 2 });
  expect(errors[0]).toMatch(
    /a\.yaml:2: tool b: effect: .*; permission: is missing.*; permision: unknown key/,
  );
  expect(await validateManifests(join(dir, "none"))).toEqual({
    manifests: null,
    count: 0,
    errors: [expect.stringContaining("none: does not exist")],
  });
});

test("the stamp of a folder changes with every edit", async () => {
  const dir = tempDir("m");
  const stamps = [await pathStamp(dir)];
  writeFileSync(join(dir, "a.yaml"), entry("a"));
  stamps.push(await pathStamp(dir));
  mkdirSync(join(dir, "sub"));
  writeFileSync(join(dir, "sub/b.yaml"), entry("b"));
  stamps.push(await pathStamp(dir));
  writeFileSync(join(dir, "sub/b.yaml"), entry("bb"));
  stamps.push(await pathStamp(dir));
  expect(new Set(stamps).size).toBe(4);
  expect(await pathStamp(dir)).toBe(stamps[3]);
  expect(await pathStamp(join(dir, "none"))).toBe("missing");
});

describe("a URL", () => {
  const url = "https://m.example.com/tools.yaml?token=s3cret";
  const answer = (status: number, text: string): { request(): Promise<EgressResponse> } => ({
    request: async () => ({ status, headers: {}, body: new TextEncoder().encode(text) }),
  });
  const down = {
    request: async (): Promise<EgressResponse> => {
      throw new SvcError("delivery_failed", "cannot reach m.example.com: ECONNREFUSED");
    },
  };

  test("the last good copy serves while the address is out of reach", async () => {
    verifies("contract.manifest.url", "contract.manifest.url-last-good");
    const data = tempDir("d");
    const warnings: string[] = [];
    const load = (egress: typeof down) =>
      loadManifests({ path: url, egress, data, warn: (text) => warnings.push(text) });
    await expect(load(down)).rejects.toThrow(/cannot reach/);
    expect((await load(answer(200, entry("a")))).all[0]?.tool).toBe("a");
    expect(readdirSync(join(data, "remote-manifests"))).toHaveLength(1);
    expect(warnings).toEqual([]);
    expect((await load(down)).all[0]?.tool).toBe("a");
    expect((await load(answer(500, ""))).all[0]?.tool).toBe("a");
    expect(warnings).toHaveLength(2);
  });

  test("nonsense is an error and does not replace the copy", async () => {
    const data = tempDir("d");
    await loadManifests({ path: url, egress: answer(200, entry("a")), data });
    await expect(loadManifests({ path: url, egress: answer(200, "- {tool: b}"), data })).rejects.toThrow(
      /^https:\/\/m\.example\.com\/\*{8}:1: tool b: /,
    );
    expect((await loadManifests({ path: url, egress: down, data })).all[0]?.tool).toBe("a");
  });

  test("no message about it holds its path or query", async () => {
    const { errors } = await validateManifests(url, answer(404, ""));
    expect(errors).toEqual(["https://m.example.com/********: the server answered 404"]);
    expect((await validateManifests(url)).errors[0]).toMatch(/cannot be fetched here/);
  });
});

/** `svc drill --draft`: guessed undos are tried on a real tool server, and the manifests say what held. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { parse } from "yaml";
import { readManifests } from "../../src/rules/manifest/load.ts";
import { svc } from "../support/cli.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const NOTES = fileURLToPath(new URL("../gateway/support/notes-upstream.mjs", import.meta.url));

/** Drafts the files of a gateway for the notes server. */
async function drafted(env: string[] = []): Promise<{ config: string; manifests: string; dir: string }> {
  const dir = tempDir("drill-draft");
  const given = env.flatMap((one) => ["--env", one]);
  const from = `${process.execPath} ${NOTES}`;
  const { code, err } = await svc(["init", "--from", from, "--name", "notes", "--dir", dir, ...given]);
  expect([code, err]).toEqual([0, ""]);
  return { config: join(dir, "svc.config.yaml"), manifests: join(dir, "manifests/notes.yaml"), dir };
}

const environment = (env: string[]) =>
  Object.fromEntries(env.map((one) => one.split("=") as [string, string]));
const drill = (config: string, more: string[] = [], env: string[] = []) =>
  svc(["drill", "--draft", "--config", config, ...more], { env: environment(env) });
type Entry = { tool: string; compensation?: { tool: string } };
const entries = (file: string) =>
  new Map((parse(readFileSync(file, "utf8")) as Entry[]).map((one) => [one.tool, one]));

describe("svc drill --draft", () => {
  let files: Awaited<ReturnType<typeof drafted>>;
  beforeAll(async () => {
    files = await drafted();
  });

  it("needs the name of an upstream that may be changed", async () => {
    verifies("beyond.draft.disposable");
    const before = readFileSync(files.manifests, "utf8");
    for (const [more, says] of [
      [[], "--draft makes real calls: name the upstream that may be changed with --disposable <upstream>"],
      [["--disposable", "other"], "--disposable: choose one of the configured upstreams (notes)"],
      [["list_notes", "--disposable", "notes"], "tools: list_notes has no drafted undo"],
    ] as const) {
      const refused = await drill(files.config, [...more]);
      expect([refused.code, refused.err]).toEqual([1, expect.stringContaining(says)]);
    }
    expect(readFileSync(files.manifests, "utf8")).toBe(before);
  });

  it("tries each guess and writes into the manifests what held", async () => {
    verifies("beyond.draft.tried", "beyond.draft.written");
    const { code, out, err } = await drill(files.config, ["--disposable", "notes"]);
    expect(err).toBe("");
    expect(out).toMatch(/^create_note +undone$/m);
    expect(out).toMatch(/^update_note +undone$/m);
    expect(out).toMatch(/^archive_note +undone$/m);
    // Needs a note that is in the archive.
    expect(out).toMatch(/^unarchive_note +undone$/m);
    expect(out).toMatch(
      /^start_export +not tried +no value for target: add drill: \{args\} to the manifest$/m,
    );
    expect(out).toMatch(/^mute_alerts +not shown +no reading tool shows what the call did$/m);
    expect(code).toBe(0);
    const text = readFileSync(files.manifests, "utf8");
    const written = entries(files.manifests);
    expect(text).toMatch(
      /tool: delete_note # tried on notes, \d{4}-\d\d-\d\d: undone, shown by .*list_notes/,
    );
    expect(written.get("create_note")).toMatchObject({ lifecycle: "draft", effect: "compensable" });
    expect(written.get("update_note")).toMatchObject({
      verification: { tool: "get_note", args: { id: "$args.id" }, expect: "$before" },
    });
    // Guesses that nothing showed stay guesses.
    expect(text).toMatch(/tool: unmute_alerts +# guess: unmute_alerts looks like the undo/);
    expect(readManifests([{ file: "m", text }]).all.length).toBe(11);
    const runs = await svc(["runs", "--config", files.config]);
    expect(runs.out).toContain("cli");
    const again = await drill(files.config, ["create_note", "--disposable", "notes", "--json"]);
    expect(JSON.parse(again.out).drafts).toMatchObject([{ tool: "create_note", found: "held" }]);
  });

  it("finds an undo that says success and does nothing, and takes it out", async () => {
    verifies("beyond.draft.liars");
    const env = ["LIARS=delete_note,unarchive_note"];
    const lying = await drafted(env);
    const { code, out } = await drill(lying.config, ["--disposable", "notes"], env);
    expect(code).toBe(1);
    expect(out).toMatch(/^create_note +not undone +the undo changed nothing: .*list_notes/m);
    expect(out).toMatch(/^archive_note +not undone +the undo changed nothing/m);
    const written = entries(lying.manifests);
    expect(written.get("create_note")).toMatchObject({ effect: "irreversible", lifecycle: "draft" });
    expect(written.get("create_note")!.compensation).toBeUndefined();
    expect(readFileSync(lying.manifests, "utf8")).toMatch(
      /effect: irreversible # tried on notes, .*delete_note did not undo it: the undo changed nothing/,
    );
  });

  it("does not call a tool that does nothing undone", async () => {
    verifies("beyond.draft.liars");
    const env = ["LIARS=archive_note"];
    const lying = await drafted(env);
    const { out } = await drill(lying.config, ["archive_note", "--disposable", "notes"], env);
    expect(out).toMatch(/^archive_note +not shown +no reading tool shows what the call did$/m);
    expect(entries(lying.manifests).get("archive_note")!.compensation!.tool).toBe("unarchive_note");
  });

  it("keeps an undo that leaves something as a guess, and names what it leaves", async () => {
    verifies("beyond.draft.written");
    const env = ["STAMPS=1"];
    const stamped = await drafted(env);
    const { code, out } = await drill(stamped.config, ["archive_note", "--disposable", "notes"], env);
    expect(code).toBe(1);
    expect(out).toMatch(/^archive_note +not undone +the state is not as before: .*changes/m);
    const text = readFileSync(stamped.manifests, "utf8");
    expect(text).toMatch(/tool: unarchive_note # guess, tried on notes, .*changes/);
  });

  it("waits for a server that starts slowly", async () => {
    verifies("beyond.draft.tried");
    const env = ["SLOW_START=1"];
    const slow = await drafted(env);
    const { out } = await drill(slow.config, ["create_note", "--disposable", "notes"], env);
    expect(out).toMatch(/^create_note +undone$/m);
  });

  it("reports an upstream that does not start, and writes nothing", async () => {
    verifies("beyond.draft.disposable");
    const gone = await drafted();
    const before = readFileSync(gone.manifests, "utf8");
    writeFileSync(
      gone.config,
      readFileSync(gone.config, "utf8").replace("notes-upstream.mjs", "no-such.mjs"),
    );
    const { code, err } = await drill(gone.config, ["--disposable", "notes"]);
    expect([code, err]).toEqual([1, expect.stringContaining("upstream notes: ")]);
    expect(readFileSync(gone.manifests, "utf8")).toBe(before);
  });

  it("reads the arguments of a drill from the manifest", async () => {
    verifies("beyond.draft.tried");
    const own = await drafted();
    const text = readFileSync(own.manifests, "utf8");
    const asked = text.replace(/(- tool: archive_note\n)/, "$1  drill: {args: {id: 1}}\n");
    expect(asked).not.toBe(text);
    writeFileSync(
      own.manifests,
      asked.replace(
        "- tool: archive_note\n",
        "- tool: archive_note\n  verification: {tool: get_note, args: {id: $args.id}, expect: {archived: false}}\n",
      ),
    );
    const { out } = await drill(own.config, ["archive_note", "--disposable", "notes"]);
    expect(out).toMatch(/^archive_note +undone$/m);
  });
});

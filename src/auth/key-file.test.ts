import { chmodSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { fakeEnv } from "../../test/support/env.ts";
import { tempDir } from "../../test/support/tmp.ts";
import { countTrials } from "../../test/support/trials.ts";
import { verifies } from "../../test/support/verifies.ts";
import { systemEnv } from "../kernel/env.ts";
import { sha256Hex } from "../kernel/hash.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import { KeyFile, modeWarning } from "./key-file.ts";

const keys = (...names: string[]) =>
  JSON.stringify(
    names.map((name) => ({ name, role: "admin", key_sha256: sha256Hex(name) })),
    null,
    2,
  );

async function opened(text: string, env = systemEnv) {
  const path = join(tempDir("k"), "keys.json");
  writeFileSync(path, text, { mode: 0o600 });
  const warnings: string[] = [];
  const file = await KeyFile.open(path, {
    env,
    warn: (message, fields) => warnings.push(`${message}: ${fields?.["problem"] ?? ""}`),
  });
  const holds = (name: string) => typeof file.ring.find(name, Date.now()) !== "string";
  return { path, file, warnings, holds };
}

describe("a key file", () => {
  test("that is missing or broken at the start is an error", async () => {
    const env = fakeEnv();
    await expect(KeyFile.open("/nowhere/keys.json", { env })).rejects.toThrow(
      /\/nowhere\/keys\.json: does not exist/,
    );
    await expect(opened("{}")).rejects.toThrow(/must be a JSON list/);
    await expect(KeyFile.open("/dev/zero", { env })).rejects.toThrow(/is a device/);
  });

  test("that changes is noticed, also when its size and its time stay", async () => {
    verifies("core.auth.keys-on-change");
    const { path, file, holds } = await opened(keys("ann"));
    writeFileSync(path, keys("bob"));
    await file.poll();
    expect([holds("ann"), holds("bob")]).toEqual([false, true]);
    // An editor that replaces the file, and a copy that keeps the old time.
    writeFileSync(`${path}.new`, keys("eve"));
    renameSync(`${path}.new`, path);
    utimesSync(path, new Date(0), new Date(0));
    await file.poll();
    expect(holds("eve")).toBe(true);
    utimesSync(path, new Date(0), new Date(0));
    await file.poll();
    await file.poll();
    expect(holds("eve")).toBe(true);
  });

  test("that is gone or broken later changes nothing, and is reported once", async () => {
    verifies("core.auth.keys-broken-file");
    const { path, file, holds, warnings } = await opened(keys("ann"));
    for (const broken of ["", "[", "{}", '[{"name": "ann"}]']) {
      writeFileSync(path, broken);
      for (let i = 0; i < 3; i++) await file.poll();
      expect(holds("ann")).toBe(true);
      await expect(file.reload()).rejects.toThrow(path);
      expect(holds("ann")).toBe(true);
    }
    rmSync(path);
    for (let i = 0; i < 3; i++) await file.poll();
    expect(holds("ann")).toBe(true);
    expect(warnings).toHaveLength(5);
    writeFileSync(path, keys("bob"));
    await file.poll();
    expect([holds("ann"), holds("bob")]).toEqual([false, true]);
    expect(await file.reload()).toBe(1);
  });

  test("half written a thousand times under a storm of reloads never loses a key", async () => {
    const { path, file, holds } = await opened(keys("ann", "bob"));
    const whole = keys("ann", "bob");
    let done = false;
    const storm = (async () => {
      while (!done) await Promise.all([file.poll(), file.reload().catch(() => 0), file.poll()]);
    })();
    for (let i = 0; i < 1_000; i++) {
      writeFileSync(path, whole.slice(0, (i * 7) % whole.length));
      if (i % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
      expect(holds("ann") && holds("bob")).toBe(true);
    }
    writeFileSync(path, keys("ann", "bob", "eve"));
    done = true;
    await storm;
    await file.poll();
    expect(holds("eve")).toBe(true);
    countTrials("any", "key file half written under reloads", 1_000);
  });

  test("that others can write or read is warned of", async () => {
    expect(modeWarning(0o100600)).toBeUndefined();
    expect(modeWarning(0o100640)).toBeUndefined();
    expect(modeWarning(0o100644)).toMatch(/read by everybody/);
    expect(modeWarning(0o100666)).toMatch(/written by others/);
    const { path } = await opened(keys("ann"));
    chmodSync(path, 0o666);
    const warnings: string[] = [];
    await KeyFile.open(path, { env: systemEnv, warn: (message) => warnings.push(message) });
    expect(warnings).toHaveLength(1);
  });

  test("the watch polls on its own and stops on request", async () => {
    const { file } = await opened(keys("ann"));
    const polled = vi.spyOn(file, "poll");
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    try {
      file.watch();
      file.watch();
      vi.advanceTimersByTime(SERVICE_LIMITS.key_reload_ms);
      expect(polled).toHaveBeenCalledOnce();
      file.close();
      file.close();
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });
});

import { expect, it } from "vitest";
import { loadSettings } from "./load.ts";
import { withQuietLog } from "./settings.ts";

it("logs only problems of a short command, unless a level is given", () => {
  const level = (env: Record<string, string>) =>
    withQuietLog(loadSettings({ flags: {}, env, cwd: "/", schemas: {} })).log.level;
  expect(level({})).toBe("warn");
  expect(level({ SVC_LOG_LEVEL: "info" })).toBe("info");
});

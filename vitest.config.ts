import { defineConfig } from "vitest/config";

/** Pure code: its tests leave nothing behind in their process, so many files can share one and load everything once. */
const PURE = [
  "kernel",
  "model",
  "ledger",
  "engine",
  "evidence",
  "egress",
  "notify",
  "telemetry",
  "capture",
  "alerts",
];

const common = {
  testTimeout: 120_000,
  hookTimeout: 180_000,
  pool: "forks",
} as const;

export default defineConfig({
  test: {
    globalSetup: ["test/support/global-setup.ts"],
    // Tests wait for processes, timers and pages a quarter of their time: three keep two cores busy.
    maxWorkers: 3,
    projects: [
      {
        test: { ...common, name: "pure", include: [`src/{${PURE.join(",")}}/**/*.test.ts`], isolate: false },
      },
      {
        test: {
          ...common,
          name: "whole",
          include: ["src/**/*.test.ts", "test/**/*.test.ts"],
          exclude: [`src/{${PURE.join(",")}}/**/*.test.ts`],
        },
      },
    ],
  },
});

import { defineConfig } from "vitest/config";

/** Tests that leave nothing behind in their process: many files share one, and load the service once. */
const SHARING = [
  "src/{kernel,model,ledger,engine,evidence,egress,notify,telemetry,capture,alerts,auth,rollback,retention}/**/*.test.ts",
  "test/{http,sandbox,evidence,undo,console,library,policy,gateway,adapters}/**/*.test.ts",
];

const common = {
  // A net under what hangs. Tests wait for conditions, and a busy machine takes its time over them.
  testTimeout: 600_000,
  hookTimeout: 600_000,
  pool: "forks",
  setupFiles: ["test/support/patience.ts"],
} as const;

export default defineConfig({
  test: {
    globalSetup: ["test/support/global-setup.ts"],
    // Tests wait for processes, timers and pages a quarter of their time: three keep two cores busy.
    maxWorkers: 3,
    projects: [
      {
        test: { ...common, name: "sharing", include: SHARING, isolate: false },
      },
      {
        test: {
          ...common,
          name: "apart",
          include: ["src/**/*.test.ts", "test/**/*.test.ts"],
          exclude: SHARING,
        },
      },
    ],
  },
});

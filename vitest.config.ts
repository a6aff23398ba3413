import { relative } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { askBroker } from "./test/support/broker.ts";

/** Tests next to their sources that start a process, open a socket or work on real disks; all others are unit tests. */
const MACHINE_TESTS = [
  "src/auth/{key-file,key-manager,oidc}.test.ts",
  "src/config/{manifest-source,problems}.test.ts",
  "src/egress/*.test.ts",
  "src/evidence/{ledger-tree,verify-ledger,anchors/anchors}.test.ts",
  "src/hook/service.test.ts",
  "src/http/**/*.test.ts",
  "src/notify/{mailer,notifier,channels/contract}.test.ts",
  "src/store/files/*.test.ts",
  "src/store/journal/{backup,kill,model,real-disk,set-back}.test.ts",
  "src/store/postgres/encode.test.ts",
  "src/store/sqlite/*.test.ts",
  "src/telemetry/{log,trace}.test.ts",
];
const PROCESS_TESTS = "src/child-process/*.test.ts";

/** Tests that leave nothing behind in their process: many files share one, and load the service once. */
const SHARING = [
  ...MACHINE_TESTS,
  "test/{http,simulate,evidence,undo,console,library,policy,gateway,adapters,cli,contract,sim}/**/*.test.ts",
];

/** The longest of each project are begun first: one of them at the end would keep a single core busy. */
const LONG = [
  "test/stress/attack.test.ts",
  "test/stress/fault.test.ts",
  "test/verifiers.test.ts",
  "test/contract/postgres.test.ts",
  "test/console/pages.test.ts",
  "test/gateway/stdio.test.ts",
  "test/console/forms.test.ts",
  "test/gateway/conformance.test.ts",
  "test/evidence/huge.test.ts",
  "test/gateway/init.test.ts",
  "test/http/beside.test.ts",
];

/** Needs an executable of 350 MB. `npm run frameworks` runs it. */
const NEEDS_EXECUTABLE = "test/adapters/frameworks/claude-agent-sdk.test.ts";

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // Downloaded while other tests run. Those that need it ask again, and get the error.
    if (files.some(({ moduleId }) => moduleId.includes("/adapters/frameworks/")))
      askBroker("frameworks").catch(() => {});
    const rank = ({ moduleId }: TestSpecification) => {
      const at = LONG.indexOf(relative(this.ctx.config.root, moduleId));
      return at < 0 ? LONG.length : at;
    };
    const byProject = (a: TestSpecification, b: TestSpecification) =>
      a.project.name.localeCompare(b.project.name);
    return (await super.sort(files)).sort((a, b) => byProject(a, b) || rank(a) - rank(b));
  }
}

const common = {
  // A net under what hangs. Tests wait for conditions, and a busy machine takes its time over them.
  testTimeout: 600_000,
  hookTimeout: 600_000,
  expect: { poll: { timeout: 60_000 } },
  pool: "forks",
  setupFiles: ["test/support/patience.ts"],
} as const;

export default defineConfig({
  test: {
    globalSetup: ["test/support/global-setup.ts"],
    // Tests wait for processes, timers and pages a third of their time: four keep two cores busy.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    // Keeps transformed files between runs, which saves most of the time until the first test begins.
    experimental: { fsModuleCache: true },
    projects: [
      {
        test: {
          ...common,
          name: "unit",
          include: ["src/**/*.test.ts"],
          exclude: [...MACHINE_TESTS, PROCESS_TESTS],
          setupFiles: [...common.setupFiles, "test/support/unit-guard.ts"],
          isolate: false,
        },
      },
      {
        test: { ...common, name: "sharing", include: SHARING, exclude: [NEEDS_EXECUTABLE], isolate: false },
      },
      {
        test: { ...common, name: "apart", include: [PROCESS_TESTS, "test/**/*.test.ts"], exclude: SHARING },
      },
    ],
  },
});

/** The adapters' tests with the newest of every framework: what this folder has takes the place of what the package pins. */
import { join } from "node:path";
import { defineConfig } from "vitest/config";

const HERE = import.meta.dirname;
const newest = /^(?:ai|@openai\/agents)(?:\/|$)/;

export default defineConfig({
  root: join(HERE, "../../.."),
  plugins: [
    {
      name: "newest",
      enforce: "pre",
      resolveId(source, _importer, options) {
        return newest.test(source)
          ? this.resolve(source, import.meta.filename, { ...options, skipSelf: true })
          : undefined;
      },
    },
  ],
  test: {
    include: ["test/adapters/{,frameworks/}*.test.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    setupFiles: ["test/support/patience.ts"],
    pool: "forks",
    isolate: false,
    maxWorkers: 1,
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});

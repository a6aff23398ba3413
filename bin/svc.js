#!/usr/bin/env node
// A coding agent starts its hook for every call and waits for it: it gets the hook's code alone, and this file is a
// script (see package.json beside it), for Node takes 10 ms more to start a module.
if (process.argv[2] === "hook" && /^(?!serve$)\w/.test(process.argv[3] ?? "")) {
  Promise.resolve()
    .then(() =>
      require("../dist/hook/bin.cjs").runHook(
        process.argv.slice(3),
        require.resolve("../dist/hook/resident/start.js"),
      ),
    )
    .catch((error) => {
      // Only code 2 refuses a call; any other failure would let it through.
      process.stderr.write(`svc: ${error.message}\n`);
      process.exitCode = 2;
    });
} else import("../dist/cli/bin.js");

#!/usr/bin/env node
// A coding agent starts its hook for every call and waits for it: it gets the hook's code alone.
if (process.argv[2] === "hook" && /^\w/.test(process.argv[3] ?? "")) {
  try {
    const { runHook } = await import("../dist/hook/bin.js");
    await runHook(process.argv.slice(3));
  } catch (error) {
    // Only code 2 refuses a call; any other failure would let it through.
    process.stderr.write(`svc: ${error.message}\n`);
    process.exitCode = 2;
  }
} else await import("../dist/cli/bin.js");

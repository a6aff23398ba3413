/** Starting a thread of this process: built code runs as it is, source loads the reader of TypeScript first. */
import { Worker, type WorkerOptions } from "node:worker_threads";

/** The file of that name beside `module`, as source or as built. */
export function besideModule(module: string, name: string): URL {
  return new URL(`./${name}${module.endsWith(".ts") ? ".ts" : ".js"}`, module);
}

export function startThread(entry: URL, options: WorkerOptions): Worker {
  if (!entry.pathname.endsWith(".ts")) return new Worker(entry, options);
  // From source (tests, development) a thread does not inherit the loader.
  const loader = JSON.stringify(import.meta.resolve("tsx/esm/api"));
  const program = `import(${loader}).then((tsx) => { tsx.register(); return import(${JSON.stringify(entry.href)}); })`;
  return new Worker(program, { ...options, eval: true });
}

/**
 * Lets the conformance suite start on Node 20: it imports `globSync` from `fs`, which Node has since 22, for
 * a command that is not run here. Its own files see an `fs` that has one; nobody else does.
 */
import { register } from "node:module";

const hooks = `
const URL = "svc-shim:fs";
export async function resolve(specifier, context, next) {
  const wanted = (specifier === "fs" || specifier === "node:fs") && context.parentURL?.includes("/conformance/dist/");
  return wanted ? { url: URL, format: "module", shortCircuit: true } : next(specifier, context);
}
export async function load(url, context, next) {
  if (url !== URL) return next(url, context);
  const source = 'export * from "node:fs"; export { default } from "node:fs"; export const globSync = () => [];';
  return { format: "module", source, shortCircuit: true };
}`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);

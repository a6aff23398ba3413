/**
 * Locates the package's own files. From source and from the bundle (`dist/shared`), this module is two directories
 * below the package and one below the modules, so one path works for both.
 */
const OWN = import.meta.url;

/** Returns the URL of a file in the package. */
export const packageFile = (path: string): URL => new URL(`../../${path}`, OWN);

/** Returns the URL of a module that starts in its own thread, such as `store/files/worker`. */
export const entryModule = (name: string): URL =>
  new URL(`../${name}${OWN.endsWith(".ts") ? ".ts" : ".js"}`, OWN);

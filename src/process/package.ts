/**
 * Where the package's own files are. As source and as bundled (`dist/shared`) this module lies two folders below the
 * package and one below the modules, so both find them in the same way.
 */
const OWN = import.meta.url;

/** A file that comes with the package. */
export const packageFile = (path: string): URL => new URL(`../../${path}`, OWN);

/** A module that is begun by itself, in a thread of its own: `store/files/worker`. */
export const entryModule = (name: string): URL =>
  new URL(`../${name}${OWN.endsWith(".ts") ? ".ts" : ".js"}`, OWN);

/** Node's hashes take milliseconds to load, and most calls need none: they are loaded where they are used. */
export const hexHash = (of: string | Buffer): string =>
  process.getBuiltinModule("node:crypto").createHash("sha256").update(of).digest("hex");

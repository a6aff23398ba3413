/** Loads node's hashes on use: that takes milliseconds, and most calls need none. */
export const hexHash = (of: string | Buffer): string =>
  process.getBuiltinModule("node:crypto").createHash("sha256").update(of).digest("hex");

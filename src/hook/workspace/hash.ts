/** Loads node's hashes on use: that takes milliseconds, and most calls need none. */
export const hexHash = (of: string | Buffer): string =>
  process.getBuiltinModule("node:crypto").createHash("sha256").update(of).digest("hex");

/** The name that git gives the content of a file. */
export const gitBlobId = (content: Buffer): string =>
  process
    .getBuiltinModule("node:crypto")
    .createHash("sha1")
    .update(`blob ${content.length}\0`)
    .update(content)
    .digest("hex");

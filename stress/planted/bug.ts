/** One small mistake that an author could make in the sources, and the tests that must not let it pass. */
export interface Bug {
  readonly name: string;
  /** Relative to the repository. */
  readonly file: string;
  /** Fits one place of the file; identifiers may have other names there, and spaces do not count. */
  readonly find: string;
  readonly replace: string;
  /** Test files; at least one must fail. */
  readonly tests: readonly string[];
  /** Only the tests whose name matches this, where a file has many that have nothing to do with it. */
  readonly only?: string;
  /** Its tests start the built command, so the tree is built with it. */
  readonly built?: true;
}

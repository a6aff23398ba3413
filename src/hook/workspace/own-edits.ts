/**
 * Files that a session edited, with their content before its first edit and after its last. They show whether a change
 * in the work tree is the session's alone.
 */
export interface OwnEdit {
  path: string;
  /** The content before the edit as git names it. Null without a file, or if its content was not saved. */
  before: string | null;
  /** SHA-256 of the content before and after the edit. Null without a file. */
  was: string | null;
  after: string | null;
}

export type OwnEdits = ReadonlyMap<string, OwnEdit>;

/** One entry per file. Without a `before` if a person or program changed the file between two edits. */
export function joinEdits(edits: Iterable<OwnEdit>): OwnEdits {
  const all = new Map<string, OwnEdit>();
  for (const edit of edits) {
    const first = all.get(edit.path);
    if (first === undefined) all.set(edit.path, edit);
    else {
      const before = first.after === edit.was ? first.before : null;
      all.set(edit.path, { ...edit, before, was: first.was });
    }
  }
  return all;
}

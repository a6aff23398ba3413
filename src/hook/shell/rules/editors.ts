/**
 * Git commands that open an editor. In a terminal that a later call can type into, an editor runs any program without
 * another question.
 */
import { commandOf } from "../programs.ts";

interface EditorRow {
  /** Without one of these the command opens an editor. */
  unless?: RegExp;
  /** Only with one of these. */
  when?: RegExp;
}

const PATCH = /^(?:-[a-zA-Z]*[pi]|--patch|--interactive)$/;
const MESSAGE = /^(?:-[a-ln-zA-Z]*m.*|--message(?:=.*)?)$/s;

const EDITS: Readonly<Record<string, readonly EditorRow[]>> = {
  commit: [
    { unless: /^(?:-[a-ln-zA-Z]*m.*|--message(?:=.*)?|--no-edit|--dry-run|--fixup=.*)$/s },
    { when: PATCH },
  ],
  merge: [
    { unless: /^(?:-m.*|--message(?:=.*)?|--no-edit|--ff-only|--abort|--quit|--squash|--no-commit)$/s },
  ],
  rebase: [{ when: /^--(?:continue|skip|autosquash)$/ }],
  revert: [{ unless: /^(?:--no-edit|--no-commit|-[a-zA-Z]*n|--abort|--quit)$/ }],
  "cherry-pick": [{ when: /^--(?:continue|skip)$/ }],
  tag: [{ when: /^(?:-[a-zA-Z]*[as]|--annotate|--sign)$/, unless: MESSAGE }],
  notes: [{ when: /^(?:add|append)$/, unless: MESSAGE }],
  add: [{ when: PATCH }],
  stash: [{ when: PATCH }],
  restore: [{ when: PATCH }],
  checkout: [{ when: PATCH }],
};

/** Whether git opens an editor with these words. */
export function opensEditor(texts: readonly string[]): boolean {
  const command = commandOf(texts) ?? "";
  const words = texts.slice(texts.indexOf(command) + 1);
  const has = (pattern: RegExp | undefined) =>
    pattern !== undefined && words.some((word) => pattern.test(word));
  return (EDITS[command] ?? []).some(({ when, unless }) => (when === undefined || has(when)) && !has(unless));
}

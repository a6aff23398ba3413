/**
 * Recognizes `svc` commands that only read. All other commands decide, undo, or change settings that affect decisions.
 */
import { basename } from "node:path";

type Verbs = Readonly<Record<string, readonly string[] | true>>;

const LOOKING: Verbs = {
  runs: true,
  show: true,
  plan: true,
  plans: ["list", "show"],
  export: true,
  verify: true,
  "verify-bundle": true,
  validate: true,
  impact: true,
  horizon: true,
  report: true,
  oversight: true,
  doctor: true,
  help: true,
  completion: true,
  approvals: ["list", "show"],
  grants: ["list", "preview"],
  halt: ["list"],
  policy: ["check", "test", "diff"],
};
/** Deciding commands for matching `svc` within a text, where it could be any word. */
const DECIDING: Verbs = {
  rollback: true,
  resolve: true,
  contain: true,
  connect: true,
  drill: true,
  "kill-switch": true,
  approvals: ["approve", "deny"],
  plans: ["approve", "deny"],
  grants: ["add", "revoke"],
  halt: ["add", "lift"],
  keys: ["add"],
  registry: ["publish", "approve", "deprecate", "publish-policy", "activate"],
  capture: ["purge"],
  retention: ["apply"],
  hold: ["add", "release"],
};
const NAMES = /^(?:svc|takeback)(?:\.js|\.cmd|\.ps1)?$/;
const VALUED = /^(?:-m|--manifests|-d|--data|--store|--config|--server|--key-file)$/;

export function isDecidingCommand(program: string, words: readonly string[]): boolean {
  if (!NAMES.test(program)) return false;
  const [command, sub] = plainWords(words);
  if (command === undefined) return words.some((word) => !/^(?:-V|--version|-h|--help)$/.test(word));
  return !has(LOOKING, command, sub) && !(sub === undefined && LOOKING[command] !== undefined);
}

/** Whether a text contains a deciding command: `!svc halt lift`, `-Osvc rollback r1`, `["svc", "grants", "add"]`. */
export function namesDecision(text: string): boolean {
  if (!/svc|takeback/.test(text.replace(/['"`\\]/g, ""))) return false;
  const words = text
    .replace(/\\[nrt]/g, " ")
    .replace(/['"`\\]/g, "")
    .split(/[\s,;&|<>(){}[\]]+/);
  return words.some((word, at) => {
    const last = basename(word.replace(/^.*[=!:]/, ""));
    if (!NAMES.test(last) && !NAMES.test(last.replace(/^-[A-Za-z]/, ""))) return false;
    const [command, sub] = plainWords(words.slice(at + 1, at + 1 + MAX_WORDS));
    return command !== undefined && has(DECIDING, command, sub);
  });
}

/** Limit of words after `svc`, including options and their values. */
const MAX_WORDS = 20;

function plainWords(words: readonly string[]): string[] {
  const plain: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    if (VALUED.test(word)) at++;
    else if (!word.startsWith("-")) plain.push(word);
  }
  return plain;
}

function has(verbs: Verbs, command: string, sub: string | undefined): boolean {
  const known = Object.hasOwn(verbs, command) ? verbs[command]! : [];
  return known === true || (sub !== undefined && known.includes(sub));
}

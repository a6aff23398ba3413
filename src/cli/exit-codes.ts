/** Meanings of the exit codes 1 and 2 of single commands, shown in their help. 0 is always success. */

type CodeMeanings = Readonly<{ 1?: string; 2?: string }>;

const COMMAND_CODES: Readonly<Record<string, CodeMeanings>> = {
  hook: { 2: "the hook could not decide; the coding agent blocks the call" },
  run: { 1: "the command was not started; else its own exit code" },
  validate: { 1: "a manifest is invalid" },
  "policy check": {
    1: "the policy is invalid, or a claim has a counterexample",
    2: "a claim could not be decided",
  },
  "policy test": { 1: "a test failed, or a claim has a counterexample", 2: "a claim could not be decided" },
  "policy diff": { 2: "the second policy is looser for some calls, or the comparison is incomplete" },
  "registry activate": { 2: "another admin must activate the version too" },
  simulate: { 2: "the policy blocks calls that were allowed before" },
  runs: { 2: "--attention found runs" },
  show: { 2: "the run needs attention" },
  plan: { 2: "some steps cannot be undone" },
  rollback: { 2: "incomplete: some steps could not be undone" },
  contain: { 2: "incomplete: some steps could not be undone" },
  incidents: { 2: "an incident is open" },
  reconcile: { 2: "different, or not checked" },
  drill: { 1: "a drill failed, or a drafted undo did not hold" },
  probe: { 1: "a guarantee does not hold", 2: "a guarantee could not be checked" },
  doctor: { 1: "a check failed" },
  verify: { 1: "the ledger does not verify" },
  "verify-bundle": {
    1: "the bundle is invalid or not trusted",
    2: "--approvers does not account for a signature",
  },
  "anchor publish": { 1: "a sink did not accept the anchor" },
  "anchor verify": { 1: "the ledger contradicts an anchor or a checkpoint" },
  report: { 1: "the records of the run do not verify; the report is still written" },
  "approvals approve": { 1: "failed, or --group did not decide every request" },
  "approvals deny": { 1: "failed, or --group did not decide every request" },
  "retention apply": { 2: "a run could not be archived and was kept" },
};

/** Exit codes of a command in one line. Undefined if it has only the general ones. */
export function commandExitCodes(command: string): string | undefined {
  if (!Object.hasOwn(COMMAND_CODES, command)) return undefined;
  const { 1: failed = "failed to run", 2: attention } = COMMAND_CODES[command]!;
  return [`0 success`, `1 ${failed}`, ...(attention === undefined ? [] : [`2 ${attention}`])].join(" · ");
}

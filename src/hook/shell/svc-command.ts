/** Which commands of `svc` only look. Every other one decides, undoes, or changes what decides. */

const LOOKING: Readonly<Record<string, readonly string[] | true>> = {
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
const NAMES = /^(?:svc|takeback)(?:\.js|\.cmd|\.ps1)?$/;
const VALUED = /^(?:-m|--manifests|-d|--data|--store|--config|--server|--key-file)$/;

export function isDecidingCommand(program: string, words: readonly string[]): boolean {
  if (!NAMES.test(program)) return false;
  const plain: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    if (VALUED.test(word)) at++;
    else if (!word.startsWith("-")) plain.push(word);
  }
  const [command, sub] = plain;
  if (command === undefined) return words.some((word) => !/^(?:-V|--version|-h|--help)$/.test(word));
  const looks = LOOKING[command];
  return looks !== true && !(looks !== undefined && (sub === undefined || looks.includes(sub)));
}

/** Manifests for the git server: staging, commits and checkouts can be undone. Tools with several modes are guessed. */
import { type ManifestPack, type PackEntry, READ_BACK_RETRIES } from "./pack.ts";

const read: PackEntry = { effect: "read" };
const path = { path: "$args.path" };
const staged = { ...path, staged: true };
const head = { ...path, maxCount: 1 };
const STATED = "calls without `path` pass and cannot be undone";

export const gitPack: ManifestPack = {
  tried: "@cyanheads/git-mcp-server 2.15.3",
  tools: {
    git_add: "3968b767758dc961",
    git_blame: "269bfee99aaece79",
    git_branch: "8f0c597c2f83fb2e",
    git_changelog_analyze: "d17ee4eb4ef7f1a0",
    git_checkout: "58343d750740f9c6",
    git_cherry_pick: "0e603a64482943c5",
    git_clean: "2675481abc173a20",
    git_clear_working_dir: "3efe4be8be00ed52",
    git_clone: "0f280d2af559aabc",
    git_commit: "0ae08287e4a6fbaf",
    git_diff: "61a5e84a712aa063",
    git_fetch: "b5cbe8a0286a0411",
    git_init: "5eb439638afc409a",
    git_log: "6d6468a0850ebffa",
    git_merge: "8c6133b7699766a3",
    git_pull: "9f469d15d577491f",
    git_push: "813be07fd274563a",
    git_rebase: "6a2edf5ff2e4b0ea",
    git_reflog: "8b06314874a27597",
    git_remote: "d2f25b51047b51d6",
    git_reset: "51df0ebc918eedfb",
    git_set_working_dir: "9f1441cb18756db3",
    git_show: "62cff9c9a083e668",
    git_stash: "ec569aed227915f7",
    git_status: "830ef45fbb24de7a",
    git_tag: "7d140b34c5eec8e9",
    git_worktree: "95d072e03621f44f",
    git_wrapup_instructions: "2c8fd28d02142f8b",
  },
  entries: {
    git_blame: read,
    git_changelog_analyze: read,
    git_diff: read,
    git_log: read,
    git_reflog: read,
    git_show: read,
    git_status: read,
    git_wrapup_instructions: read,
    git_add: {
      effect: "compensable",
      before: { tool: "git_diff", args: staged, required: false },
      compensation: {
        tool: "git_reset",
        args: { ...path, mode: "mixed", paths: "$args.paths" },
        residue: ["earlier staged changes of these files"],
      },
      verification: {
        tool: "git_diff",
        args: staged,
        expect: { diff: "$before.diff" },
        ...READ_BACK_RETRIES,
      },
      note: `${STATED}, and so do those without \`paths\``,
    },
    git_commit: {
      effect: "compensable",
      card: { title: "Commit: {$args.message}" },
      before: { tool: "git_log", args: head, required: false },
      compensation: {
        tool: "git_reset",
        args: { ...path, mode: "soft", target: "$before.commits[0].hash" },
        residue: ["files staged by the call stay staged", "the commit stays in the reflog"],
      },
      verification: {
        tool: "git_log",
        args: head,
        expect: { commits: "$before.commits" },
        ...READ_BACK_RETRIES,
      },
      note: `${STATED}, and so does a repository's first commit`,
    },
    git_checkout: {
      effect: "compensable",
      card: { title: "Check out {$args.target}" },
      before: { tool: "git_status", args: path, required: false },
      compensation: {
        tool: "git_checkout",
        args: { ...path, target: "$before.currentBranch" },
        residue: ["a branch that the call created"],
      },
      verification: {
        tool: "git_status",
        args: path,
        expect: { currentBranch: "$before.currentBranch" },
        ...READ_BACK_RETRIES,
      },
      note: STATED,
    },
  },
  rules: [
    {
      id: "checkout-of-files-needs-a-person",
      tool: "git_checkout",
      when: [{ path: "$args.paths", op: "exists" }],
      action: "require_approval",
      reason: "a checkout of files discards uncommitted work",
    },
    {
      id: "forced-checkout-needs-a-person",
      tool: "git_checkout",
      when: [{ path: "$args.force", op: "eq", value: true }],
      action: "require_approval",
      reason: "a forced checkout discards uncommitted work",
    },
  ],
};

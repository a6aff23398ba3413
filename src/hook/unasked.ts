/**
 * Files that a client, git, a shell or an editor runs by itself. Those that decide what the hook and the gateway see are
 * refused; a change of any other one asks a person first. The guide has the same lists.
 */

/** MCP configurations: `svc connect` puts the gateway there, and a client starts the servers that they name. */
export const MCP_FILES: readonly string[] = [
  ".mcp.json",
  ".cursor/mcp.json",
  ".vscode/mcp.json",
  ".claude.json",
  ".gemini/mcp.json",
  ".codex/config.toml",
];
const MCP_NAME =
  /\/(?:\.mcp\.json|(?:\.cursor|\.vscode|\.gemini|code\/user|code - insiders\/user)\/mcp\.json|claude_desktop_config\.json)$/;

/** Git's configuration at every level, and the file that says where the repository is. */
export const GIT_FILES: readonly string[] = [".gitconfig", ".config/git/config"];
const GIT_CONFIG = /\/(?:\.gitconfig|(?:\.config\/)?git\/config|\.git\/config(?:\.worktree)?)$/;
const GIT_RUNS_BELOW = /\/\.git\/(?:.+\/)?(?:hooks(?:\/|$)|config(?:\.worktree)?$|info\/attributes$)/;

/** Why no call may touch it, by its folded path; null where nothing is said about it. */
export function whyRunByItself(path: string): string | null {
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (MCP_NAME.test(path)) return `a client starts the servers that ${name} names`;
  return GIT_CONFIG.test(path) || GIT_RUNS_BELOW.test(path) ? `git runs what ${name} says` : null;
}

const START_UP =
  /\/(?:\.(?:bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|zshrc|zshenv|zprofile|zlogin|zlogout|kshrc|cshrc|tcshrc|login|inputrc|vimrc|exrc|nanorc|emacs|tmux\.conf|screenrc|npmrc|yarnrc(?:\.yml)?|pnpmfile\.cjs|pythonrc|pdbrc|gdbinit|lldbinit|rgrc|ackrc|envrc|direnvrc|xprofile|xinitrc|xsession|pam_environment|gitattributes_global)|fish\/(?:config\.fish|conf\.d\/.+|functions\/.+)|\.config\/(?:autostart|systemd|direnv|nvim|vim)\/.+|launchagents\/.+)$/;
/** Folders and files of clients, editors and git hook managers that are run without being asked for. */
const TASKS =
  /\/(?:\.vscode\/(?:tasks|launch|settings)\.json|\.idea\/(?:workspace\.xml|runconfigurations\/.+|watchertasks\.xml)|\.zed\/(?:tasks|settings)\.json|\.devcontainer\/.+|\.devcontainer\.json|\.claude\/(?:skills|commands|agents|plugins|hooks|output-styles|scripts)\/.+|\.cursor\/(?:commands|agents|skills|rules|hooks)\/.+|\.codex\/(?:prompts|skills|agents|rules|hooks)\/.+|\.gemini\/(?:commands|extensions|skills|agents|hooks|policies)\/.+|\.agents\/skills\/.+|\.husky\/.+|\.githooks\/.+|lefthook\.ya?ml|\.lefthook\.ya?ml|\.pre-commit-config\.yaml|\.gitmodules)$/;

/** Whether something runs this file unasked, by its folded path. */
export const isRunUnasked = (path: string): boolean => START_UP.test(path) || TASKS.test(path);

/** As the file systems that know least tell two names apart: neither case, nor Unicode form, nor what is not seen. */
export function foldPath(path: string): string {
  if (/^[\x21-\x40\x5b-\x7e]*$/.test(path)) return path;
  return path
    .normalize("NFKC")
    .replace(/[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g, "")
    .toLowerCase()
    .normalize("NFC");
}

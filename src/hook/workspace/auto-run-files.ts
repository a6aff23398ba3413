/**
 * Files that a client, git, a shell or an editor runs automatically. A change of one needs approval. The path guard
 * refuses those that control the hook or the gateway. The reference contains the same lists.
 */

/** MCP configurations. `svc connect` adds the gateway there, and a client starts the servers that they name. */
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

export const isMcpFile = (path: string): boolean => MCP_NAME.test(foldPath(path.replaceAll("\\", "/")));

/** Git's configuration at every level, and the file that locates the repository. */
export const GIT_FILES: readonly string[] = [".gitconfig", ".config/git/config"];
const OF_GIT =
  /\/(?:\.gitconfig|(?:\.config\/)?git\/config|\.git\/(?:.+\/)?(?:hooks(?:\/.*)?|config(?:\.worktree)?|commondir|info\/attributes))$/;

/** Of the system: start-up files of shells, timetables, services, and libraries loaded into every program. */
const OF_THE_SYSTEM =
  /^\/(?:etc\/(?:profile|profile\.d\/.+|bash\.bashrc|bashrc|zsh(?:env|rc|profile)?|zsh\/.+|environment|environment\.d\/.+|ld\.so\.(?:preload|conf|conf\.d\/.+)|cron.+|anacrontab|at\..+|rc\.local|init\.d\/.+|systemd\/.+|xdg\/autostart\/.+|sudoers.*|pam\.d\/.+|inputrc|gitattributes|gitconfig)|var\/spool\/(?:cron|at)\/.+|(?:usr\/)?lib\/systemd\/.+|library\/launch(?:agents|daemons)\/.+)$/;
const START_UP =
  /\/(?:\.(?:bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|zshrc|zshenv|zprofile|zlogin|zlogout|kshrc|cshrc|tcshrc|login|inputrc|vimrc|exrc|nanorc|emacs|tmux\.conf|screenrc|npmrc|yarnrc(?:\.yml)?|pnpmfile\.cjs|pythonrc|pdbrc|gdbinit|lldbinit|rgrc|ackrc|envrc|direnvrc|xprofile|xinitrc|xsession|pam_environment|gitattributes_global|psqlrc|sqliterc|irbrc|curlrc|wgetrc|lesskey|lvimrc|mise(?:\.local)?\.toml|mise\/.+)|fish\/(?:config\.fish|conf\.d\/.+|functions\/.+)|\.config\/(?:autostart|systemd|environment\.d|direnv|nvim|vim|mise)\/.+|\.config\/git\/attributes|\.local\/share\/applications\/.+|launchagents\/.+|mise(?:\.local)?\.toml)$/;
/** Directories and files that clients, editors and git hook managers run automatically. */
const TASKS =
  /\/(?:\.vscode\/(?:tasks|launch|settings)\.json|\.idea\/(?:workspace\.xml|runconfigurations\/.+|watchertasks\.xml)|\.zed\/(?:tasks|settings)\.json|\.devcontainer\/.+|\.devcontainer\.json|\.agents\/skills\/.+|\.husky\/.+|\.githooks\/.+|lefthook\.ya?ml|\.lefthook\.ya?ml|\.pre-commit-config\.yaml|\.gitmodules)$/;

/** Everything in a client's directory that is not one of its instructions, plans or notes. */
const OF_CLIENTS =
  /\/(?:\.claude\/(?!(?:worktrees|rules|plans|todos|tasks|agent-memory(?:-local)?|projects)\/|claude(?:\.local)?\.md$)|\.cursor\/(?!(?:plans|worktrees)\/)|\.codex\/(?!(?:memories|worktrees)\/|agents(?:\.override)?\.md$)|\.gemini\/(?!(?:tmp|plans|worktrees)\/|gemini\.md$)).+$/;

/** This package in a project, whose commands judge calls. */
const OF_OWN_PACKAGE = /\/node_modules\/takeback(?:\/.*)?$/;

/** Whether a program runs this file automatically, by its folded path. */
export const isAutoRunFile = (path: string): boolean =>
  [OF_CLIENTS, MCP_NAME, OF_GIT, START_UP, TASKS, OF_THE_SYSTEM, OF_OWN_PACKAGE].some((files) =>
    files.test(path),
  );

/** Directories of files that a client obeys when its agent names them: skills, commands, agents and extensions. */
export const USED_FOLDERS: readonly string[] = [
  ".claude/skills",
  ".claude/commands",
  ".claude/agents",
  ".cursor/skills",
  ".cursor/commands",
  ".cursor/agents",
  ".codex/skills",
  ".codex/prompts",
  ".codex/agents",
  ".gemini/skills",
  ".gemini/commands",
  ".gemini/agents",
  ".gemini/extensions",
  ".agents/skills",
];

/** Whether an agent can have its client obey this file, by its path. Also below the directories of a plugin. */
export const isUsedFile = (path: string): boolean =>
  /\/\.(?:claude|cursor|codex|gemini|agents)\/(?:.+\/)?(?:skills|commands|agents|prompts|extensions)\/./.test(
    foldPath(path.replaceAll("\\", "/")),
  );

/** Folds a path like the least strict file systems, which ignore case, Unicode form and invisible characters. */
export function foldPath(path: string): string {
  if (/^[\x21-\x40\x5b-\x7e]*$/.test(path)) return path;
  return path
    .normalize("NFKC")
    .replace(/[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g, "")
    .toLowerCase()
    .normalize("NFC");
}

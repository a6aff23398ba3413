/**
 * Files that a client, git, a shell or an editor runs automatically. A change of one needs approval. The path guard
 * refuses those that control the hook or the gateway. The reference has these lists, and a test compares them.
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

/** Git's configuration of the user. */
export const GIT_FILES: readonly string[] = [".gitconfig", ".config/git/config"];

/**
 * Ends of paths, by what runs them. `*` is a part of a name, and `**` is everything below. A path that begins
 * with a slash is complete.
 */
export const AUTO_RUN_FILES = {
  "MCP configurations": `
    .mcp.json .cursor/mcp.json .vscode/mcp.json .gemini/mcp.json .roo/mcp.json .kilocode/mcp.json .amazonq/mcp.json
    .kiro/settings/mcp.json .junie/mcp/mcp.json User/mcp.json mcp_config.json *mcp_settings.json claude_desktop_config.json
    opencode.json opencode.jsonc .opencode/** crush.json .crush.json .trae/mcp.json .copilot/mcp-config.json .amp/settings.json
    .continue/** .windsurf/hooks.json`,
  git: `
    .gitconfig git/config .gitmodules .git/config .git/config.worktree .git/commondir .git/info/attributes .git/hooks
    .git/hooks/** .git/**/config .git/**/config.worktree .git/**/commondir .git/**/info/attributes .git/**/hooks
    .git/**/hooks/** .config/git/attributes .gitattributes_global`,
  "Git hook managers": `
    .husky/** .githooks/** lefthook.yml lefthook.yaml .lefthook.yml .lefthook.yaml .pre-commit-config.yaml
    .overcommit.yml .git-hooks/**`,
  "start-up files of shells and terminals": `
    .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc
    .cshrc .tcshrc .login .inputrc .oh-my-zsh/** fish/config.fish fish/conf.d/** fish/functions/** fish/completions/**
    *profile.ps1 .bash_completion bash-completion/** .config/nushell/** .config/elvish/** .xonshrc .config/alacritty/**
    .config/ghostty/** .config/zellij/** .config/starship.toml .tmux.conf .config/tmux/** .screenrc .wezterm.lua .config/wezterm/** .config/kitty/** .lesskey`,
  "start-up files of tools": `
    .npmrc .yarnrc .yarnrc.yml .yarn/releases/** .yarn/plugins/** .pnpmfile.cjs pip.conf .pythonrc .pdbrc .gdbinit .lldbinit .rgrc .ackrc .psqlrc .sqliterc .irbrc
    .curlrc .wgetrc .envrc .direnvrc .config/direnv/** mise.toml mise.local.toml .mise.toml .mise.local.toml .mise/**
    .config/mise/**`,
  "start-up files of editors": `
    .vimrc .exrc .lvimrc .nvimrc .nvim.lua .dir-locals.el .vim/** .config/vim/** .config/nvim/** .nanorc .emacs .emacs.d/**`,
  "start-up files of the desktop": `
    .xprofile .xinitrc .xsession .pam_environment .config/autostart/** .config/systemd/** .config/environment.d/**
    .local/share/applications/** LaunchAgents/**`,
  "tasks and settings of editors": `
    .vscode/tasks.json .vscode/launch.json .vscode/settings.json User/settings.json User/tasks.json
    .idea/workspace.xml .idea/runConfigurations/** .run/** .fleet/run.json .idea/watcherTasks.xml .zed/tasks.json .zed/settings.json
    .devcontainer/** .devcontainer.json .agents/skills/** *.code-workspace .aider.conf.yml .kiro/hooks/** .qwen/** .factory/**`,
  "the system": `
    /etc/profile /etc/profile.d/** /etc/bash.bashrc /etc/bashrc /etc/zsh /etc/zshenv /etc/zshrc /etc/zprofile /etc/zsh/**
    /etc/environment /etc/environment.d/** /etc/ld.so.preload /etc/ld.so.conf /etc/ld.so.conf.d/** /etc/cron** /etc/anacrontab
    /etc/at.* /etc/rc.local /etc/init.d/** /etc/systemd/** /etc/xdg/autostart/** /etc/sudoers /etc/sudoers** /etc/pam.d/**
    /etc/inputrc /etc/gitattributes /etc/gitconfig /var/spool/cron/** /var/spool/at/** /usr/lib/systemd/** /lib/systemd/**
    /Library/LaunchAgents/** /Library/LaunchDaemons/**`,
  "Takeback itself, and its Node": "node_modules/takeback node_modules/takeback/**",
} as const;

/** The parts of the clients' own directories that are instructions, plans and notes. Everything else there runs. */
export const CLIENT_NOTES = {
  ".claude":
    "worktrees/ rules/ plans/ todos/ tasks/ agent-memory/ agent-memory-local/ projects/ CLAUDE.md CLAUDE.local.md",
  ".cursor": "plans/ worktrees/",
  ".codex": "memories/ worktrees/ AGENTS.md AGENTS.override.md",
  ".gemini": "tmp/ plans/ worktrees/ GEMINI.md",
} as const;

export const wordsOf = (list: string): string[] => list.trim().split(/\s+/);

const escaped = (text: string): string => foldPath(text).replace(/[.+?^${}()|[\]\\]/g, "\\$&");

function endingTest(lists: readonly string[]): RegExp {
  const ends = lists.flatMap(wordsOf).map((end) => {
    const source = escaped(end).replace(/\*\*|\*/g, (star) => (star === "**" ? ".+" : "[^/]*"));
    return end.startsWith("/") ? `^${source}` : `/${source}`;
  });
  return new RegExp(`(?:${ends.join("|")})$`);
}

const isMcpName = endingTest([AUTO_RUN_FILES["MCP configurations"]]);
const isListed = endingTest(Object.values(AUTO_RUN_FILES));
const OF_CLIENTS = new RegExp(
  Object.entries(CLIENT_NOTES)
    .map(([folder, notes]) => {
      const left = wordsOf(notes).map((note) => (note.endsWith("/") ? escaped(note) : `${escaped(note)}$`));
      return `/${escaped(folder)}/(?!${left.join("|")}).+$`;
    })
    .join("|"),
);

export const isMcpFile = (path: string): boolean => isMcpName.test(foldPath(path.replaceAll("\\", "/")));

/** Whether a program runs this file automatically, by its folded path. */
export const isAutoRunFile = (path: string): boolean => isListed.test(path) || OF_CLIENTS.test(path);

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

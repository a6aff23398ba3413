export type Program =
  | "chromium"
  | "python3"
  | "openssl"
  | "curl"
  | "git"
  | "bubblewrap"
  | "netcat-openbsd"
  | "zsh"
  | "fish"
  | "systemd";
export function findProgram(name: Program): Promise<string | undefined>;
export function ensureProgram(name: Program): Promise<string>;

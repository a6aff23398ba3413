export type Program =
  | "chromium"
  | "chromium-headless-shell"
  | "python3"
  | "openssl"
  | "curl"
  | "git"
  | "gh"
  | "awscli"
  | "bubblewrap"
  | "netcat-openbsd"
  | "zsh"
  | "fish"
  | "systemd"
  | "patroni"
  | "etcd-server"
  | "haproxy"
  | "golang-go";
export function findProgram(name: Program): Promise<string | undefined>;
export function ensureProgram(name: Program): Promise<string>;

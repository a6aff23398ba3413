/**
 * Files that hold credentials. Every call that touches one is refused. The reference has these lists, and a test
 * compares them.
 */
import { basename } from "node:path";
import { foldPath, wordsOf } from "./auto-run-files.ts";
import { readStartOrNull } from "./read-text.ts";

/** `*` is a part of a name. */
export const CREDENTIAL_FILES = {
  "in any directory": `
    .env .env.* .dev.vars .dev.vars.* .netrc _netrc .git-credentials .pgpass .pypirc .htpasswd .my.cnf .mylogin.cnf .s3cfg
    .boto .vault-token .vault_pass .dockercfg .dockerconfigjson .databrickscfg .secrets kubeconfig kubeconfig.* *.kubeconfig
    id_rsa* id_dsa* id_ecdsa* id_ed25519* *.pem *.key *.p8 *.p12 *.pfx *.ppk *.jks *.keystore *.kdbx *.ovpn
    credentials credentials.json credentials.yml credentials.yaml credentials.toml credentials.ini credentials.csv
    *-credentials.json *_credentials.json client_secret*.json service-account*.json service_account*.json
    *-service-account.json *firebase-adminsdk*.json secrets.json secrets.yml secrets.yaml secrets.toml secrets.ini secrets.env
    local.settings.json *.tfstate *.tfstate.backup`,
  "in any directory, if a token or password is written out in them": `
    .npmrc .yarnrc .yarnrc.yml bunfig.toml .envrc pip.conf .terraformrc *.tfvars *.tfvars.json gradle.properties settings.xml
    nuget.config auth.json secret.yml secret.yaml wp-config.php`,
  "in the home directory": `
    .ssh .aws .gnupg .kube .azure .oci .aliyun .bluemix .config/gcloud .config/gh .config/hub .config/glab-cli .config/doctl
    .config/hcloud .config/scw .config/linode-cli .config/netlify .config/op .config/rclone .config/sops .config/stripe
    .config/.wrangler .config/argocd .config/ngrok .config/heroku .config/solana .config/github-copilot .config/configstore
    .config/git/credentials .config/pip/pip.conf .config/cursor/auth.json .config/containers/auth.json .config/composer/auth.json
    .wrangler .fly .snowflake .kaggle .huggingface .cache/huggingface/token .pulumi/credentials.json .terraform.d/credentials.tfrc.json
    .terraformrc .docker/config.json .npmrc .yarnrc.yml .pip/pip.conf .m2/settings.xml .gradle/gradle.properties
    .nuget/NuGet/NuGet.Config .gem/credentials .bundle/config .composer/auth.json .cargo/credentials .cargo/credentials.toml
    .subversion/auth .local/share/com.vercel.cli .local/share/opencode/auth.json .claude.json .claude/.credentials.json
    .codex/auth.json .gemini/oauth_creds.json .password-store .local/share/keyrings Library/Keychains .mozilla
    .thunderbird .config/google-chrome .config/chromium .config/microsoft-edge .config/BraveSoftware .bitcoin .electrum`,
  "histories in the home directory, which hold typed passwords": `
    .bash_history .zsh_history .local/share/fish/fish_history .local/share/atuin .python_history .node_repl_history
    .psql_history .mysql_history .sqlite_history .rediscli_history`,
  "of the machine": `
    /etc/shadow /etc/gshadow /etc/sudoers /etc/ssh/ssh_host_*_key /run/secrets /var/run/secrets /proc/*/environ /proc/*/task/*/environ /proc/*/mem
    /dev/mem`,
} as const;

const nameTest = (list: string): RegExp => {
  const names = wordsOf(list).map((name) =>
    foldPath(name)
      .replace(/[.+?^${}()|[\]\\]/g, "\\$&")
      .replaceAll("*", "[^/]*"),
  );
  return new RegExp(`^(?:${names.join("|")})$`);
};

const isSecretName = nameTest(CREDENTIAL_FILES["in any directory"]);
const isConfigName = nameTest(
  CREDENTIAL_FILES["in any directory, if a token or password is written out in them"],
);
/** A public key, and a file that shows which values to set. A key or a state never shows that. */
const HARMLESS =
  /\.pub$|^(?!.*\.(?:pem|key|p8|p12|pfx|ppk|jks|keystore|tfstate)$).*[._-](?:example|sample|template|dist)(?:[._-]|$)/;

/** Whether a file of this folded name holds credentials, in any directory. */
export const isCredentialName = (name: string): boolean =>
  isSecretName.test(name) && !HARMLESS.test(name) && !/\s/.test(name);

const MAX_BYTES = 262_144;
/** A value in the file itself: a reference to a variable and an empty value are none. */
const WRITTEN_OUT =
  /(?:token|passw(?:or)?d|secret|auth|api_?key|access_?key|private_?key)["']?[ \t]{0,9}[:=,>]{1,2}[ \t]{0,9}["']?(?!true|false|null|none)[\w+/=.~!@#^&*-]{8}|:\/\/[^\s/:@]{1,99}:[^\s/:@${}]{1,99}@/i;

/** Whether the file is a configuration in which a token or a password is written out. */
export function hasWrittenSecret(path: string): boolean {
  const name = foldPath(basename(path));
  return (
    isConfigName.test(name) &&
    !HARMLESS.test(name) &&
    WRITTEN_OUT.test(readStartOrNull(path, MAX_BYTES) ?? "")
  );
}

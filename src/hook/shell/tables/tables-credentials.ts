/**
 * Table of commands that print credentials, tokens or secrets. They are refused like credential files. A line has the
 * program, its first words, and after `with` an option that makes it print them.
 */
const CREDENTIAL_TABLE = `
aws configure get (?:aws_.*|.*(?:key|token|secret).*)
aws configure export-credentials
aws configure export
aws sts (?:get-session-token|get-federation-token|assume-role.*|get-web-identity-token)
aws ecr(?:-public)? (?:get-login-password|get-authorization-token|get-login)
aws secretsmanager (?:get-secret-value|batch-get-secret-value|get-random-password)
aws ssm (?:get-parameters?|get-parameters-by-path|get-parameter-history)
aws iam (?:create-access-key|create-service-specific-credential|create-login-profile|reset-service-specific-credential)
aws rds generate-db-auth-token
aws dsql generate-db-connect.*
aws eks get-token
aws codeartifact get-authorization-token
aws kms (?:decrypt|generate-data-key|generate-data-key-pair)
aws ec2 (?:get-password-data|create-key-pair|get-launch-template-data)
aws redshift(?:-serverless)? (?:get-cluster-credentials.*|get-credentials)
aws sso get-role-credentials
aws sso-oidc create-token
aws cognito-identity get-credentials-for-identity
aws lightsail (?:get-instance-access-details|download-default-key-pair|create-key-pair|get-relational-database-master-user-password)
aws lambda (?:get-function|get-function-configuration)
aws apigateway get-api-keys?
aws-vault (?:exec|export|login)
gcloud auth (?:print-access-token|print-identity-token|print-refresh-token|describe)
gcloud auth application-default print-access-token
gcloud secrets versions access
gcloud iam service-accounts keys create
gcloud config config-helper
gcloud sql generate-login-token
gcloud compute reset-windows-password
gcloud redis instances get-auth-string
gcloud services api-keys get-key-string
gcloud container clusters get-credentials
az account get-access-token
az keyvault (?:secret|key|certificate) (?:show|download|backup)
az storage account keys (?:list|renew)
az storage account show-connection-string
az storage (?:account|container|blob) generate-sas
az acr (?:login|credential) with --expose-token
az acr credential (?:show|renew)
az acr token credential generate
az aks get-credentials
az ad (?:sp|app) (?:create-for-rbac|credential)
az (?:cosmosdb|redis|batch|search|cognitiveservices|maps|signalr|iot|eventhubs|servicebus|relay|functionapp|webapp|openai|appconfig|webpubsub|communication) .*keys?
az .* (?:keys?|list-keys|show-connection-string|connection-string|list-publishing-credentials|list-publishing-profiles)
az webapp config (?:appsettings|connection-string)
az functionapp config appsettings
kubectl create token
kubectl (?:get|describe|edit) secrets?(?:[/.].*)?
kubectl (?:get|describe) .*,secrets?(?:[,/.].*)?
kubectl config view with --raw(?:=.*)?
kubectl get with --raw(?:=.*)?
oc whoami with -t|--show-token
oc get secrets?(?:/.*)?
gh auth token
gh auth status with -t|--show-token
gh auth git-credential
glab auth token
terraform output with -json|--json|-raw|--raw
terraform output \\w[\\w-]*
terraform state pull
terraform show with -json|--json
terraform console
tofu state pull
pulumi stack output with --show-secrets
pulumi config with --show-secrets
helm get (?:values|all|manifest|secrets)
docker compose config
docker-compose config
docker context export
docker-credential-[\\w-]+ get
git credential(?:-.*)?
npm token
npm config get .*(?:[tT]oken|[aA]uth|[pP]assword).*
npm get .*(?:[tT]oken|[aA]uth|[pP]assword).*
vault (?:read|kv|token|login|unwrap|print)
op (?:read|item|document|signin|inject|run)
bw (?:get|list|export|unlock)
pass
gopass
lpass (?:show|export)
security (?:find-generic-password|find-internet-password|dump-keychain|export)
secret-tool (?:lookup|search)
keyring get
sops
ansible-vault (?:view|decrypt|edit)
doppler (?:secrets|run|configure)
infisical (?:secrets|run|export)
chamber (?:read|export|exec|env)
heroku (?:config|auth:token|config:get)
fly(?:ctl)? auth token
fly(?:ctl)? tokens?
vercel env (?:pull|run)
netlify env.*
railway variables
supabase secrets
stripe config
gpg2? with --export-secret-keys|--export-secret-subkeys
`;

interface CredentialRow {
  program: RegExp;
  words: readonly RegExp[];
  option: RegExp | null;
}

const whole = (text: string): RegExp => new RegExp(`^(?:${text})$`);

const ROWS: readonly CredentialRow[] = CREDENTIAL_TABLE.trim()
  .split("\n")
  .map((line) => {
    const [command = "", option] = line.split(/ with /);
    const [program = "", ...words] = command.split(" ").filter((word) => word !== "with");
    return {
      program: whole(program),
      words: words.map(whole),
      option: option === undefined ? null : whole(option),
    };
  });

/** Prints names without their values. */
const LISTS_NAMES = /^docker compose config --(?:services|profiles|volumes)$/;

/** Explains why the command is refused, or returns null. Options may be anywhere between the words. */
export function credentialReason(program: string, texts: readonly string[]): string | null {
  if (LISTS_NAMES.test([program, ...texts].join(" "))) return null;
  const found = ROWS.filter((row) => row.program.test(program)).some(
    ({ words, option }) =>
      follows(texts, words) && (option === null || texts.some((text) => option.test(text))),
  );
  return found ? `this ${program} command prints credentials` : null;
}

/** Whether the first words are these, with options and their values between them. */
function follows(texts: readonly string[], words: readonly RegExp[]): boolean {
  let at = 0;
  for (const word of words) {
    while (at < texts.length && !word.test(texts[at]!)) {
      // An option may have its value in the next word.
      if (!texts[at]!.startsWith("-") && !texts[at - 1]?.startsWith("-")) return false;
      at++;
    }
    if (at++ >= texts.length) return false;
  }
  return true;
}

/**
 * Patterns of credentials with a distinctive prefix. Each begins with a literal, is bounded and has no nested
 * repetition, so that scanning stays linear on hostile text.
 */

interface Credential {
  readonly kind: string;
  /** The pattern runs only on texts that contain one of these. */
  readonly hints: readonly string[];
  /** If it has a group, the group is the secret and ends the match. */
  readonly pattern: RegExp;
  /** Checks a match further, if innocent text can have the same form. */
  readonly accept: (match: string) => boolean;
}

const HAS_DIGIT = /\d/;
const HAS_UPPER = /[A-Z]/;
const HAS_LOWER = /[a-z]/;

/** Digits and letters of both cases, which random keys have and words do not. */
const mixed = (text: string): boolean => HAS_DIGIT.test(text) && HAS_UPPER.test(text) && HAS_LOWER.test(text);
const random = (text: string): boolean =>
  HAS_DIGIT.test(text) || (HAS_UPPER.test(text) && HAS_LOWER.test(text));
const numbered = (text: string): boolean => HAS_DIGIT.test(text);
const anything = (): boolean => true;

/** Pattern with its own condition on the preceding text. */
const exact = (
  kind: string,
  hints: string,
  pattern: RegExp,
  accept = anything as Credential["accept"],
): Credential => ({
  kind,
  hints: hints.split(" "),
  pattern,
  accept,
});

/** Pattern with an unmistakable prefix, found even in the middle of other text. */
const marked = (kind: string, hints: string, pattern: RegExp, accept?: Credential["accept"]): Credential =>
  exact(kind, hints, new RegExp(pattern.source, "g"), accept);

/** Pattern that cannot start in the middle of a word, so that each run of letters is tried once. */
const row = (kind: string, hints: string, pattern: RegExp, accept?: Credential["accept"]): Credential =>
  exact(kind, hints, new RegExp(`(?<![A-Za-z0-9])${pattern.source}`, "g"), accept);

const CLOUD: readonly Credential[] = [
  exact(
    "aws_access_key_id",
    "AKIA ASIA ABIA ACCA",
    /(?<![A-Za-z0-9/+])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9/+])/g,
  ),
  exact("gcp_api_key", "AIza", /(?<![A-Za-z0-9_-])AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])/g),
  row("gcp_oauth_token", "ya29.", /ya29\.[A-Za-z0-9_-]{20,1000}/, random),
  marked("gcp_client_secret", "GOCSPX-", /GOCSPX-[A-Za-z0-9_-]{24,40}/),
  exact(
    "azure_storage_key",
    "AccountKey= SharedAccessKey=",
    /(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{40,100}={0,2})/g,
  ),
  exact(
    "azure_client_secret",
    "Q~",
    /(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~.-])/g,
  ),
  exact("azure_sas_signature", "sig=", /[?&;]sig=([A-Za-z0-9%/+]{40,120}={0,2})/g, mixed),
  marked("digitalocean_token", "_v1_", /do[opr]_v1_[a-f0-9]{64}(?![a-f0-9])/),
  row("heroku_key", "HRKU-", /HRKU-[A-Za-z0-9_-]{30,100}/),
  row("fly_token", "fm2_ fo1_", /(?:fm2|fo1)_[A-Za-z0-9+/_-]{40,2000}={0,2}/),
  row("netlify_token", "nfp_", /nfp_[A-Za-z0-9]{36,50}/),
  row("cloudflare_key", "v1.0-", /v1\.0-[a-f0-9]{24}-[a-f0-9]{146}/),
  row("databricks_token", "dapi", /dapi[a-f0-9]{32}(?:-\d{1,2})?(?![A-Za-z0-9])/),
  marked("planetscale_token", "pscale_", /pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,80}/),
  row("supabase_token", "sbp_", /sbp_[a-f0-9]{40}(?![a-f0-9])/),
];

const DEVELOPER: readonly Credential[] = [
  // The keys of this service.
  marked("svc_key", "svc_", /svc_[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])/, mixed),
  marked("github_token", "ghp_ gho_ ghu_ ghs_ ghr_", /gh[pousr]_[A-Za-z0-9]{30,255}/, random),
  marked("github_token", "github_pat_", /github_pat_[A-Za-z0-9_]{36,255}/, random),
  marked(
    "gitlab_token",
    "glpat- gldt- glrt- glcbt- glptt- glft- glimt- glagent- glsoat-",
    /gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|soat)-[A-Za-z0-9_-]{20,255}/,
    random,
  ),
  row("bitbucket_token", "ATBB ATCTT3", /(?:ATBB|ATCTT3)[A-Za-z0-9_=-]{28,255}/, mixed),
  row("atlassian_token", "ATATT3", /ATATT3[A-Za-z0-9_=-]{50,255}/),
  marked("npm_token", "npm_", /npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])/, random),
  marked("pypi_token", "pypi-", /pypi-[A-Za-z0-9_-]{50,1000}/, mixed),
  marked("rubygems_key", "rubygems_", /rubygems_[a-f0-9]{48}(?![a-f0-9])/),
  marked("docker_token", "dckr_pat_ dckr_oat_", /dckr_[po]at_[A-Za-z0-9_-]{27,60}/),
  row("vault_token", "hvs. hvb. hvr.", /hv[sbr]\.[A-Za-z0-9_-]{24,300}/, random),
  row("terraform_token", ".atlasv1.", /[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,80}/),
  exact(
    "doppler_token",
    "dp.",
    /(?<![A-Za-z0-9.])dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}(?![A-Za-z0-9])/g,
  ),
  row("pulumi_token", "pul-", /pul-[a-f0-9]{40}(?![a-f0-9])/),
  row("grafana_token", "glsa_ glc_", /gl(?:sa|c)_[A-Za-z0-9+/_=]{32,400}/, random),
  marked("sentry_token", "sntrys_ sntryu_", /sntry[su]_[A-Za-z0-9+/_=]{40,500}/),
  marked("postman_key", "PMAK-", /PMAK-[a-f0-9]{24}-[a-f0-9]{34}/),
  marked("newrelic_key", "NRAK-", /NRAK-[A-Z0-9]{27}(?![A-Z0-9])/),
  marked(
    "tailscale_key",
    "tskey-",
    /tskey-(?:auth|api|client|scim|webhook)-[A-Za-z0-9]{8,40}-[A-Za-z0-9]{20,60}/,
  ),
  marked("linear_key", "lin_api_ lin_oauth_", /lin_(?:api|oauth)_[A-Za-z0-9]{40,64}/),
  row(
    "notion_token",
    "ntn_ secret_",
    /(?:ntn_[A-Za-z0-9]{40,50}|secret_[A-Za-z0-9]{43})(?![A-Za-z0-9])/,
    mixed,
  ),
  row("figma_token", "figd_", /figd_[A-Za-z0-9_-]{40,60}/),
  row("airtable_token", "pat", /pat[A-Za-z0-9]{14}\.[a-f0-9]{64}(?![a-f0-9])/),
  row("onepassword_token", "ops_eyJ", /ops_eyJ[A-Za-z0-9+/_-]{100,2000}={0,2}/),
];

const MODELS: readonly Credential[] = [
  marked("anthropic_key", "sk-ant-", /sk-ant-[A-Za-z0-9_-]{20,250}/, random),
  marked("openrouter_key", "sk-or-", /sk-or-v1-[a-f0-9]{64}(?![a-f0-9])/),
  marked(
    "openai_key",
    "sk-proj- sk-svcacct- sk-admin- sk-None-",
    /sk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,250}/,
    random,
  ),
  exact("openai_key", "sk-", /(?<![A-Za-z0-9-])sk-[A-Za-z0-9]{20,100}(?![A-Za-z0-9-])/g, random),
  row("huggingface_token", "hf_ api_org_", /(?:hf|api_org)_[A-Za-z0-9]{30,40}(?![A-Za-z0-9_])/, random),
  row("groq_key", "gsk_", /gsk_[A-Za-z0-9]{40,60}/),
  row("xai_key", "xai-", /xai-[A-Za-z0-9]{60,100}/),
  row("perplexity_key", "pplx-", /pplx-[A-Za-z0-9]{40,60}/),
  row("replicate_token", "r8_", /r8_[A-Za-z0-9]{37}(?![A-Za-z0-9])/),
];

const MESSAGING: readonly Credential[] = [
  exact(
    "slack_webhook",
    "hooks.slack.com/",
    /hooks\.slack\.com\/(?:services|workflows|triggers)\/([A-Za-z0-9/+_-]{20,120})/g,
    random,
  ),
  marked(
    "slack_token",
    "xoxa- xoxb- xoxp- xoxo- xoxs- xoxr- xoxe- xoxe. xoxc- xoxd-",
    /xox[abposrecd][.-](?:xox[bp]-)?[A-Za-z0-9%-]{10,400}/,
    numbered,
  ),
  marked("slack_token", "xapp-", /xapp-\d-[A-Z0-9]{8,20}-\d{8,20}-[a-f0-9]{32,80}/),
  exact("discord_webhook", "/api/webhooks/", /\/api\/webhooks\/\d{17,20}\/([A-Za-z0-9_-]{60,80})/g),
  exact(
    "discord_token",
    ".",
    /(?<![A-Za-z0-9_.-])[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![A-Za-z0-9_.-])/g,
    mixed,
  ),
  exact(
    "telegram_token",
    ":",
    /(?<![A-Za-z0-9:])(?:bot)?\d{8,10}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])/g,
    mixed,
  ),
  row("twilio_key", "SK", /SK[0-9a-f]{32}(?![A-Za-z0-9])/),
  marked("sendgrid_key", "SG.", /SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}/, random),
  exact("mailgun_key", "key-", /(?<![A-Za-z0-9-])key-[0-9a-f]{32}(?![A-Za-z0-9])/g),
  exact("mailgun_key", "-", /(?<![A-Za-z0-9-])[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}(?![A-Za-z0-9-])/g),
  row("mailchimp_key", "-us", /[0-9a-f]{32}-us\d{1,2}(?![A-Za-z0-9])/),
];

const BUSINESS: readonly Credential[] = [
  marked("stripe_key", "_live_ _test_", /[sr]k_(?:live|test)_[A-Za-z0-9]{10,250}/, random),
  marked("stripe_webhook_secret", "whsec_", /whsec_[A-Za-z0-9+/]{24,100}={0,2}/, random),
  row("square_token", "sq0atp- sq0csp- sq0idp-", /sq0(?:atp|csp)-[A-Za-z0-9_-]{22,60}/),
  marked("shopify_token", "shpat_ shpca_ shppa_ shpss_", /shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}(?![A-Fa-f0-9])/),
  row("facebook_token", "EAA", /EAA[A-Za-z0-9]{90,400}/, mixed),
];

const FORMATS: readonly Credential[] = [
  exact(
    "jwt",
    "eyJ",
    /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,2000}\.eyJ[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{0,2000}/g,
  ),
  exact(
    "jwt",
    "eyJ",
    /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{0,1000}\.[A-Za-z0-9_-]{8,100}\.[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{8,100}/g,
  ),
  exact("age_secret_key", "AGE-SECRET-KEY-1", /AGE-SECRET-KEY-1[0-9A-Z]{50,70}/g),
];

/** Most certain first: if two matches overlap, the earlier pattern names the kind. */
export const CREDENTIAL_PATTERNS: readonly Credential[] = [
  ...CLOUD,
  ...DEVELOPER,
  ...MODELS,
  ...MESSAGING,
  ...BUSINESS,
  ...FORMATS,
];

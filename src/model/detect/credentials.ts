/**
 * The credentials that carry a mark of their own. Every pattern begins with a literal, is bounded, and
 * has no repetition inside a repetition, so that scanning stays linear on text an attacker writes.
 */

export interface Credential {
  readonly kind: string;
  /** One of these must occur in the text before the pattern is tried at all. */
  readonly hints: readonly string[];
  readonly pattern: RegExp;
  /** A further look at what matched, where the form alone also fits innocent text. */
  readonly accept?: (match: string) => boolean;
}

const HAS_DIGIT = /\d/;
const HAS_UPPER = /[A-Z]/;
const HAS_LOWER = /[a-z]/;

/** Letters of both cases and digits: what random keys have and words do not. */
const mixed = (text: string): boolean => HAS_DIGIT.test(text) && HAS_UPPER.test(text) && HAS_LOWER.test(text);
const random = (text: string): boolean => HAS_DIGIT.test(text) || (HAS_UPPER.test(text) && HAS_LOWER.test(text));

const CLOUD: readonly Credential[] = [
  { kind: "aws_access_key_id", hints: ["AKIA", "ASIA", "ABIA", "ACCA"], pattern: /(?<![A-Za-z0-9/+])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9/+])/g },
  { kind: "gcp_api_key", hints: ["AIza"], pattern: /(?<![A-Za-z0-9_-])AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])/g },
  { kind: "gcp_oauth_token", hints: ["ya29."], pattern: /(?<![A-Za-z0-9])ya29\.[A-Za-z0-9_-]{20,1000}/g, accept: random },
  { kind: "gcp_client_secret", hints: ["GOCSPX-"], pattern: /(?<![A-Za-z0-9])GOCSPX-[A-Za-z0-9_-]{24,40}/g },
  { kind: "azure_storage_key", hints: ["AccountKey=", "SharedAccessKey="], pattern: /(?<=(?:AccountKey|SharedAccessKey)=)[A-Za-z0-9+/]{40,100}={0,2}/g },
  { kind: "azure_client_secret", hints: ["Q~"], pattern: /(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~.-])/g },
  { kind: "azure_sas_signature", hints: ["sig="], pattern: /(?<=[?&;]sig=)[A-Za-z0-9%/+]{40,120}={0,2}/g, accept: mixed },
  { kind: "digitalocean_token", hints: ["_v1_"], pattern: /(?<![A-Za-z0-9])do[opr]_v1_[a-f0-9]{64}(?![a-f0-9])/g },
  { kind: "heroku_key", hints: ["HRKU-"], pattern: /(?<![A-Za-z0-9])HRKU-[A-Za-z0-9_-]{30,100}/g },
  { kind: "fly_token", hints: ["fm2_", "fo1_"], pattern: /(?<![A-Za-z0-9])(?:fm2|fo1)_[A-Za-z0-9+/_-]{40,2000}={0,2}/g },
  { kind: "netlify_token", hints: ["nfp_"], pattern: /(?<![A-Za-z0-9])nfp_[A-Za-z0-9]{36,50}/g },
  { kind: "cloudflare_key", hints: ["v1.0-"], pattern: /(?<![A-Za-z0-9])v1\.0-[a-f0-9]{24}-[a-f0-9]{146}/g },
  { kind: "databricks_token", hints: ["dapi"], pattern: /(?<![A-Za-z0-9])dapi[a-f0-9]{32}(?:-\d{1,2})?(?![A-Za-z0-9])/g },
  { kind: "planetscale_token", hints: ["pscale_"], pattern: /(?<![A-Za-z0-9])pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,80}/g },
  { kind: "supabase_token", hints: ["sbp_"], pattern: /(?<![A-Za-z0-9])sbp_[a-f0-9]{40}(?![a-f0-9])/g },
];

const DEVELOPER: readonly Credential[] = [
  { kind: "github_token", hints: ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], pattern: /(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{30,255}/g, accept: random },
  { kind: "github_token", hints: ["github_pat_"], pattern: /(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{36,255}/g, accept: random },
  { kind: "gitlab_token", hints: ["glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "glsoat-"], pattern: /(?<![A-Za-z0-9])gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|soat)-[A-Za-z0-9_-]{20,255}/g, accept: random },
  { kind: "bitbucket_token", hints: ["ATBB", "ATCTT3"], pattern: /(?<![A-Za-z0-9])(?:ATBB|ATCTT3)[A-Za-z0-9_=-]{28,255}/g, accept: mixed },
  { kind: "atlassian_token", hints: ["ATATT3"], pattern: /(?<![A-Za-z0-9])ATATT3[A-Za-z0-9_=-]{50,255}/g },
  { kind: "npm_token", hints: ["npm_"], pattern: /(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])/g, accept: random },
  { kind: "pypi_token", hints: ["pypi-"], pattern: /(?<![A-Za-z0-9])pypi-[A-Za-z0-9_-]{50,1000}/g, accept: mixed },
  { kind: "rubygems_key", hints: ["rubygems_"], pattern: /(?<![A-Za-z0-9])rubygems_[a-f0-9]{48}(?![a-f0-9])/g },
  { kind: "docker_token", hints: ["dckr_pat_", "dckr_oat_"], pattern: /(?<![A-Za-z0-9])dckr_[po]at_[A-Za-z0-9_-]{27,60}/g },
  { kind: "vault_token", hints: ["hvs.", "hvb.", "hvr."], pattern: /(?<![A-Za-z0-9])hv[sbr]\.[A-Za-z0-9_-]{24,300}/g, accept: random },
  { kind: "terraform_token", hints: [".atlasv1."], pattern: /(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,80}/g },
  { kind: "doppler_token", hints: ["dp."], pattern: /(?<![A-Za-z0-9.])dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}(?![A-Za-z0-9])/g },
  { kind: "pulumi_token", hints: ["pul-"], pattern: /(?<![A-Za-z0-9])pul-[a-f0-9]{40}(?![a-f0-9])/g },
  { kind: "grafana_token", hints: ["glsa_", "glc_"], pattern: /(?<![A-Za-z0-9])gl(?:sa|c)_[A-Za-z0-9+/_=]{32,400}/g, accept: random },
  { kind: "sentry_token", hints: ["sntrys_", "sntryu_"], pattern: /(?<![A-Za-z0-9])sntry[su]_[A-Za-z0-9+/_=]{40,500}/g },
  { kind: "postman_key", hints: ["PMAK-"], pattern: /(?<![A-Za-z0-9])PMAK-[a-f0-9]{24}-[a-f0-9]{34}/g },
  { kind: "newrelic_key", hints: ["NRAK-"], pattern: /(?<![A-Za-z0-9])NRAK-[A-Z0-9]{27}(?![A-Z0-9])/g },
  { kind: "tailscale_key", hints: ["tskey-"], pattern: /(?<![A-Za-z0-9])tskey-(?:auth|api|client|scim|webhook)-[A-Za-z0-9]{8,40}-[A-Za-z0-9]{20,60}/g },
  { kind: "linear_key", hints: ["lin_api_", "lin_oauth_"], pattern: /(?<![A-Za-z0-9])lin_(?:api|oauth)_[A-Za-z0-9]{40,64}/g },
  { kind: "notion_token", hints: ["ntn_", "secret_"], pattern: /(?<![A-Za-z0-9])(?:ntn_[A-Za-z0-9]{40,50}|secret_[A-Za-z0-9]{43})(?![A-Za-z0-9])/g, accept: mixed },
  { kind: "figma_token", hints: ["figd_"], pattern: /(?<![A-Za-z0-9])figd_[A-Za-z0-9_-]{40,60}/g },
  { kind: "airtable_token", hints: ["pat"], pattern: /(?<![A-Za-z0-9])pat[A-Za-z0-9]{14}\.[a-f0-9]{64}(?![a-f0-9])/g },
  { kind: "onepassword_token", hints: ["ops_eyJ"], pattern: /(?<![A-Za-z0-9])ops_eyJ[A-Za-z0-9+/_-]{100,2000}={0,2}/g },
];

const MODELS: readonly Credential[] = [
  { kind: "anthropic_key", hints: ["sk-ant-"], pattern: /(?<![A-Za-z0-9])sk-ant-[A-Za-z0-9_-]{20,250}/g, accept: random },
  { kind: "openrouter_key", hints: ["sk-or-"], pattern: /(?<![A-Za-z0-9])sk-or-v1-[a-f0-9]{64}(?![a-f0-9])/g },
  { kind: "openai_key", hints: ["sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-"], pattern: /(?<![A-Za-z0-9])sk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,250}/g, accept: random },
  { kind: "openai_key", hints: ["sk-"], pattern: /(?<![A-Za-z0-9-])sk-[A-Za-z0-9]{20,100}(?![A-Za-z0-9-])/g, accept: random },
  { kind: "huggingface_token", hints: ["hf_", "api_org_"], pattern: /(?<![A-Za-z0-9])(?:hf|api_org)_[A-Za-z0-9]{30,40}(?![A-Za-z0-9_])/g, accept: random },
  { kind: "groq_key", hints: ["gsk_"], pattern: /(?<![A-Za-z0-9])gsk_[A-Za-z0-9]{40,60}/g },
  { kind: "xai_key", hints: ["xai-"], pattern: /(?<![A-Za-z0-9])xai-[A-Za-z0-9]{60,100}/g },
  { kind: "perplexity_key", hints: ["pplx-"], pattern: /(?<![A-Za-z0-9])pplx-[A-Za-z0-9]{40,60}/g },
  { kind: "replicate_token", hints: ["r8_"], pattern: /(?<![A-Za-z0-9])r8_[A-Za-z0-9]{37}(?![A-Za-z0-9])/g },
];

const MESSAGING: readonly Credential[] = [
  { kind: "slack_webhook", hints: ["hooks.slack.com/"], pattern: /(?<=hooks\.slack\.com\/(?:services|workflows|triggers)\/)[A-Za-z0-9/+_-]{20,120}/g, accept: random },
  { kind: "slack_token", hints: ["xoxa-", "xoxb-", "xoxp-", "xoxo-", "xoxs-", "xoxr-", "xoxe-", "xoxe.", "xoxc-", "xoxd-"], pattern: /(?<![A-Za-z0-9])xox[abposrecd][.-](?:xox[bp]-)?[A-Za-z0-9%-]{10,400}/g, accept: (m) => HAS_DIGIT.test(m) },
  { kind: "slack_token", hints: ["xapp-"], pattern: /(?<![A-Za-z0-9])xapp-\d-[A-Z0-9]{8,20}-\d{8,20}-[a-f0-9]{32,80}/g },
  { kind: "discord_webhook", hints: ["/api/webhooks/"], pattern: /(?<=\/api\/webhooks\/\d{17,20}\/)[A-Za-z0-9_-]{60,80}/g },
  { kind: "discord_token", hints: ["."], pattern: /(?<![A-Za-z0-9_.-])[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![A-Za-z0-9_.-])/g, accept: mixed },
  { kind: "telegram_token", hints: [":"], pattern: /(?<![A-Za-z0-9:])(?:bot)?\d{8,10}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])/g, accept: mixed },
  { kind: "twilio_key", hints: ["SK"], pattern: /(?<![A-Za-z0-9])SK[0-9a-f]{32}(?![A-Za-z0-9])/g },
  { kind: "sendgrid_key", hints: ["SG."], pattern: /(?<![A-Za-z0-9])SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}/g, accept: random },
  { kind: "mailgun_key", hints: ["key-"], pattern: /(?<![A-Za-z0-9-])key-[0-9a-f]{32}(?![A-Za-z0-9])/g },
  { kind: "mailgun_key", hints: ["-"], pattern: /(?<![A-Za-z0-9-])[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}(?![A-Za-z0-9-])/g },
  { kind: "mailchimp_key", hints: ["-us"], pattern: /(?<![A-Za-z0-9])[0-9a-f]{32}-us\d{1,2}(?![A-Za-z0-9])/g },
];

const BUSINESS: readonly Credential[] = [
  { kind: "stripe_key", hints: ["_live_", "_test_"], pattern: /(?<![A-Za-z0-9])[sr]k_(?:live|test)_[A-Za-z0-9]{10,250}/g, accept: random },
  { kind: "stripe_webhook_secret", hints: ["whsec_"], pattern: /(?<![A-Za-z0-9])whsec_[A-Za-z0-9+/]{24,100}={0,2}/g, accept: random },
  { kind: "square_token", hints: ["sq0atp-", "sq0csp-", "sq0idp-"], pattern: /(?<![A-Za-z0-9])sq0(?:atp|csp)-[A-Za-z0-9_-]{22,60}/g },
  { kind: "shopify_token", hints: ["shpat_", "shpca_", "shppa_", "shpss_"], pattern: /(?<![A-Za-z0-9])shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}(?![A-Fa-f0-9])/g },
  { kind: "facebook_token", hints: ["EAA"], pattern: /(?<![A-Za-z0-9])EAA[A-Za-z0-9]{90,400}/g, accept: mixed },
];

const FORMATS: readonly Credential[] = [
  { kind: "jwt", hints: ["eyJ"], pattern: /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,2000}\.eyJ[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{0,2000}/g },
  { kind: "jwt", hints: ["eyJ"], pattern: /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{0,1000}\.[A-Za-z0-9_-]{8,100}\.[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{8,100}/g },
  { kind: "age_secret_key", hints: ["AGE-SECRET-KEY-1"], pattern: /AGE-SECRET-KEY-1[0-9A-Z]{50,70}/g },
];

/** In order of certainty: where two overlap, the earlier names the kind. */
export const CREDENTIALS: readonly Credential[] = [...CLOUD, ...DEVELOPER, ...MODELS, ...MESSAGING, ...BUSINESS, ...FORMATS];

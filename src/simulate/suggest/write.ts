/** Writes a draft as a policy file: the active entries, the suggested ones, and the evidence as comments. */
import { Document, isMap, isScalar, isSeq } from "yaml";
import { quoteForShell } from "../../kernel/shell-quote.ts";
import type { PolicyDoc } from "../../rules/policy/schema.ts";
import type { PolicyDraft, PolicySuggestion, SuggestedGrant, UsedPermissions } from "./draft.ts";

const KEPT = "in force already";

export function writeDraft(active: PolicyDoc, draft: PolicyDraft, head: readonly string[]): string {
  const added = (section: PolicySuggestion["section"]) =>
    draft.suggestions.flatMap((one) => (one.section === section ? [one] : []));
  const sections = (["rules", "limits", "budgets"] as const).filter((name) => added(name).length > 0);
  const together = Object.fromEntries(
    sections.map((name) => [name, [...(active[name] ?? []), ...added(name).map(({ entry }) => entry)]]),
  );
  const doc = new Document({ ...active, ...together });
  if (isMap(doc.contents)) {
    for (const { key, value } of doc.contents.items) {
      if (!isScalar(key) || key.value === "version") continue;
      if (!isSeq(value)) key.commentBefore = comment([KEPT]);
      else {
        const fresh = added(key.value as PolicySuggestion["section"]);
        const kept = value.items.length - fresh.length;
        value.items.forEach((item, at) => {
          if (isMap(item)) item.commentBefore = comment([at < kept ? KEPT : fresh[at - kept]!.evidence]);
        });
      }
    }
  }
  doc.commentBefore = comment([...head, ...permissionLines(draft.permissions), ...grantLines(draft.grants)]);
  return doc.toString({ lineWidth: 0 });
}

function permissionLines(permissions: readonly UsedPermissions[]): string[] {
  const lines = permissions.flatMap(({ actor, permissions: used, unused, evidence }) => [
    `  ${actor}: ${used.join(", ") || "none"} (${evidence})`,
    ...(unused.length === 0 ? [] : [`    requested by its runs and never used: ${unused.join(", ")}`]),
    ...(used.length === 0 ? [] : [`    --max-permissions ${quoteForShell(used.join(","))}`]),
  ]);
  return [
    "",
    "Permissions that each agent used; you can limit a key's max_permissions to them (svc keys add):",
    ...lines,
  ];
}

function grantLines(grants: readonly SuggestedGrant[]): string[] {
  if (grants.length === 0) return [];
  const lines = grants.flatMap((grant) => [
    `  ${grant.tool} by ${grant.actor}: ${grant.evidence}`,
    `    ${grantCommand(grant)}`,
  ]);
  return ["", "Grants for calls that were always approved; an approver can give them:", ...lines];
}

function grantCommand({ actor, tool, tenant, rule, when, max_uses, irreversible }: SuggestedGrant): string {
  return [
    `svc grants add --tool ${quoteForShell(tool)} --actor ${quoteForShell(actor)} --rule ${quoteForShell(rule)}`,
    ...(tenant === null ? [] : [`--tenant ${quoteForShell(tenant)}`]),
    ...when.map((condition) => `--when ${quoteForShell(condition)}`),
    `--max-uses ${max_uses}`,
    ...(irreversible ? ["--irreversible"] : []),
    "--expires 7d --reason 'always approved so far'",
  ].join(" ");
}

/** Escapes characters that could end the line or change how it looks, since agents choose names. */
function comment(lines: readonly string[]): string {
  const inert = (line: string) =>
    line.replace(
      /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
      (c) => `\\u${c.codePointAt(0)!.toString(16).padStart(4, "0")}`,
    );
  return lines.map((line) => (line === "" ? "" : ` ${inert(line)}`)).join("\n");
}

/** Generates the configuration reference page from the settings table. */
import { shownValue } from "./describe.ts";
import { isSection, type SettingRow } from "./setting-row.ts";
import { SETTING_ENTRIES } from "./settings.ts";

const INTRO = `# Configuration

<!-- Made from src/config/settings.ts; do not edit. \`npx vitest run src/config/generate.test.ts -u\` makes it anew. -->

Each setting is taken from the first of these that gives it: the command-line option, the environment
variable, the config file, the default. The config file is \`svc.config.yaml\` in the working directory, or
the one that \`--config\` or \`SVC_CONFIG\` names. \`svc config show\` prints the effective settings and where each
value came from.

- Unknown keys are errors that name the key and its line. All problems are reported at once.
- \`\${NAME}\` inside a text is replaced by the environment variable. An unset variable is an error. \`$\${\`
  is a literal \`\${\`.
- Relative paths are resolved against the config file's directory; those of options and environment variables
  against the working directory.
- An empty environment variable counts as not set. Switches in the environment are \`1\` or \`0\`.
- Durations are a whole number and \`ms\`, \`s\`, \`m\`, \`h\`, \`d\` or \`w\`, such as \`30m\`.
- Retention is part of the policy file.

Editors can check the file with \`schemas/config.schema.json\`: put
\`# yaml-language-server: $schema=<path to that file>\` on its first line.
`;

export function renderConfigReference(): string {
  const plain = SETTING_ENTRIES.flatMap(([name, entry]) =>
    isSection(entry) ? [] : [[name, entry] as const],
  );
  const sections = SETTING_ENTRIES.flatMap(([name, entry]) =>
    isSection(entry) ? [[name, entry] as const] : [],
  );
  const parts = [INTRO, `## Single keys\n\n${table(plain)}`];
  for (const [name, { about, rows }] of sections) {
    parts.push(
      `## ${name}\n\n${about}\n\n${table(Object.entries(rows).map(([key, row]) => [`${name}.${key}`, row] as const))}`,
    );
  }
  parts.push(`## Environment variables\n\n${variables()}`);
  return parts.join("\n");
}

function table(rows: readonly (readonly [key: string, row: SettingRow])[]): string {
  const lines = rows.map(([key, row]) =>
    line([
      code(key),
      row.type,
      showDefault(row),
      row.env ? code(row.env) : "",
      row.flag && !row.flag_inside ? code(`--${row.flag}`) : "",
      about(row),
    ]),
  );
  return `${line(["Key", "Value", "Default", "Environment", "Option", "Meaning"])}${line(Array(6).fill("-"))}${lines.join("")}`;
}

function variables(): string {
  const rows = SETTING_ENTRIES.flatMap(([name, entry]) =>
    isSection(entry)
      ? Object.entries(entry.rows).map(([key, row]) => [`${name}.${key}`, row] as const)
      : [[name, entry] as const],
  );
  const named = rows.flatMap(([key, row]) => (row.env === undefined ? [] : [[row.env, key] as const]));
  named.push(["SVC_CONFIG", "the config file itself"]);
  named.push([
    "SVC_COMMAND_ENV",
    "no key: comma-separated names of additional variables to pass to rollback commands",
  ]);
  named.sort(([a], [b]) => (a < b ? -1 : 1));
  const lines = named.map(([name, key]) => line([code(name), key.includes(" ") ? key : code(key)]));
  return `${line(["Variable", "Sets"])}${line(["-", "-"])}${lines.join("")}`;
}

function about(row: SettingRow): string {
  return row.secret ? `${row.about} Secret: shown masked.` : row.about;
}

function showDefault(row: SettingRow): string {
  if (row.shown_default !== undefined) return row.shown_default;
  const value = shownValue({ ...row, secret: false }, row.default);
  if (value === null) return "none";
  return code(typeof value === "string" ? value : JSON.stringify(value));
}

function code(text: string): string {
  return `\`${text}\``;
}

function line(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |\n`;
}

/** Generates the configuration reference page from the settings table. */
import { shownValue } from "./describe.ts";
import { isSection, type SettingRow } from "./setting-row.ts";
import { SETTING_ENTRIES } from "./settings.ts";

const INTRO = `# Configuration

<!-- Generated from src/config/settings.ts; do not edit. \`npx vitest run src/config/generate.test.ts -u\` generates it again. -->

A command-line option overrides an environment variable, which overrides the config file. The config file is
\`svc.config.yaml\` in the working directory, or the one that \`--config\` or \`SVC_CONFIG\` names. \`svc config show\`
prints the effective settings and their origin.

- Unknown keys are errors that name the key and its line. All problems are reported at once.
- \`\${NAME}\` inside a text is replaced by the environment variable. An unset variable is an error. \`$\${\`
  is a literal \`\${\`.
- Relative paths in the file start at its directory; those of options and environment variables at the working
  directory.
- An empty environment variable counts as not set. Switches in the environment are \`1\` or \`0\`.
- \`SVC_COMMAND_ENV\` has no key: it lists more variables, separated by commas, to pass to rollback commands.
- Durations are a whole number and \`ms\`, \`s\`, \`m\`, \`h\`, \`d\` or \`w\`, such as \`30m\`.
- Retention is part of the policy file.

Editors can check the file with \`schemas/config.schema.json\`: put
\`# yaml-language-server: $schema=<path to that file>\` on its first line.
`;

const UPSTREAM_KEYS = `An entry of \`upstreams\` has either \`command\` or \`url\`.

| Key | Default | Meaning |
| - | - | - |
| \`name\` | required | Name of the tool server. |
| \`command\`, \`args\`, \`env\`, \`cwd\` | | How to start it, for a server on stdio. |
| \`url\`, \`headers\` | | Where it listens, for a server over HTTP. |
| \`namespace\` | \`false\` | Puts the name in front of each tool. |
| \`timeout\` | \`60s\` | Longest time of a call. |
| \`passthrough\` | none | \`resources\`, \`prompts\`, \`completions\`, \`sampling\`, \`elicitation\`, \`roots\`. |
| \`isolation\` | \`principal\` | Who gets a separate connection: \`principal\`, \`session\` or \`shared\`. |
| \`max_connections\` | \`64\` | Open connections. |
| \`idle\` | \`30m\` | Unused time after which a connection is closed. |
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
  parts.push(`## Keys of an upstream\n\n${UPSTREAM_KEYS}`);
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

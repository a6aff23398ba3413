/**
 * Known fields of each client's tools. A call with any other field is not trusted, because the client may obey that
 * field and do something other than the evaluated call. Tools without an effect on the machine are not listed.
 */
import { HOOK_CLIENTS, type HookClient } from "./clients.ts";

const CLAUDE_SHELL = "command timeout description run_in_background dangerouslyDisableSandbox";
const CODEX_SHELL =
  "command workdir timeout timeout_ms login justification sandbox_permissions with_escalated_permissions prefix_rule";

const FIELDS: Record<HookClient, Readonly<Record<string, string>>> = {
  "claude-code": {
    Bash: CLAUDE_SHELL,
    PowerShell: CLAUDE_SHELL,
    Monitor: "command description timeout_ms persistent",
    Agent: "description prompt subagent_type model effort run_in_background name team_name mode isolation",
    EnterWorktree: "name path",
    Edit: "file_path old_string new_string replace_all",
    Write: "file_path content",
    MultiEdit: "file_path edits",
    NotebookEdit: "notebook_path cell_id new_source cell_type edit_mode",
    Read: "file_path offset limit pages allow_large",
    NotebookRead: "notebook_path cell_id",
    Glob: "pattern path",
    Grep: "pattern path glob output_mode -A -B -C -n -i -o context type head_limit offset multiline",
    LS: "path ignore",
    LSP: "operation filePath line character query",
    WebFetch: "url prompt offset",
    WebSearch: "query allowed_domains blocked_domains",
  },
  cursor: {
    Shell:
      "command cwd working_directory timeout description is_background block_until_ms required_permissions",
    Write: "file_path path content contents",
    Edit: "file_path path old_string new_string replace_all",
    StrReplace: "file_path path old_string new_string replace_all",
    Delete: "file_path path explanation",
    Read: "file_path path target_file offset limit",
    Glob: "pattern glob_pattern path target_directory",
    Grep: "pattern path glob output_mode -A -B -C -n -i type head_limit offset multiline",
    LS: "path target_directory ignore ignore_globs",
    SemanticSearch: "query target_directories explanation",
    WebFetch: "url prompt",
    WebSearch: "query search_term explanation",
  },
  codex: {
    Bash: "command",
    shell: CODEX_SHELL,
    local_shell: CODEX_SHELL,
    shell_command: CODEX_SHELL,
    exec_command: `cmd ${CODEX_SHELL} yield_time_ms max_output_tokens`,
    apply_patch: "command input",
    view_image: "path detail",
    web_search: "query",
  },
  gemini: {
    run_shell_command: "command description dir_path is_background delay_ms additional_permissions",
    write_file: "file_path content modified_by_user ai_proposed_content",
    replace:
      "file_path old_string new_string instruction expected_replacements allow_multiple modified_by_user ai_proposed_content",
    read_file: "file_path absolute_path start_line end_line offset limit",
    read_many_files:
      "include exclude recursive useDefaultExcludes file_filtering_options paths respect_git_ignore",
    list_directory: "dir_path path ignore file_filtering_options respect_git_ignore",
    glob: "pattern dir_path path case_sensitive respect_git_ignore respect_gemini_ignore",
    grep_search:
      "pattern dir_path path include include_pattern exclude_pattern names_only max_matches_per_file total_max_matches case_sensitive fixed_strings context before after no_ignore",
    search_file_content: "pattern dir_path path include no_ignore",
    web_fetch: "prompt url",
    google_web_search: "query",
    list_background_processes: "",
    read_background_output: "pid lines delay_ms",
    update_topic: "title summary strategic_intent",
    enter_plan_mode: "reason",
    exit_plan_mode: "plan_filename plan_path",
  },
};

/** Input fields that the tool does not have. Empty for an unknown tool. */
export function unknownFields(client: HookClient, tool: string, input: Record<string, unknown>): string[] {
  const clients = [client, ...HOOK_CLIENTS];
  const fields = clients.map((one) => FIELDS[one][tool]).find((list) => list !== undefined);
  if (fields === undefined) return [];
  const known = new Set(fields.split(" "));
  // Gemini CLI adds it to every tool. It only orders calls.
  if (client === "gemini") known.add("wait_for_previous");
  return Object.keys(input).filter((name) => !known.has(name));
}

/** Whether a field says that the call only starts a command. The event after such a call does not mean its end. */
export const isStartedOnly = (input: Record<string, unknown>): boolean =>
  input["run_in_background"] === true || input["is_background"] === true;

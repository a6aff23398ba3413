/**
 * The built-in tools of all clients, by the kind of call. A tool that is not listed needs approval, and so do the tools
 * under `asks`, whose effect reaches other machines or cannot be undone.
 */

export type ToolKind = "shell" | "edit" | "patch" | "read" | "web" | "client" | "asks";

const TOOLS: Readonly<Record<ToolKind, string>> = {
  shell: "Bash PowerShell Monitor Shell run_shell_command shell local_shell exec_command shell_command",
  edit: "Edit Write MultiEdit NotebookEdit Delete StrReplace write_file replace",
  patch: "apply_patch",
  read: `
    Read Glob Grep LS NotebookRead LSP SemanticSearch read_file read_many_files list_directory glob grep_search
    search_file_content view_image list_dir grep_files`,
  web: "WebFetch WebSearch web_fetch google_web_search web_search",
  // Topics, plans, questions, goals, to-do lists, subagents and wake-ups.
  client: `
    TodoWrite TodoRead Task Agent TaskCreate TaskUpdate TaskGet TaskList TaskOutput TaskStop GetTask BashOutput KillShell
    KillBash AskUserQuestion ExitPlanMode EnterPlanMode Skill SlashCommand ToolSearch ListMcpResourcesTool
    RefreshMcpTools WaitForMcpServers ListAgents ListProjectAgents SendMessage
    FetchInboxMessage ScheduleWakeup CronList CronDelete GetGoal PauseGoal ProposeGoal ReportFindings ReadNotifications
    PushNotification SendUserMessage SubagentHandback ObserverReport StructuredOutput EndConversation WrapUp Yield
    EnterWorktree SuggestConnectors SuggestSkills SuggestPluginInstall OfferChromeSetup ShowOnboardingRolePicker
    SearchMcpRegistry ReadWidgetContext FileSuggestions
    write_todos ask_user save_memory activate_skill update_topic enter_plan_mode exit_plan_mode complete_task invoke_agent
    get_internal_docs list_mcp_resources tracker_create_task tracker_update_task tracker_get_task
    tracker_list_tasks tracker_add_dependency tracker_visualize
    update_plan spawn_agent wait_agent close_agent send_input resume_agent list_agents send_message followup_task
    interrupt_agent request_user_input tool_search tool_suggest get_goal create_goal update_goal get_context_remaining
    new_context list_mcp_resource_templates clock sleep wait list_background_processes read_background_output
    DeferredToolPlaceholder request_user_input_async clock__curr_time clocksleep clockcurr_time
    collaborationspawn_agent collaborationwait_agent collaborationlist_agents collaborationsend_message
    collaborationfollowup_task collaborationinterrupt_agent
    multi_agent_v1spawn_agent multi_agent_v1wait_agent multi_agent_v1close_agent multi_agent_v1resume_agent
    multi_agent_v1send_input`,
  asks: `
    ReadMcpResourceTool ReadMcpResourceDirTool read_mcp_resource
    Artifact ArtifactCheck ArtifactComments ArtifactData AppifactRepl ClaudeDesign DesignSync CronCreate ExitWorktree
    Plugin PublishPlugin ProposeSkills Projects RemoteTrigger REPL RunBashCommand RunModFsRange SendFeedback SendFile
    SendToProject SendUserFile ShareOnboardingGuide TestingPermission Workflow
    write_stdin request_permissions request_plugin_install js_repl js_repl_reset exec image_generation
    spawn_agents_on_csv report_agent_job_result take_snapshot`,
};

const KINDS: ReadonlyMap<string, ToolKind> = new Map(
  (Object.keys(TOOLS) as ToolKind[]).flatMap((kind) =>
    TOOLS[kind]
      .trim()
      .split(/\s+/)
      .map((name) => [name, kind] as const),
  ),
);

/** Tools that have the client obey a skill, a command or an agent file. */
const USES_FILES =
  /^(?:Skill|SlashCommand|Task|Agent|activate_skill|invoke_agent|(?:\w+?)?spawn_agents?(?:_on_csv)?)$/;

export const usesClientFiles = (tool: string): boolean => USES_FILES.test(tool);

/** The kind of a client's tool. Undefined for an unknown tool. No two clients use a name differently. */
export const toolKind = (tool: string): ToolKind | undefined => KINDS.get(tool);

//! aye's commands and options as clap definitions. Doc comments in this file are shown by `--help`.

use crate::cli::agents::args::AgentsSub;
use crate::cli::apply::args::ApplyArgs;
use crate::cli::auth::args::AuthSub;
use crate::cli::hooks::args::HooksSub;
use crate::cli::import::args::ImportArgs;
use crate::cli::mcp::args::McpSub;
use crate::cli::memory::args::MemorySub;
use crate::cli::plugin::args::PluginSub;
use crate::cli::policy::args::PolicySub;
use crate::cli::rewind::args::RewindArgs;
use crate::cli::session_ids::session_id;
use crate::cli::sessions::args::SessionsSub;
use crate::cli::skills::args::SkillsSub;
use crate::cli::task::args::{TaskSub, TasksArgs};
use crate::cli::usage::args::UsageArgs;
use crate::llm::Catalogue;
use crate::protocol::{AssumedPrice, Effort, Mode, Problem, parse_rounds, parse_time, revision, validate_check};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, ArgGroup, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::path::PathBuf;

#[derive(Debug, Parser)]
#[command(name = "aye", version = crate::host::version::version(), max_term_width = 100)]
#[command(args_override_self = true)]
/// Run a coding agent in the terminal
///
/// Without a subcommand, aye opens a session in the full-screen UI.
pub(super) struct Cli {
    #[command(flatten)]
    pub session: SessionArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub run: RunArgs,
    /// Run one task and exit, as `aye exec` does
    #[arg(short = 'p', long = "print")]
    pub print: bool,
    /// Do not read standard input
    #[arg(long = "no-stdin")]
    pub no_stdin: bool,
    /// Prompt for the model; quote a prompt of several words
    pub prompt: Option<String>,
    #[command(subcommand)]
    pub subcommand: Option<Sub>,
    // Must be last, because its heading applies to all options after it.
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(super) struct CommonArgs {
    /// Work in this directory [default: the current directory]
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,
    /// Use the settings of this profile from config.toml
    ///
    /// A profile is a table `[profiles.NAME]` with the keys model, mode, effort, policy, max_steps and max_budget_usd.
    /// Options take precedence over it.
    #[arg(long, value_name = "NAME", global = true)]
    pub profile: Option<String>,
    /// Use this model [default: from config.toml or the API keys]
    ///
    /// The default is `[model] default` in the configuration. Without it, aye uses the first provider that has an API
    /// key.
    #[arg(short = 'm', long, value_name = "PROVIDER/NAME", global = true, value_parser = model)]
    pub model: Option<String>,
    /// Set which actions need approval [default: from config.toml]
    #[arg(long, value_name = "MODE", global = true, value_parser = modes())]
    pub mode: Option<Mode>,
    /// Use this policy file instead of your own policy.toml
    #[arg(long, value_name = "FILE", global = true)]
    pub policy: Option<PathBuf>,
    /// Add a directory to the workspace; repeatable
    #[arg(long = "add-dir", value_name = "DIR", global = true, action = ArgAction::Append)]
    pub add_dirs: Vec<PathBuf>,
    /// Trust this project's files for this run
    ///
    /// These are the files in `.aye/`, `.mcp.json`, AGENTS.md, hooks, skills and agents. Without trust, `aye exec` and
    /// `aye tool` ignore them.
    #[arg(long, global = true)]
    pub trust: bool,
    /// Override a configuration key for this run; repeatable
    ///
    /// `aye config keys` lists the keys.
    #[arg(long = "set", value_name = "KEY=VALUE", global = true, action = ArgAction::Append, value_parser = assignment)]
    pub set: Vec<(String, String)>,
    /// Stop a task after this many model requests [default: 1000]
    #[arg(long = "max-steps", value_name = "N", global = true, value_parser = steps)]
    pub max_steps: Option<u32>,
    /// Stop before the session costs more than this many US dollars
    #[arg(long = "max-budget-usd", value_name = "DOLLARS", global = true, value_parser = dollars)]
    pub max_budget_usd: Option<String>,
    /// Assume this price per million tokens for models without one
    ///
    /// With a budget in dollars, aye sends no requests to a model without a known price, unless you assume one. 3,15
    /// means $3 per million input tokens and $15 per million output tokens. The same as `budget.assumed_price`.
    #[arg(long = "assume-price", value_name = "INPUT,OUTPUT", global = true, value_parser = assumed_price)]
    pub assume_price: Option<String>,
    /// Set the reasoning effort, for models that support it
    ///
    /// If the model does not have this level, aye uses the nearest one and reports it.
    #[arg(long, value_name = "EFFORT", global = true, value_parser = efforts())]
    pub effort: Option<Effort>,
    /// Disable colours
    #[arg(long = "no-color", global = true)]
    pub no_color: bool,
    /// Draw with ASCII characters only
    #[arg(long, global = true)]
    pub ascii: bool,
    /// Print lines instead of the full-screen UI
    ///
    /// For screen readers, dumb terminals and pipes.
    #[arg(long, global = true)]
    pub plain: bool,
    /// Log more detail; repeatable, up to -vvv
    ///
    /// The log is in the data directory, which `aye config path` prints. AYE_LOG overrides this option.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
}

#[derive(Debug, Args)]
pub(super) struct SessionArgs {
    /// Continue the latest session of this project
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub latest: bool,
    /// Resume a session; without ID, choose from a list
    ///
    /// ID may be shortened to its first 6 or more digits; `latest` is the latest session of this project. Without a
    /// terminal and without ID, the latest session is resumed.
    #[arg(
        short = 'r',
        long,
        value_name = "ID",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = PICK,
        value_parser = resume
    )]
    pub resume: Option<Resume>,
    /// Fork a session and continue in the copy [default: latest]
    ///
    /// Without ID, the latest session of this project is forked.
    #[arg(
        long,
        value_name = "ID",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = PICK,
        value_parser = fork,
        conflicts_with_all = ["resume", "latest", "take_over"]
    )]
    pub fork: Option<Fork>,
    /// Take over a session that is open in another process
    ///
    /// The other process saves the session and exits first. Requires --continue or --resume.
    #[arg(long = "take-over")]
    pub take_over: bool,
}

#[derive(Debug, Args)]
pub(super) struct ResumeArgs {
    /// Resume the latest session of this project
    #[arg(long)]
    pub last: bool,
    /// Take over the session if it is open in another process
    #[arg(long = "take-over")]
    pub take_over: bool,
    /// ID of the session, or its first 6 or more digits
    pub id: Option<String>,
    /// Prompt for the model
    pub prompt: Option<String>,
}

/// Internal value of `--resume` without an ID. An explicitly empty `--resume=` is an error.
const PICK: &str = "?";
/// Value of `--resume` and `--fork` for the latest session.
pub(super) const LATEST: &str = "latest";

#[derive(Debug, Clone)]
pub(super) enum Resume {
    Pick,
    Latest,
    Id(String),
}

#[derive(Debug, Clone)]
pub(super) enum Fork {
    Latest,
    Id(String),
}

#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// Print JSON events, like `--output-format events`
    #[arg(long, conflicts_with = "output_format")]
    pub json: bool,
    /// Set the format of stdout [default: text]
    #[arg(long = "output-format", value_name = "FORMAT")]
    pub output_format: Option<FormatArg>,
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Offer only these tools; comma-separated, repeatable
    ///
    /// The option only removes tools. The policy still decides what they may do.
    #[arg(long = "allowed-tools", value_name = "TOOLS", action = ArgAction::Append)]
    pub allowed_tools: Vec<String>,
    /// Require a response that matches this JSON Schema
    ///
    /// stdout then contains only the JSON value. If the response does not match, aye asks the model once to correct it.
    #[arg(long = "output-schema", value_name = "FILE")]
    pub output_schema: Option<PathBuf>,
    /// Do not save this session
    ///
    /// Its data is removed when the run ends, so the session cannot be continued, and its changes cannot be rewound.
    #[arg(long)]
    pub ephemeral: bool,
    /// Write the changes to a patch file instead of the workspace
    ///
    /// The task runs in a copy-on-write layer. Nothing else from the session is saved. `aye apply FILE` applies the
    /// changes.
    #[arg(long, value_name = "FILE")]
    pub patch: Option<PathBuf>,
    /// Continue until this command exits with 0
    ///
    /// The prompt is a goal: whenever the model ends its turn, the command runs in a copy of the workspace. If it
    /// fails, its output is the next prompt. The run ends when the command passes, or when a limit is reached.
    #[arg(long, value_name = "COMMAND", value_parser = check_command, conflicts_with = "output_schema")]
    pub until: Option<String>,
    /// Stop the --until goal after this time, such as 30m
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time, requires = "until")]
    pub time_ms: Option<u64>,
    /// Stop the --until goal after this many failed checks [default: 25]
    #[arg(long, value_name = "N", value_parser = parse_rounds, requires = "until")]
    pub rounds: Option<u32>,
}

/// Validates the command that checks a goal.
fn check_command(text: &str) -> Result<String, String> {
    validate_check(text).map(|()| text.trim().to_owned())
}

#[derive(Debug, Args)]
pub(super) struct ReviewArgs {
    /// Review the changes since this branch or commit
    #[arg(long, value_name = "BRANCH", value_parser = revision)]
    pub base: Option<String>,
    /// Review the staged changes
    #[arg(long, conflicts_with = "base")]
    pub staged: bool,
    /// Review one commit
    #[arg(long, value_name = "COMMIT", value_parser = revision, conflicts_with_all = ["base", "staged"])]
    pub commit: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Do not save the session
    #[arg(long)]
    pub ephemeral: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FormatArg {
    /// The model's response as text
    Text,
    /// One JSON object at the end: the event that ended the task
    Json,
    /// Every event as a JSON line, as it happens
    Events,
    /// Messages as JSON lines, in Claude Code's format
    StreamJson,
}

#[derive(Debug, Subcommand)]
pub(super) enum Sub {
    /// Run one task without the full-screen UI, then exit
    ///
    /// Piped input is attached to the prompt, or is the prompt if none is given. There are no
    /// approval prompts: an action that needs approval is denied, and the exit code is then 3.
    Exec {
        #[command(flatten)]
        session: SessionArgs,
        #[command(flatten)]
        output: OutputArgs,
        #[command(flatten)]
        run: RunArgs,
        /// Accept `-p`, which has no effect here
        #[arg(short = 'p', long = "print", hide = true)]
        print: bool,
        /// Do not read standard input
        #[arg(long = "no-stdin")]
        no_stdin: bool,
        /// Prompt for the model, or `-` to read it from stdin
        prompt: Option<String>,
    },
    /// Resume a session; without ID, choose from a list
    ///
    /// The same as `aye --resume`. Without a terminal and without ID, the latest session is resumed.
    Resume(ResumeArgs),
    /// Serve one session to another program over JSON-RPC 2.0
    ///
    /// Each message is one line, on stdin and stdout or on a Unix socket.
    #[command(group = ArgGroup::new("door").required(true))]
    Serve {
        /// Use stdin and stdout
        #[arg(long, group = "door")]
        stdio: bool,
        /// Listen on a Unix socket that only you can use
        #[arg(long, value_name = "PATH", group = "door")]
        socket: Option<PathBuf>,
    },
    /// Try aye offline: a recorded model on a sample project
    Demo {
        /// Approve everything the demo asks for
        #[arg(long)]
        yes: bool,
    },
    /// List, describe and call tools
    Tool {
        #[command(subcommand)]
        tool: ToolSub,
    },
    /// Inspect, test and edit the policy
    Policy {
        #[command(subcommand)]
        policy: PolicySub,
    },
    /// List, search, export and manage sessions
    Sessions {
        #[command(subcommand)]
        sessions: SessionsSub,
    },
    /// Show tokens, cost and approvals by model, project or day
    ///
    /// The figures cover only stored sessions, not deleted ones.
    Usage(UsageArgs),
    /// Review changes, read-only, and print the findings
    ///
    /// Without options, reviews the uncommitted changes, or else those since the default branch. The exit code is 1 if
    /// a finding is high or critical.
    Review(ReviewArgs),
    /// Apply a patch file from `aye exec --patch`
    ///
    /// The file is untrusted data: every change is checked against the files and against the policy.
    Apply(ApplyArgs),
    /// Run tasks in their own copies of the workspace
    Task {
        #[command(subcommand)]
        task: TaskSub,
    },
    /// List the tasks of this project with their states
    Tasks(TasksArgs),
    /// Rewind files, conversation or both to an earlier prompt
    Rewind(RewindArgs),
    /// Manage API keys
    Auth {
        #[command(subcommand)]
        auth: AuthSub,
    },
    /// Manage MCP servers: list, add, sign in, test
    Mcp {
        #[command(subcommand)]
        mcp: McpSub,
    },
    /// List, test and pin hooks
    Hooks {
        #[command(subcommand)]
        hooks: HooksSub,
    },
    /// List, show and check agents
    Agents {
        #[command(subcommand)]
        agents: AgentsSub,
    },
    /// List, show and check skills
    Skills {
        #[command(subcommand)]
        skills: SkillsSub,
    },
    /// Review proposals for instruction files
    ///
    /// aye collects instructions that the model suggests or that you repeat in several tasks. Nothing is written
    /// until you apply a proposal.
    Memory {
        #[command(subcommand)]
        memory: MemorySub,
    },
    /// Add, list, check and remove plugins
    Plugin {
        #[command(subcommand)]
        plugin: PluginSub,
    },
    /// Import settings from another agent, after showing a plan
    ///
    /// Reads permissions, MCP servers, instructions and commands. Nothing is written until you approve the plan.
    Import(ImportArgs),
    /// List models with context windows and prices, or update the list
    #[command(args_conflicts_with_subcommands = true)]
    Models {
        #[command(subcommand)]
        models: Option<ModelsSub>,
        /// Query the providers and the local model servers too
        #[arg(long)]
        ask: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// List only models whose name contains this text
        filter: Option<String>,
    },
    /// Show settings and file locations
    Config {
        #[command(subcommand)]
        config: ConfigSub,
    },
    /// Check the installation and suggest fixes
    ///
    /// The exit code is 1 if something is missing.
    Doctor {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show how to update aye, and check for a newer version
    ///
    /// aye never updates itself. It detects how it was installed, and prints the commands that update it.
    Update(UpdateArgs),
    /// Deliver waiting records to services
    ///
    /// Services are configured under `[services]` in config.toml. The exit code is 1 if records remain.
    Sync {
        /// Delete the waiting records of a service that is not configured
        ///
        /// Nothing is delivered. If an audit or approval service is configured again later, it receives a record that
        /// says how many records are missing, and for which period.
        #[arg(long, value_name = "SERVICE", value_parser = service_names())]
        drop: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run sessions for an editor over the Agent Client Protocol
    ///
    /// The editor starts this command and communicates with it over stdin and stdout.
    Acp,
    /// Run first-time setup again: model and policy
    Setup {
        /// Do not prompt; use the preset and model from the options
        ///
        /// `--policy` names a preset here: ask (the default), strict, relaxed or readonly. `-m` names the model.
        #[arg(long)]
        yes: bool,
    },
    /// Generate shell completions
    Completions {
        /// Shell to generate the completions for
        shell: Shell,
    },
    /// Print the manual page
    Man {
        /// Write the pages of all commands to this directory instead
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(crate) struct UpdateArgs {
    /// Check for a newer version; the exit code is 100 if there is one
    #[arg(long)]
    pub check: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum ModelsSub {
    /// Update the model catalogue: context windows, prices, effort levels
    ///
    /// Shows what would change, and asks before it writes anything. Your own entries in models.toml are unchanged.
    /// Without a source, aye uses `models.catalogue_url`.
    Update(ModelsUpdate),
}

#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(crate) struct ModelsUpdate {
    /// URL or path of a catalogue: TOML, or the models.dev JSON
    pub source: Option<String>,
    /// Show what would change, without writing it
    #[arg(long)]
    pub check: bool,
    /// Update without asking
    #[arg(long, short, conflicts_with = "check")]
    pub yes: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum ToolSub {
    /// List the tools
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the definition of a tool
    Schema {
        /// Name of the tool, as shown by `aye tool list`
        #[arg(required_unless_present = "manifest")]
        name: Option<String>,
        /// Print the JSON Schema of custom tool manifests instead
        #[arg(long, conflicts_with = "name")]
        manifest: bool,
    },
    /// Call a tool as a model would, under the policy
    Call {
        /// Name of the tool, as shown by `aye tool list`
        name: String,
        /// Set the arguments: JSON, `@FILE`, or `-` for stdin
        #[arg(long, value_name = "JSON|@FILE|-", default_value = "{}")]
        args: String,
        /// Show what the call would do, without doing it
        #[arg(long)]
        plan: bool,
        /// Print the whole result as JSON
        #[arg(long)]
        json: bool,
        /// Approve the call if needed (denied calls stay denied)
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum ConfigSub {
    /// Print the paths of the settings, policy, keymap and data
    Path,
    /// Print every key with its value and where it was set
    Show,
    /// Print every key with its type, default and meaning
    Keys,
    /// Print the JSON Schema of config.toml, for editors
    Schema,
}

fn service_names() -> PossibleValuesParser {
    PossibleValuesParser::new([
        PossibleValue::new("approvals").help("Decisions for the approval service"),
        PossibleValue::new("audit").help("Audit records"),
        PossibleValue::new("sessions").help("Ends of sessions, for the session service"),
        PossibleValue::new("telemetry").help("Traces and metrics"),
        PossibleValue::new("workspace").help("Notes of session histories to upload"),
    ])
}

fn modes() -> impl TypedValueParser<Value = Mode> {
    let value = |mode: Mode| {
        PossibleValue::new(mode.as_str()).help(match mode {
            Mode::Plan => "Read-only: tools do not write, and commands only read",
            Mode::Ask => "Ask whenever the policy requires approval",
            Mode::AutoEdit => "Edit files in the workspace without asking",
            Mode::Auto => "Ask only about high-risk actions",
        })
    };
    PossibleValuesParser::new(Mode::ALL.map(value)).map(|given| Mode::from_name(&given).unwrap_or_default())
}

fn efforts() -> impl TypedValueParser<Value = Effort> {
    let value = |effort: Effort| {
        // Also accept the name that providers use.
        let alias = if effort == Effort::Off { Some("none") } else { None };
        PossibleValue::new(effort.as_str()).aliases(alias).help(match effort {
            Effort::Off => "No reasoning, if the model allows it",
            Effort::Minimal => "As little reasoning as possible",
            Effort::Low => "Short reasoning: fast and cheap",
            Effort::Medium => "A balance of speed and depth",
            Effort::High => "Long reasoning: slow and thorough",
            Effort::Xhigh => "Longer reasoning, for long tasks",
            Effort::Max => "The most reasoning that the model supports",
        })
    };
    PossibleValuesParser::new(Effort::ALL.map(value)).map(|given| Effort::from_name(&given).unwrap_or(Effort::Medium))
}

/// Validates a price, which consists of two amounts in US dollars per million tokens, for input and output.
fn assumed_price(given: &str) -> Result<String, String> {
    match AssumedPrice::parse(given) {
        Some(_) => Ok(given.to_owned()),
        None => Err("expected US dollars per million tokens, input and output, such as `3,15`".to_owned()),
    }
}

/// Parses a number of model requests.
fn steps(given: &str) -> Result<u32, String> {
    match given.parse() {
        Ok(0) | Err(_) => Err(format!("must be a whole number from 1 to {}", u32::MAX)),
        Ok(steps) => Ok(steps),
    }
}

/// Parses an amount in US dollars and formats it for the configuration.
fn dollars(given: &str) -> Result<String, String> {
    let text = given.strip_prefix('$').unwrap_or(given);
    match text.parse::<f64>() {
        Ok(dollars) if (0.0..=1e9).contains(&dollars) => Ok(format!("{dollars}")),
        _ => Err("must be a number of dollars, for example `5` or `0.50`".to_owned()),
    }
}

fn model(given: &str) -> Result<String, Problem> {
    let problem = Problem::new("must be PROVIDER/NAME, for example `anthropic/claude-sonnet-5`");
    match given.split_once('/') {
        Some((provider, name)) if !provider.is_empty() && !name.is_empty() => Ok(given.to_owned()),
        _ if given.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte)) && !given.is_empty() => {
            let catalogue = Catalogue::default();
            match catalogue.newest_of_family(given).as_slice() {
                [] => {}
                [newest] => return Ok(newest.clone()),
                several => return Err(problem.hint(format!("use one of `{}`", several.join("`, `")))),
            }
            Err(match catalogue.similar_name(given) {
                Some(name) => problem.hint(format!("did you mean `{name}`?")),
                None if catalogue.has_name_with(given) => {
                    problem.hint(format!("run `aye models {given}` to list the models with that name"))
                }
                None => problem.hint("run `aye models` to list the models"),
            })
        }
        _ => Err(problem),
    }
}

fn assignment(given: &str) -> Result<(String, String), Problem> {
    match given.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => {
            let problem = Problem::new("must be KEY=VALUE, for example `llm.max_retries=5`");
            Err(problem.hint("run `aye config keys` to list the keys"))
        }
    }
}

fn resume(given: &str) -> Result<Resume, Problem> {
    match given {
        PICK => Ok(Resume::Pick),
        LATEST => Ok(Resume::Latest),
        _ => session_id(given).map(Resume::Id),
    }
}

fn fork(given: &str) -> Result<Fork, Problem> {
    if [PICK, LATEST].contains(&given) { Ok(Fork::Latest) } else { session_id(given).map(Fork::Id) }
}

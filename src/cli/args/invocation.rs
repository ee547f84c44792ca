//! Validated command line, consisting of an action and its options.

use super::definition::{
    Cli, CommonArgs, ConfigSub, Fork, FormatArg, LATEST, ModelsSub, ModelsUpdate, OutputArgs, Resume, ResumeArgs, ReviewArgs,
    RunArgs, SessionArgs, Sub, ToolSub, UpdateArgs,
};
use super::{single_word, with_options_after_subcommand};
use crate::cli::agents::args::AgentsAction;
use crate::cli::apply::{ApplyRequest, Form as ApplyForm};
use crate::cli::auth::args::AuthAction;
use crate::cli::hooks::args::HooksAction;
use crate::cli::import::args::{Form as ImportForm, ImportRequest as Import};
use crate::cli::mcp::args::McpAction;
use crate::cli::memory::args::MemorySub;
use crate::cli::plugin::args::PluginAction;
use crate::cli::policy::args::PolicyAction;
use crate::cli::rewind::{Form as RewindForm, RewindRequest as Rewind};
use crate::cli::serve::ServeEndpoint;
use crate::cli::session_ids::session_id;
use crate::cli::sessions::args::SessionsAction;
use crate::cli::skills::args::SkillsAction;
use crate::cli::task::args::TaskAction;
use crate::cli::usage::args::UsageRequest;
use crate::host::options::{Answers, Color, Common, GoalOptions, RunOptions, SessionChoice, Trust};
use crate::protocol::{GOAL_ROUNDS, Mode, Problem, ReviewSubject};
use clap_complete::Shell;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CliInvocation {
    pub common: Common,
    pub action: CliAction,
    /// Text to print before the action runs.
    pub notice: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CliAction {
    Interactive {
        prompt: Option<String>,
        /// Whether the prompt followed `--` and is therefore sent unchanged.
        is_literal: bool,
        session: SessionChoice,
    },
    Exec {
        prompt: ExecPrompt,
        /// Whether standard input is attached to the prompt. False if `--no-stdin` was given.
        takes_input: bool,
        session: SessionChoice,
        format: OutputFormat,
        options: RunOptions,
    },
    Demo {
        answers: Answers,
    },
    Serve(ServeEndpoint),
    ToolList {
        json: bool,
    },
    ToolSchema {
        name: String,
    },
    ToolManifest,
    ToolPlan {
        name: String,
        arguments: String,
    },
    ToolCall {
        name: String,
        arguments: String,
        json: bool,
        answers: Answers,
    },
    Policy(PolicyAction),
    Review(ReviewRequest),
    Apply(ApplyRequest),
    Task(TaskAction),
    Rewind(Rewind),
    Sessions(SessionsAction),
    Usage(UsageRequest),
    Auth(AuthAction),
    Mcp(McpAction),
    Hooks(HooksAction),
    Agents(AgentsAction),
    Memory(MemorySub),
    Plugin(PluginAction),
    Skills(SkillsAction),
    Import(Import),
    ModelsUpdate(ModelsUpdate),
    Models {
        ask: bool,
        json: bool,
        filter: Option<String>,
    },
    ConfigPath,
    ConfigShow,
    ConfigKeys,
    ConfigSchema,
    Doctor {
        json: bool,
    },
    Setup {
        answers: Answers,
    },
    Update(UpdateArgs),
    Sync {
        /// Service whose waiting records are deleted. If `None`, all waiting records are delivered.
        drop: Option<String>,
        json: bool,
    },
    Acp,
    Completions {
        shell: Shell,
    },
    Man {
        dir: Option<PathBuf>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReviewRequest {
    pub subject: ReviewSubject,
    pub json: bool,
    /// Whether none of the session's data is saved.
    pub is_ephemeral: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ExecPrompt {
    /// Text that may start with a slash command.
    Text(String),
    /// Text that followed `--` and is sent unchanged.
    Literal(String),
    /// Standard input, read to its end and sent unchanged.
    Stdin,
    /// No prompt was given, so any piped input is the prompt.
    Piped,
    /// No prompt. The session's unfinished task is continued.
    GoOn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    Text,
    Json,
    Events,
    StreamJson,
}

/// Whether the prompt followed `--`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptPosition {
    Plainly,
    Literally,
}

/// Prompt given on the command line.
struct GivenPrompt {
    text: Option<String>,
    written: PromptPosition,
}

impl Cli {
    /// Returns the prompt that was given, if the command accepts one.
    pub(super) fn given_prompt(&self) -> Option<&str> {
        match &self.subcommand {
            None => self.prompt.as_deref(),
            Some(Sub::Exec { prompt, .. }) => prompt.as_deref(),
            Some(_) => None,
        }
    }

    /// Validates the combination of arguments. `words`: the line that was parsed.
    pub(super) fn check(self, written: PromptPosition, words: &[OsString]) -> Result<CliInvocation, Problem> {
        let (take_over, is_new) = match &self.subcommand {
            Some(Sub::Exec { session, .. }) => (session.take_over, session.choice() == SessionChoice::New),
            Some(Sub::Resume(args)) => (args.take_over, false),
            Some(_) | None => (self.session.take_over, self.session.choice() == SessionChoice::New),
        };
        if take_over && is_new {
            return Err(Problem::new("`--take-over` needs a session to continue").hint("add `-c` or `--resume`"));
        }
        let common = Common { take_over, ..self.common.into() };
        let action = match self.subcommand {
            None => {
                let session = self.session.choice();
                check_prompt(self.prompt.as_deref(), &session, written, if self.print { "aye -p" } else { "aye" })?;
                if self.print {
                    let prompt = GivenPrompt { text: self.prompt, written };
                    exec(prompt, session, self.output.format(), !self.no_stdin, self.run)?
                } else {
                    check_interactive(&self.output, &self.run, self.no_stdin)?;
                    let prompt = self.prompt.filter(|text| !text.trim().is_empty());
                    CliAction::Interactive { prompt, is_literal: written == PromptPosition::Literally, session }
                }
            }
            Some(subcommand) => {
                if let Some(prompt) = self.prompt {
                    let problem = Problem::new(format!("unexpected prompt `{prompt}` before a subcommand"));
                    return Err(problem.hint("put a prompt of several words in quotes, or after `--`"));
                }
                if self.print && !matches!(subcommand, Sub::Exec { .. }) {
                    let problem = Problem::new("`-p` cannot be combined with another subcommand");
                    return Err(problem.hint("put `--` before a prompt that looks like a subcommand"));
                }
                let of_run = self.output.format().is_some() || self.run.first().is_some();
                if self.session.choice() != SessionChoice::New || self.session.take_over || of_run {
                    let problem = Problem::new("session and output options go after the subcommand");
                    return Err(match with_options_after_subcommand(words) {
                        Some(line) => problem.hint(format!("run `{line}`")),
                        None => problem.hint("remove these options: this subcommand does not have them"),
                    });
                }
                subcommand.check(written)?
            }
        };
        // The model that a family, such as `sonnet`, stands for does not occur in the line.
        let is_given = |name: &&String| words.iter().any(|word| word.to_string_lossy().contains(name.as_str()));
        let newest = common.model.as_ref().filter(|name| !is_given(name));
        let notice = newest.map(|name| format!("using the model `{name}`, the newest of this family in the catalogue"));
        Ok(CliInvocation { common, action, notice })
    }
}

/// Rejects options that are valid only for a single task, not for an interactive session.
fn check_interactive(output: &OutputArgs, run: &RunArgs, no_stdin: bool) -> Result<(), Problem> {
    let options = if output.format().is_some() {
        "`--json` and `--output-format` need".to_owned()
    } else if let Some(option) = run.first().or(no_stdin.then_some("--no-stdin")) {
        format!("`{option}` needs")
    } else {
        return Ok(());
    };
    Err(Problem::new(format!("{options} `-p` or `aye exec`")).hint("run `aye exec` with these options"))
}

/// Rejects a prompt that is the name of a command. When a session is continued, such a word (for example `continue` or
/// `apply`) is accepted as a prompt.
fn check_prompt(prompt: Option<&str>, session: &SessionChoice, written: PromptPosition, start: &str) -> Result<(), Problem> {
    let is_plain = written == PromptPosition::Plainly && *session == SessionChoice::New;
    prompt.filter(|_| is_plain).and_then(|prompt| single_word::refuse(prompt, start)).map_or(Ok(()), Err)
}

fn exec(
    prompt: GivenPrompt,
    session: SessionChoice,
    format: Option<OutputFormat>,
    takes_input: bool,
    run: RunArgs,
) -> Result<CliAction, Problem> {
    let options = run.check(&session)?;
    let is_literal = prompt.written == PromptPosition::Literally;
    let prompt = match (prompt.text, &session) {
        (Some(dash), _) if dash == "-" && !takes_input => {
            let problem = Problem::new("`-` reads the prompt from stdin, but `--no-stdin` forbids that");
            return Err(problem.hint("remove one of them"));
        }
        (Some(dash), _) if dash == "-" => ExecPrompt::Stdin,
        (Some(text), _) if text.trim().is_empty() => {
            let problem = Problem::new("the prompt is empty");
            return Err(problem.hint("run `aye exec PROMPT`, or `aye exec -` to read the prompt from stdin"));
        }
        (Some(text), _) if is_literal => ExecPrompt::Literal(text),
        (Some(text), _) => ExecPrompt::Text(text),
        (None, SessionChoice::New) if !takes_input => {
            return Err(Problem::new("missing prompt").hint("run `aye exec --no-stdin PROMPT`"));
        }
        (None, SessionChoice::New) => ExecPrompt::Piped,
        (None, SessionChoice::Latest | SessionChoice::Pick | SessionChoice::Id(_) | SessionChoice::Fork(_)) => ExecPrompt::GoOn,
    };
    if options.goal.is_some() && prompt == ExecPrompt::GoOn {
        return Err(Problem::new("missing prompt: `--until` requires one").hint("run `aye exec --until COMMAND PROMPT`"));
    }
    Ok(CliAction::Exec { prompt, takes_input, session, format: format.unwrap_or(OutputFormat::Text), options })
}

impl Sub {
    fn check(self, written: PromptPosition) -> Result<CliAction, Problem> {
        Ok(match self {
            Self::Resume(args) => args.check(written)?,
            Self::Exec { session, output, run, print: _, no_stdin, prompt } => {
                let session = session.choice();
                check_prompt(prompt.as_deref(), &session, written, "aye exec")?;
                return exec(GivenPrompt { text: prompt, written }, session, output.format(), !no_stdin, run);
            }
            Self::Serve { stdio: _, socket } => CliAction::Serve(socket.map_or(ServeEndpoint::Stdio, ServeEndpoint::Socket)),
            Self::Demo { yes } => CliAction::Demo { answers: answers(yes) },
            Self::Tool { tool: ToolSub::List { json } } => CliAction::ToolList { json },
            Self::Tool { tool: ToolSub::Schema { name: Some(name), .. } } => CliAction::ToolSchema { name },
            Self::Tool { tool: ToolSub::Schema { name: None, .. } } => CliAction::ToolManifest,
            Self::Tool { tool: ToolSub::Call { name, args, plan: true, json: _, yes: _ } } => {
                CliAction::ToolPlan { name, arguments: args }
            }
            Self::Tool { tool: ToolSub::Call { name, args, plan: false, json, yes } } => {
                CliAction::ToolCall { name, arguments: args, json, answers: answers(yes) }
            }
            Self::Policy { policy } => CliAction::Policy(policy.check()),
            Self::Review(args) => CliAction::Review(args.check()),
            Self::Apply(args) => CliAction::Apply(args.check()),
            Self::Task { task } => CliAction::Task(task.check()?),
            Self::Tasks(args) => CliAction::Task(args.check()),
            Self::Rewind(args) => CliAction::Rewind(args.check()),
            Self::Sessions { sessions } => CliAction::Sessions(sessions.check()?),
            Self::Usage(args) => CliAction::Usage(args.check()),
            Self::Auth { auth } => CliAction::Auth(auth.check()),
            Self::Mcp { mcp } => CliAction::Mcp(mcp.check()?),
            Self::Hooks { hooks } => CliAction::Hooks(hooks.check()),
            Self::Agents { agents } => CliAction::Agents(agents.check()),
            Self::Skills { skills } => CliAction::Skills(skills.check()),
            Self::Memory { memory } => CliAction::Memory(memory),
            Self::Plugin { plugin } => CliAction::Plugin(plugin.check()),
            Self::Import(args) => CliAction::Import(args.check()),
            Self::Models { models: Some(ModelsSub::Update(args)), .. } => CliAction::ModelsUpdate(args),
            Self::Models { models: None, ask, json, filter } => CliAction::Models { ask, json, filter },
            Self::Config { config: ConfigSub::Path } => CliAction::ConfigPath,
            Self::Config { config: ConfigSub::Show } => CliAction::ConfigShow,
            Self::Config { config: ConfigSub::Keys } => CliAction::ConfigKeys,
            Self::Config { config: ConfigSub::Schema } => CliAction::ConfigSchema,
            Self::Doctor { json } => CliAction::Doctor { json },
            Self::Setup { yes } => CliAction::Setup { answers: answers(yes) },
            Self::Update(args) => CliAction::Update(args),
            Self::Sync { drop, json } => CliAction::Sync { drop, json },
            Self::Acp => CliAction::Acp,
            Self::Completions { shell } => CliAction::Completions { shell },
            Self::Man { dir } => CliAction::Man { dir },
        })
    }
}

fn answers(yes: bool) -> Answers {
    if yes { Answers::Yes } else { Answers::Person }
}

impl SessionArgs {
    fn choice(&self) -> SessionChoice {
        match &self.fork {
            Some(Fork::Latest) => return SessionChoice::Fork(None),
            Some(Fork::Id(id)) => return SessionChoice::Fork(Some(id.clone())),
            None => {}
        }
        match (&self.resume, self.latest) {
            (Some(Resume::Id(id)), _) => SessionChoice::Id(id.clone()),
            (Some(Resume::Pick), _) => SessionChoice::Pick,
            (Some(Resume::Latest), _) => SessionChoice::Latest,
            (None, true) => SessionChoice::Latest,
            (None, false) => SessionChoice::New,
        }
    }
}

impl ResumeArgs {
    /// Validates the arguments. A first argument that contains spaces is the prompt. Any other first argument must be a
    /// session ID.
    fn check(self, written: PromptPosition) -> Result<CliAction, Problem> {
        let (session, prompt) = match (self.id, self.last) {
            (Some(words), last) if words.contains(char::is_whitespace) => {
                if let Some(more) = self.prompt {
                    let problem = Problem::new(format!("unexpected argument `{more}`"));
                    return Err(problem.hint("put the whole prompt in quotes"));
                }
                (if last { SessionChoice::Latest } else { SessionChoice::Pick }, Some(words))
            }
            (Some(id), true) => {
                let problem = Problem::new(format!("`--last` and the ID `{id}` both name a session"));
                return Err(problem.hint("remove one of them"));
            }
            (Some(id), false) if id == LATEST => (SessionChoice::Latest, self.prompt),
            (Some(id), false) => {
                let known = session_id(&id).map_err(|problem| problem.with_location(format!("invalid session ID `{id}`")))?;
                (SessionChoice::Id(known), self.prompt)
            }
            (None, true) => (SessionChoice::Latest, None),
            (None, false) => (SessionChoice::Pick, None),
        };
        Ok(CliAction::Interactive { prompt, is_literal: written == PromptPosition::Literally, session })
    }
}

impl ReviewArgs {
    fn check(self) -> ReviewRequest {
        let subject = match (self.base, self.staged, self.commit) {
            (Some(base), ..) => ReviewSubject::Base(base),
            (None, true, _) => ReviewSubject::Staged,
            (None, false, Some(commit)) => ReviewSubject::Commit(commit),
            (None, false, None) => ReviewSubject::Default,
        };
        ReviewRequest { subject, json: self.json, is_ephemeral: self.ephemeral }
    }
}

impl OutputArgs {
    fn format(&self) -> Option<OutputFormat> {
        let named = self.output_format.map(|format| match format {
            FormatArg::Text => OutputFormat::Text,
            FormatArg::Json => OutputFormat::Json,
            FormatArg::Events => OutputFormat::Events,
            FormatArg::StreamJson => OutputFormat::StreamJson,
        });
        if self.json { Some(OutputFormat::Events) } else { named }
    }
}

impl RunArgs {
    /// Returns the first of these options that was given, for use in an error message.
    fn first(&self) -> Option<&'static str> {
        let given = [
            ("--allowed-tools", !self.allowed_tools.is_empty()),
            ("--output-schema", self.output_schema.is_some()),
            ("--ephemeral", self.ephemeral),
            ("--patch", self.patch.is_some()),
            ("--until", self.until.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }

    fn check(self, session: &SessionChoice) -> Result<RunOptions, Problem> {
        let continues = match session {
            SessionChoice::New => None,
            SessionChoice::Latest => Some("-c"),
            SessionChoice::Pick | SessionChoice::Id(_) => Some("--resume"),
            SessionChoice::Fork(_) => Some("--fork"),
        };
        let saves_nothing = if self.patch.is_some() { Some("--patch") } else { self.ephemeral.then_some("--ephemeral") };
        if let (Some(option), Some(own)) = (continues, saves_nothing) {
            let problem = Problem::new(format!("`{own}` cannot be combined with `{option}`"));
            let problem = problem.because("the run starts a new session that is not saved");
            return Err(problem.hint("remove one of them"));
        }
        let entries = || self.allowed_tools.iter().flat_map(|entries| split_names(entries)).collect();
        let allowed_tools = (!self.allowed_tools.is_empty()).then(entries);
        let (time_ms, max_rounds) = (self.time_ms, self.rounds.unwrap_or(GOAL_ROUNDS));
        let goal = self.until.map(|check| GoalOptions { check, time_ms, max_rounds });
        Ok(RunOptions { allowed_tools, output_schema: self.output_schema, is_ephemeral: self.ephemeral, patch: self.patch, goal })
    }
}

/// Splits a list of names at commas and spaces that are not inside parentheses.
fn split_names(text: &str) -> Vec<String> {
    let (mut names, mut name, mut depth) = (Vec::new(), String::new(), 0_usize);
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (letter == ',' || letter.is_whitespace()) {
            names.push(std::mem::take(&mut name));
        } else {
            name.push(letter);
        }
    }
    names.push(name);
    names.retain(|name| !name.is_empty());
    names
}

impl From<CommonArgs> for Common {
    fn from(args: CommonArgs) -> Self {
        let mut set = args.set;
        // Specific options take precedence over `--set`.
        set.extend(args.max_budget_usd.map(|dollars| ("budget.session_cost_usd".to_owned(), dollars)));
        set.extend(args.assume_price.map(|price| ("budget.assumed_price".to_owned(), price)));
        set.extend(args.effort.map(|effort| ("model.effort".to_owned(), effort.as_str().to_owned())));
        set.extend(args.ascii.then(|| ("ui.ascii".to_owned(), "true".to_owned())));
        Self {
            directory: args.directory,
            profile: args.profile,
            model: args.model,
            mode: args.mode,
            fallback_mode: None,
            policy: args.policy,
            add_dirs: args.add_dirs,
            trust: if args.trust { Trust::ForThisRun } else { Trust::AsRecorded },
            set,
            max_steps: args.max_steps,
            take_over: false,
            color: if args.no_color { Color::Never } else { Color::Auto },
            plain: args.plain,
            verbosity: args.verbose,
            copy: None,
        }
    }
}

impl CliInvocation {
    /// Rejects options that would let a command started by aye extend its own permissions.
    pub(super) fn refuse_widening(&self) -> Result<(), Problem> {
        let says_yes = match &self.action {
            CliAction::Demo { answers } | CliAction::ToolCall { answers, .. } => *answers == Answers::Yes,
            CliAction::Rewind(rewind) => rewind.form == RewindForm::Yes,
            CliAction::Apply(apply) => apply.form == ApplyForm::Yes,
            CliAction::Interactive { .. }
            | CliAction::Exec { .. }
            | CliAction::Serve(_)
            | CliAction::ToolList { .. }
            | CliAction::ToolSchema { .. }
            | CliAction::ToolManifest
            | CliAction::ToolPlan { .. }
            | CliAction::Policy(_)
            | CliAction::Task(_)
            | CliAction::Review(_)
            | CliAction::Sessions(_)
            | CliAction::Usage(_)
            | CliAction::Auth(_)
            | CliAction::Mcp(_)
            | CliAction::Hooks(_)
            | CliAction::Agents(_)
            | CliAction::Skills(_)
            | CliAction::Memory(_)
            | CliAction::Plugin(_)
            | CliAction::Import(_)
            | CliAction::Models { .. }
            | CliAction::ModelsUpdate(_)
            | CliAction::ConfigPath
            | CliAction::ConfigShow
            | CliAction::ConfigKeys
            | CliAction::ConfigSchema
            | CliAction::Completions { .. }
            | CliAction::Man { .. }
            | CliAction::Setup { .. }
            | CliAction::Update(_)
            | CliAction::Sync { .. }
            | CliAction::Acp
            | CliAction::Doctor { .. } => false,
        };
        let checks = [
            ("--trust", self.common.trust == Trust::ForThisRun),
            ("--policy", self.common.policy.is_some()),
            ("--profile", self.common.profile.is_some()),
            ("--mode auto", matches!(self.common.mode, Some(Mode::AutoEdit | Mode::Auto))),
            ("--take-over", self.common.take_over),
            ("--yes", says_yes),
            ("aye auth", matches!(&self.action, CliAction::Auth(auth) if auth.changes_keys())),
            ("aye sync", matches!(&self.action, CliAction::Sync { .. })),
            ("aye mcp serve", matches!(&self.action, CliAction::Mcp(McpAction::Serve { .. }))),
            ("aye mcp", matches!(&self.action, CliAction::Mcp(mcp) if mcp.changes_servers())),
            ("aye task", matches!(&self.action, CliAction::Task(task) if task.changes_tasks())),
            ("aye import", matches!(&self.action, CliAction::Import(import) if import.form != ImportForm::Plan)),
            ("aye memory", matches!(&self.action, CliAction::Memory(memory) if memory.changes_memory())),
            ("aye plugin", matches!(&self.action, CliAction::Plugin(plugin) if plugin.changes_plugins())),
            ("aye setup", matches!(self.action, CliAction::Setup { .. })),
            ("aye policy init", matches!(&self.action, CliAction::Policy(policy) if policy.changes_policy())),
        ];
        match checks.iter().find(|(_, given)| *given) {
            Some((flag, _)) => {
                let problem = Problem::new(format!("`{flag}` was refused"));
                let problem = problem.because("a command that aye runs (AYE=1) cannot extend its own permissions");
                Err(problem.hint("run it yourself, outside aye"))
            }
            None => Ok(()),
        }
    }
}

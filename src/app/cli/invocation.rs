//! What was asked for, after everything that can be checked without looking at the machine was checked.

use super::definition::{CommonArgs, ConfigSub, FormatArg, Line, OutputArgs, Resume, SessionArgs, SessionsSub, Sub, ToolSub};
use super::policy::PolicyAction;
use crate::protocol::Mode;
use clap_complete::Shell;
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    pub common: Common,
    pub action: Action,
}

/// The flags that every subcommand takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Common {
    pub directory: Option<PathBuf>,
    /// `PROVIDER/NAME`.
    pub model: Option<String>,
    pub mode: Option<Mode>,
    pub policy: Option<PathBuf>,
    pub add_dirs: Vec<PathBuf>,
    pub trust: Trust,
    pub set: Vec<(String, String)>,
    pub max_steps: Option<u32>,
    pub color: Color,
    pub verbosity: u8,
}

/// Whether `--trust` was given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trust {
    #[default]
    AsRecorded,
    ForThisRun,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Color {
    #[default]
    Auto,
    Never,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Interactive { prompt: Option<String>, session: SessionChoice },
    Exec { prompt: ExecPrompt, session: SessionChoice, format: OutputFormat },
    Demo { answers: Answers },
    ToolList { json: bool },
    ToolSchema { name: String },
    ToolManifest,
    ToolPlan { name: String, arguments: String },
    ToolCall { name: String, arguments: String, json: bool, answers: Answers },
    Policy(PolicyAction),
    SessionsList { json: bool, scope: SessionScope },
    SessionsShow { id: String },
    SessionsDelete { id: String },
    ConfigPath,
    ConfigShow,
    ConfigSchema,
    Doctor { json: bool },
    Completions { shell: Shell },
    Man { dir: Option<PathBuf> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChoice {
    New,
    /// The latest of this project.
    Latest,
    /// From a list; the latest where there is no screen.
    Pick,
    /// An id or the start of one.
    Id(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecPrompt {
    Text(String),
    /// Read to its end, sent as it is.
    Stdin,
    /// Go on where the session stopped.
    GoOn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    Text,
    Json,
    StreamJson,
}

/// Who answers the policy's questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    Person,
    /// `--yes`
    Yes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionScope {
    Project,
    All,
}

/// Subcommands to come: the word alone is not a prompt anybody means.
const PLANNED: [&str; 6] = ["acp", "auth", "mcp", "rewind", "serve", "setup"];

impl Line {
    pub(super) fn check(self) -> Result<Invocation, String> {
        let common = self.common.into();
        let action = match self.subcommand {
            None => main_action(self.prompt, self.session.choice(), &self.output, self.print)?,
            Some(subcommand) => {
                if let Some(prompt) = self.prompt {
                    return Err(format!(
                        "the prompt `{prompt}` stands before a subcommand; put a prompt of several words in quotes, or after `--`"
                    ));
                }
                if self.print && !matches!(subcommand, Sub::Exec { .. }) {
                    return Err("`-p` runs a task, it cannot stand before another subcommand; a prompt that reads like one stands after `--`".to_owned());
                }
                if self.session.choice() != SessionChoice::New || self.output.format().is_some() {
                    return Err("flags of sessions and output stand after the subcommand that takes them".to_owned());
                }
                subcommand.check()?
            }
        };
        Ok(Invocation { common, action })
    }
}

fn main_action(prompt: Option<String>, session: SessionChoice, output: &OutputArgs, print: bool) -> Result<Action, String> {
    if print {
        return exec(prompt, session, output.format());
    }
    if output.format().is_some() {
        return Err("`--json` and `--output-format` need `-p` or `aye exec`".to_owned());
    }
    if let Some(word) = prompt.as_deref().filter(|word| PLANNED.contains(word)) {
        return Err(format!("`aye {word}` is not in this version; to send the word to a model, say more than the word"));
    }
    Ok(Action::Interactive { prompt: prompt.filter(|text| !text.trim().is_empty()), session })
}

fn exec(prompt: Option<String>, session: SessionChoice, format: Option<OutputFormat>) -> Result<Action, String> {
    let prompt = match (prompt, &session) {
        (Some(dash), _) if dash == "-" => ExecPrompt::Stdin,
        (Some(text), _) if text.trim().is_empty() => return Err("the prompt is empty; say what to do".to_owned()),
        (Some(text), _) => ExecPrompt::Text(text),
        (None, SessionChoice::New) => {
            return Err(
                "there is no prompt: expected `aye exec PROMPT`, `aye exec -` to read it from stdin, or `-c` to go on".to_owned()
            );
        }
        (None, SessionChoice::Latest | SessionChoice::Pick | SessionChoice::Id(_)) => ExecPrompt::GoOn,
    };
    Ok(Action::Exec { prompt, session, format: format.unwrap_or(OutputFormat::Text) })
}

impl Sub {
    fn check(self) -> Result<Action, String> {
        Ok(match self {
            Self::Exec { session, output, print: _, prompt } => return exec(prompt, session.choice(), output.format()),
            Self::Demo { yes } => Action::Demo { answers: answers(yes) },
            Self::Tool { tool: ToolSub::List { json } } => Action::ToolList { json },
            Self::Tool { tool: ToolSub::Schema { name: Some(name), .. } } => Action::ToolSchema { name },
            Self::Tool { tool: ToolSub::Schema { name: None, .. } } => Action::ToolManifest,
            Self::Tool { tool: ToolSub::Call { name, args, plan: true, json: _, yes: _ } } => {
                Action::ToolPlan { name, arguments: args }
            }
            Self::Tool { tool: ToolSub::Call { name, args, plan: false, json, yes } } => {
                Action::ToolCall { name, arguments: args, json, answers: answers(yes) }
            }
            Self::Policy { policy } => Action::Policy(policy.check()),
            Self::Sessions { sessions: SessionsSub::List { json, all } } => {
                Action::SessionsList { json, scope: if all { SessionScope::All } else { SessionScope::Project } }
            }
            Self::Sessions { sessions: SessionsSub::Show { id } } => Action::SessionsShow { id },
            Self::Sessions { sessions: SessionsSub::Delete { id } } => Action::SessionsDelete { id },
            Self::Config { config: ConfigSub::Path } => Action::ConfigPath,
            Self::Config { config: ConfigSub::Show } => Action::ConfigShow,
            Self::Config { config: ConfigSub::Schema } => Action::ConfigSchema,
            Self::Doctor { json } => Action::Doctor { json },
            Self::Completions { shell } => Action::Completions { shell },
            Self::Man { dir } => Action::Man { dir },
        })
    }
}

fn answers(yes: bool) -> Answers {
    if yes { Answers::Yes } else { Answers::Person }
}

impl SessionArgs {
    fn choice(&self) -> SessionChoice {
        match (&self.resume, self.latest) {
            (Some(Resume::Id(id)), _) => SessionChoice::Id(id.clone()),
            (Some(Resume::Pick), _) => SessionChoice::Pick,
            (None, true) => SessionChoice::Latest,
            (None, false) => SessionChoice::New,
        }
    }
}

impl OutputArgs {
    fn format(&self) -> Option<OutputFormat> {
        let named = self.output_format.map(|format| match format {
            FormatArg::Text => OutputFormat::Text,
            FormatArg::Json => OutputFormat::Json,
            FormatArg::StreamJson => OutputFormat::StreamJson,
        });
        if self.json { Some(OutputFormat::StreamJson) } else { named }
    }
}

impl From<CommonArgs> for Common {
    fn from(args: CommonArgs) -> Self {
        Self {
            directory: args.directory,
            model: args.model,
            mode: args.mode,
            policy: args.policy,
            add_dirs: args.add_dirs,
            trust: if args.trust { Trust::ForThisRun } else { Trust::AsRecorded },
            set: args.set,
            max_steps: args.max_steps,
            color: if args.no_color { Color::Never } else { Color::Auto },
            verbosity: args.verbose,
        }
    }
}

impl Invocation {
    /// A command that aye runs may not use aye to allow itself more.
    pub(super) fn refuse_widening(&self) -> Result<(), String> {
        let says_yes = match &self.action {
            Action::Demo { answers } | Action::ToolCall { answers, .. } => *answers == Answers::Yes,
            Action::Interactive { .. }
            | Action::Exec { .. }
            | Action::ToolList { .. }
            | Action::ToolSchema { .. }
            | Action::ToolManifest
            | Action::ToolPlan { .. }
            | Action::Policy(_)
            | Action::SessionsList { .. }
            | Action::SessionsShow { .. }
            | Action::SessionsDelete { .. }
            | Action::ConfigPath
            | Action::ConfigShow
            | Action::ConfigSchema
            | Action::Completions { .. }
            | Action::Man { .. }
            | Action::Doctor { .. } => false,
        };
        let checks = [
            ("--trust", self.common.trust == Trust::ForThisRun),
            ("--policy", self.common.policy.is_some()),
            ("--mode auto", matches!(self.common.mode, Some(Mode::AutoEdit | Mode::Auto))),
            ("--yes", says_yes),
            ("aye policy init", matches!(&self.action, Action::Policy(policy) if policy.changes_the_policy())),
        ];
        match checks.iter().find(|(_, given)| *given) {
            Some((flag, _)) => {
                Err(format!("`{flag}` is refused inside a command that aye runs (AYE=1): only a person may allow more"))
            }
            None => Ok(()),
        }
    }
}

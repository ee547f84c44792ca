//! What may stand on the command line, as clap reads it.

use super::auth::AuthSub;
use super::looks_like_an_id;
use super::mcp::McpSub;
use super::policy::PolicySub;
use super::rewind::RewindArgs;
use super::sessions::SessionsSub;
use crate::protocol::{Effort, Mode};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, ArgGroup, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::path::PathBuf;

#[derive(Debug, Parser)]
#[command(name = "aye", version = crate::app::version::version(), about = "A coding agent for the terminal", max_term_width = 100)]
#[command(args_override_self = true)]
pub(super) struct Line {
    #[command(flatten)]
    pub session: SessionArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Run one task without the screen: `aye -p PROMPT` is `aye exec PROMPT`
    #[arg(short = 'p', long = "print")]
    pub print: bool,
    /// What to do; more words belong in quotes
    pub prompt: Option<String>,
    #[command(subcommand)]
    pub subcommand: Option<Sub>,
    // Last, because its heading holds for all that follows.
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Everywhere")]
pub(super) struct CommonArgs {
    /// Work in this directory
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,
    /// The model to use
    #[arg(short = 'm', long, value_name = "PROVIDER/NAME", global = true, value_parser = model)]
    pub model: Option<String>,
    /// How much runs without a question
    #[arg(long, value_name = "MODE", global = true, value_parser = modes())]
    pub mode: Option<Mode>,
    /// A policy file in place of your own
    #[arg(long, value_name = "FILE", global = true)]
    pub policy: Option<PathBuf>,
    /// One more directory that belongs to the workspace; may be repeated
    #[arg(long = "add-dir", value_name = "DIR", global = true, action = ArgAction::Append)]
    pub add_dirs: Vec<PathBuf>,
    /// Trust this directory for this run
    #[arg(long, global = true)]
    pub trust: bool,
    /// Set a key of the configuration for this run; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", global = true, action = ArgAction::Append, value_parser = assignment)]
    pub set: Vec<(String, String)>,
    /// Stop after so many requests to the model
    #[arg(long = "max-steps", value_name = "N", global = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_steps: Option<u32>,
    /// Ask nothing of the model that would cost the session more than so many dollars
    #[arg(long = "max-budget-usd", value_name = "DOLLARS", global = true, value_parser = dollars)]
    pub max_budget_usd: Option<String>,
    /// How hard the model is to think, where it can be told so
    #[arg(long, value_name = "EFFORT", global = true, value_parser = efforts())]
    pub effort: Option<Effort>,
    /// Write no colours
    #[arg(long = "no-color", global = true)]
    pub no_color: bool,
    /// Draw signs with ASCII only
    #[arg(long, global = true)]
    pub ascii: bool,
    /// Lines in place of the screen: for screen readers, dumb terminals and pipes
    #[arg(long, global = true)]
    pub plain: bool,
    /// Log more; may be repeated. The log is in the data directory
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
}

#[derive(Debug, Args)]
pub(super) struct SessionArgs {
    /// Go on with the latest session of this project
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub latest: bool,
    /// Go on with a session; without an ID you choose from a list
    #[arg(long, value_name = "ID", num_args = 0..=1, require_equals = true, default_missing_value = PICK, value_parser = resume)]
    pub resume: Option<Resume>,
    /// Go on in a copy of a session; without an ID of the latest one of this project
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
    /// Where another process has that session open, have it save and end first
    #[arg(long = "take-over")]
    pub take_over: bool,
}

/// What `--resume` without an id reads as; an empty `--resume=` is a mistake.
const PICK: &str = "?";

#[derive(Debug, Clone)]
pub(super) enum Resume {
    Pick,
    Id(String),
}

#[derive(Debug, Clone)]
pub(super) enum Fork {
    Latest,
    Id(String),
}

#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// One event per line on stdout; the same as `--output-format stream-json`
    #[arg(long, conflicts_with = "output_format")]
    pub json: bool,
    /// What stands on stdout
    #[arg(long = "output-format", value_name = "FORMAT")]
    pub output_format: Option<FormatArg>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FormatArg {
    Text,
    Json,
    StreamJson,
}

#[derive(Debug, Subcommand)]
pub(super) enum Sub {
    /// Run one task without the screen, then exit
    Exec {
        #[command(flatten)]
        session: SessionArgs,
        #[command(flatten)]
        output: OutputArgs,
        /// Accepted for those who are used to it
        #[arg(short = 'p', long = "print", hide = true)]
        print: bool,
        /// What to do, or `-` to read it from stdin
        prompt: Option<String>,
    },
    /// Run one session for another program, by JSON-RPC 2.0, one message a line
    #[command(group = ArgGroup::new("door").required(true))]
    Serve {
        /// On stdin and stdout
        #[arg(long, group = "door")]
        stdio: bool,
        /// On a local socket that only you can use
        #[arg(long, value_name = "PATH", group = "door")]
        socket: Option<PathBuf>,
    },
    /// See it work, offline: a recorded model on a sample project
    Demo {
        /// Answer every question of the demo with yes
        #[arg(long)]
        yes: bool,
    },
    /// The tools, one by one
    Tool {
        #[command(subcommand)]
        tool: ToolSub,
    },
    /// What may happen
    Policy {
        #[command(subcommand)]
        policy: PolicySub,
    },
    /// What was said
    Sessions {
        #[command(subcommand)]
        sessions: SessionsSub,
    },
    /// Go back to before a prompt: files, what was said, or both; and forth again
    Rewind(RewindArgs),
    /// Keys of providers
    Auth {
        #[command(subcommand)]
        auth: AuthSub,
    },
    /// Servers of tools: which there are, adding one, signing in, trying it out
    Mcp {
        #[command(subcommand)]
        mcp: McpSub,
    },
    /// The models that can be asked, with their limits and prices
    Models {
        /// Ask the providers and the servers of this machine too
        #[arg(long)]
        ask: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
        /// Only those whose name has this in it
        filter: Option<String>,
    },
    /// What is set, and where
    Config {
        #[command(subcommand)]
        config: ConfigSub,
    },
    /// Look at what aye needs here, and say what is missing and how to get it
    Doctor {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Run sessions for an editor, by the Agent Client Protocol on stdin and stdout
    Acp,
    /// The questions of the first start again: the model, and how much runs without a question
    Setup {
        /// Ask nothing: `--policy` names a preset (ask, strict, relaxed, readonly), `-m` the model
        #[arg(long)]
        yes: bool,
    },
    /// Print what a shell needs to complete the words of aye
    Completions { shell: Shell },
    /// Print the manual page: `aye man | man -l -`
    Man {
        /// Write the pages of all subcommands into this directory instead
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum ToolSub {
    /// List the tools
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a tool's definition
    Schema {
        #[arg(required_unless_present = "manifest")]
        name: Option<String>,
        /// What the manifest of a custom tool may say, as JSON Schema
        #[arg(long, conflicts_with = "name")]
        manifest: bool,
    },
    /// Call a tool as a model would
    Call {
        name: String,
        /// The arguments: JSON, `@FILE`, or `-` for stdin
        #[arg(long, value_name = "JSON|@FILE|-", default_value = "{}")]
        args: String,
        /// Say what it would do and do nothing
        #[arg(long)]
        plan: bool,
        /// Print the whole result as JSON
        #[arg(long)]
        json: bool,
        /// Answer the policy's question with yes; a deny stays a deny
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum ConfigSub {
    /// Print where the files are
    Path,
    /// Print every key with its value and where that comes from
    Show,
    /// Print every key with its type, default and meaning
    Schema,
}

fn modes() -> impl TypedValueParser<Value = Mode> {
    const MODES: [Mode; 4] = [Mode::Plan, Mode::Ask, Mode::AutoEdit, Mode::Auto];
    PossibleValuesParser::new(MODES.map(Mode::as_str))
        .map(|given| MODES.into_iter().find(|mode| mode.as_str() == given).unwrap_or_default())
}

fn efforts() -> impl TypedValueParser<Value = Effort> {
    PossibleValuesParser::new(Effort::ALL.map(Effort::as_str)).map(|given| Effort::named(&given).unwrap_or(Effort::Medium))
}

/// As the configuration takes it.
fn dollars(given: &str) -> Result<String, String> {
    let text = given.strip_prefix('$').unwrap_or(given);
    match text.parse::<f64>() {
        Ok(dollars) if (0.0..=1e9).contains(&dollars) => Ok(format!("{dollars}")),
        _ => Err("expected a number of dollars, for example `5` or `0.50`".to_owned()),
    }
}

fn model(given: &str) -> Result<String, String> {
    match given.split_once('/') {
        Some((provider, name)) if !provider.is_empty() && !name.is_empty() => Ok(given.to_owned()),
        _ => Err("expected PROVIDER/NAME, for example `anthropic/claude-sonnet-5`".to_owned()),
    }
}

fn assignment(given: &str) -> Result<(String, String), String> {
    match given.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE, for example `llm.max_retries=5`; `aye config schema` lists the keys".to_owned()),
    }
}

fn resume(given: &str) -> Result<Resume, String> {
    if given == PICK { Ok(Resume::Pick) } else { session_id(given).map(Resume::Id) }
}

fn fork(given: &str) -> Result<Fork, String> {
    if given == PICK { Ok(Fork::Latest) } else { session_id(given).map(Fork::Id) }
}

pub(super) fn session_id(given: &str) -> Result<String, String> {
    if looks_like_an_id(given) {
        return Ok(given.to_ascii_lowercase());
    }
    Err("expected at least 6 hex digits of a session id; `aye sessions list` shows them".to_owned())
}

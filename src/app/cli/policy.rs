//! `aye policy …` as clap reads it, and what it asks for.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(super) enum PolicySub {
    /// Say what would come of a command or a call, by which rule and why; nothing runs
    ///
    /// The exit code is 0 whatever the verdict, and 2 where the policy or the call cannot be read.
    #[command(
        override_usage = "aye policy explain [OPTIONS] -- COMMAND...\n       aye policy explain [OPTIONS] --tool NAME --args JSON"
    )]
    Explain(ExplainArgs),
    /// Show the policy in force, entry by entry, each with the file and the line it comes from
    Show {
        /// As JSON
        #[arg(long)]
        json: bool,
        /// As TOML, with the origin of each entry as a comment
        #[arg(long, conflicts_with = "json")]
        toml: bool,
    },
    /// Run the [[tests]] of a policy, for use in CI
    ///
    /// Without FILE: all layers in force, each with its own tests. With FILE: that file alone, as `--policy FILE` would put it
    /// in force; a project's `.aye/policy.toml` on top of the layers in force. Exit code 1 where a test fails, 2 where a file
    /// cannot be read.
    Test {
        /// Policies to test
        files: Vec<PathBuf>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Check that a policy can be read, and warn of what it hardly means
    ///
    /// Without FILE: every layer in force. Exit code 2 where there is a mistake; warnings do not change it.
    Validate {
        /// The policy to check
        file: Option<PathBuf>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a policy to start from
    Init(InitArgs),
    /// The rules you saved by "always allow"
    Grants {
        #[command(subcommand)]
        grants: GrantsSub,
    },
    /// Who or which rule decided what, when
    Log {
        /// As JSON, one decision a line
        #[arg(long)]
        json: bool,
        /// Of this session only: its id or the start of it
        #[arg(long, value_name = "ID", value_parser = super::definition::session_id)]
        session: Option<String>,
        /// Only what was refused
        #[arg(long)]
        denied: bool,
        /// The latest N
        #[arg(short = 'n', value_name = "N", default_value_t = 50)]
        most: usize,
    },
    /// Print the JSON Schema of a policy, for editors
    Schema,
    /// Judge actions, one JSON object a line on stdin, and do none of them
    Check {
        /// Read and write JSON lines
        #[arg(long, required = true)]
        jsonl: bool,
    },
    /// Print the text on stdin as a model would be given it, without secrets
    Redact {
        /// Read and write JSON lines: `{"id": 1, "text": "…"}`
        #[arg(long)]
        jsonl: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum GrantsSub {
    /// List them, with the file and the line of each
    List {
        /// As JSON, one rule a line
        #[arg(long)]
        json: bool,
    },
    /// Take rules back, by what `list` calls them
    Revoke {
        /// `mine-here:14`, `user:31`
        #[arg(value_name = "RULE", required_unless_present_any = ["all", "expired"])]
        rules: Vec<String>,
        /// All that hold in this project
        #[arg(long, conflicts_with = "rules")]
        all: bool,
        /// Those whose time is over
        #[arg(long)]
        expired: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantsAction {
    List { json: bool },
    Revoke { names: Vec<String>, all: bool, expired: bool },
}

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Where the command would run
    #[arg(long, value_name = "DIR", conflicts_with = "tool")]
    cwd: Option<String>,
    /// A call of this tool instead of a command
    #[arg(long, value_name = "NAME", conflicts_with = "command", requires = "args")]
    tool: Option<String>,
    /// The arguments of the call: JSON, `@FILE`, or `-` for stdin
    #[arg(long, value_name = "JSON|@FILE|-", requires = "tool")]
    args: Option<String>,
    /// The command: one word is a line as a shell would read it, several are a program and its arguments
    #[arg(last = true, required_unless_present = "tool")]
    command: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// How much goes without a question
    #[arg(long, value_enum, default_value_t, conflicts_with = "project")]
    preset: Preset,
    /// A policy for everybody who works on this project: `.aye/policy.toml`, which can only tighten
    #[arg(long)]
    project: bool,
    /// Write in place of the file that is there, which is kept as a backup
    #[arg(long)]
    force: bool,
    /// Print it and write nothing
    #[arg(long, conflicts_with = "force")]
    stdout: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// What holds without a policy: reading is allowed, the rest asks
    #[default]
    Ask,
    /// Named programs only, no network, secrets out of reach
    Strict,
    /// Edits in the workspace and everyday builds go without a question
    Relaxed,
    /// Nothing is written and only what reads may run
    Readonly,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyAction {
    Explain { subject: Subject, json: bool },
    Show { form: ShowForm },
    Test { files: Vec<PathBuf>, json: bool },
    Validate { file: Option<PathBuf>, json: bool },
    Init { template: Template, place: InitPlace },
    Grants(GrantsAction),
    Log { json: bool, session: Option<String>, denied: bool, most: usize },
    Schema,
    Check,
    Redact { jsonl: bool },
}

/// What is to be explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// One word: the line. Several: a program and its arguments.
    Command { words: Vec<String>, cwd: Option<String> },
    /// `arguments` as on the command line of `aye tool call`.
    Call { tool: String, arguments: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShowForm {
    Table,
    Json,
    Toml,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Template {
    Preset(Preset),
    Project,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InitPlace {
    Stdout,
    /// The file must not be there yet.
    NewFile,
    /// What is there is kept as a backup.
    Replace,
}

impl PolicySub {
    pub(super) fn check(self) -> PolicyAction {
        match self {
            Self::Explain(ExplainArgs { json, tool: Some(tool), args, .. }) => {
                PolicyAction::Explain { subject: Subject::Call { tool, arguments: args.unwrap_or_default() }, json }
            }
            Self::Explain(ExplainArgs { json, cwd, command, .. }) => {
                PolicyAction::Explain { subject: Subject::Command { words: command, cwd }, json }
            }
            Self::Show { json: true, .. } => PolicyAction::Show { form: ShowForm::Json },
            Self::Show { toml: true, .. } => PolicyAction::Show { form: ShowForm::Toml },
            Self::Show { .. } => PolicyAction::Show { form: ShowForm::Table },
            Self::Test { files, json } => PolicyAction::Test { files, json },
            Self::Validate { file, json } => PolicyAction::Validate { file, json },
            Self::Init(InitArgs { preset, project, force, stdout }) => PolicyAction::Init {
                template: if project { Template::Project } else { Template::Preset(preset) },
                place: match (stdout, force) {
                    (true, _) => InitPlace::Stdout,
                    (false, true) => InitPlace::Replace,
                    (false, false) => InitPlace::NewFile,
                },
            },
            Self::Grants { grants: GrantsSub::List { json } } => PolicyAction::Grants(GrantsAction::List { json }),
            Self::Grants { grants: GrantsSub::Revoke { rules, all, expired } } => {
                PolicyAction::Grants(GrantsAction::Revoke { names: rules, all, expired })
            }
            Self::Log { json, session, denied, most } => PolicyAction::Log { json, session, denied, most },
            Self::Schema => PolicyAction::Schema,
            Self::Check { jsonl: _ } => PolicyAction::Check,
            Self::Redact { jsonl } => PolicyAction::Redact { jsonl },
        }
    }
}

impl PolicyAction {
    /// Whether it changes what is allowed, which a command that aye runs may not.
    pub(super) fn changes_the_policy(&self) -> bool {
        match self {
            Self::Init { place, .. } => *place != InitPlace::Stdout,
            Self::Grants(GrantsAction::Revoke { .. }) => true,
            Self::Grants(GrantsAction::List { .. })
            | Self::Log { .. }
            | Self::Explain { .. }
            | Self::Show { .. }
            | Self::Test { .. }
            | Self::Validate { .. }
            | Self::Schema
            | Self::Redact { .. }
            | Self::Check => false,
        }
    }
}

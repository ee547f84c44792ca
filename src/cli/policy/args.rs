//! `aye policy …`: clap definition and checked action.

use crate::host::policy_templates::{InitPlace, Preset, Template};
use clap::builder::PossibleValue;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum PolicySub {
    /// Explain the verdict for a command or tool call
    ///
    /// Nothing is run. The exit code is 0 for every verdict, and 2 if the policy or the call is invalid.
    #[command(
        override_usage = "aye policy explain [OPTIONS] -- COMMAND...\n       aye policy explain [OPTIONS] --tool NAME --args JSON"
    )]
    Explain(ExplainArgs),
    /// Show the policy in effect, with the source of each entry
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Print TOML, with the origin of each entry as a comment
        #[arg(long, conflicts_with = "json")]
        toml: bool,
    },
    /// Run the `[[tests]]` of a policy, for example in CI
    ///
    /// Without FILES, each layer in effect runs its own tests. A given file is tested on its own, as `--policy FILE`
    /// would apply it. A project's `.aye/policy.toml` is tested on top of the layers in effect. The exit code is 1 if a
    /// test fails, and 2 if a file cannot be read.
    Test {
        /// Policy files to test [default: all layers in effect]
        files: Vec<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Validate a policy and warn about likely mistakes
    ///
    /// The exit code is 2 if there is an error. Warnings do not change it.
    Validate {
        /// Policy file to validate [default: all layers in effect]
        file: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a starter policy
    Init(InitArgs),
    /// List and revoke the rules saved by "always allow"
    Grants {
        #[command(subcommand)]
        grants: GrantsSub,
    },
    /// Show past decisions, with time, action, and rule or user
    Log {
        /// Print one JSON object per decision
        #[arg(long)]
        json: bool,
        /// Show only this session (ID, or its first 6 or more digits)
        #[arg(long, value_name = "ID", value_parser = crate::cli::session_ids::session_id)]
        session: Option<String>,
        /// Show denials only
        #[arg(long)]
        denied: bool,
        /// Show the latest N decisions
        #[arg(short = 'n', value_name = "N", default_value_t = 50)]
        most: usize,
    },
    /// Load the policy from `services.policy.url` now
    Pull,
    /// Print the JSON Schema of a policy, for editors
    Schema,
    /// Evaluate tool calls from stdin without running them
    ///
    /// Each line is a JSON object with `tool` and `arguments`. Each verdict is one line of JSON.
    Check {
        /// Read and write JSON lines (required)
        #[arg(long, required = true)]
        jsonl: bool,
    },
    /// Redact secrets in text from stdin, as aye does for the model
    Redact {
        /// Read and write JSON lines: `{"id": 1, "text": "…"}`
        #[arg(long)]
        jsonl: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum GrantsSub {
    /// List saved rules with the file and line of each
    List {
        /// Print one JSON object per rule
        #[arg(long)]
        json: bool,
    },
    /// Revoke saved rules, by the names that `list` shows
    Revoke {
        /// Names of the rules, such as `mine-here:14` or `user:31`
        #[arg(value_name = "RULE", required_unless_present_any = ["all", "expired"])]
        rules: Vec<String>,
        /// Revoke all rules that apply in this project
        #[arg(long, conflicts_with = "rules")]
        all: bool,
        /// Revoke the rules that have expired
        #[arg(long)]
        expired: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GrantsAction {
    List { json: bool },
    Revoke { names: Vec<String>, all: bool, expired: bool },
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Set the directory that the command would run in
    #[arg(long, value_name = "DIR", conflicts_with = "tool")]
    cwd: Option<String>,
    /// Explain a call to this tool instead of a command
    #[arg(long, value_name = "NAME", conflicts_with = "command", requires = "args")]
    tool: Option<String>,
    /// Set the call arguments: JSON, `@FILE`, or `-` for stdin
    #[arg(long, value_name = "JSON|@FILE|-", requires = "tool")]
    args: Option<String>,
    /// Command, after `--`; a single argument is parsed as a shell line
    ///
    /// Several arguments are treated as a program and its arguments.
    #[arg(last = true, required_unless_present = "tool")]
    command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Choose which actions need no approval
    #[arg(long, value_enum, default_value_t, conflicts_with = "project")]
    preset: Preset,
    /// Write this project's policy, `.aye/policy.toml`
    ///
    /// It applies to everyone who works on the project, and can only tighten their own policies.
    #[arg(long)]
    project: bool,
    /// Replace an existing file and save a backup of it
    #[arg(long)]
    force: bool,
    /// Print the policy instead of writing it
    #[arg(long, conflicts_with = "force")]
    stdout: bool,
}

impl ValueEnum for Preset {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Ask, Self::Strict, Self::Relaxed, Self::Readonly]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self {
            Self::Ask => ("ask", "Allow reading and ask about the rest, as without a policy"),
            Self::Strict => ("strict", "Allow named programs only; no network, no access to secrets"),
            Self::Relaxed => ("relaxed", "Allow workspace edits and common builds without asking"),
            Self::Readonly => ("readonly", "Deny writes, and allow only commands that read"),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PolicyAction {
    Explain { subject: ExplainSubject, json: bool },
    Show { form: ShowForm },
    Test { files: Vec<PathBuf>, json: bool },
    Validate { file: Option<PathBuf>, json: bool },
    Init { template: Template, place: InitPlace },
    Grants(GrantsAction),
    Log { json: bool, session: Option<String>, denied: bool, most: usize },
    Pull,
    Schema,
    Check,
    Redact { jsonl: bool },
}

/// The action to explain: a command or a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ExplainSubject {
    /// A single word is a shell command line. Several words are a program and its arguments.
    Command { words: Vec<String>, cwd: Option<String> },
    /// A tool call. `arguments` has the same form as the `--args` option of `aye tool call`.
    Call { tool: String, arguments: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShowForm {
    Table,
    Json,
    Toml,
}

impl PolicySub {
    pub(crate) fn check(self) -> PolicyAction {
        match self {
            Self::Explain(ExplainArgs { json, tool: Some(tool), args, .. }) => {
                PolicyAction::Explain { subject: ExplainSubject::Call { tool, arguments: args.unwrap_or_default() }, json }
            }
            Self::Explain(ExplainArgs { json, cwd, command, .. }) => {
                PolicyAction::Explain { subject: ExplainSubject::Command { words: command, cwd }, json }
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
            Self::Pull => PolicyAction::Pull,
            Self::Schema => PolicyAction::Schema,
            Self::Check { jsonl: _ } => PolicyAction::Check,
            Self::Redact { jsonl } => PolicyAction::Redact { jsonl },
        }
    }
}

impl PolicyAction {
    /// Returns whether the action changes the policy. Commands started by aye must not do this.
    pub(crate) fn changes_policy(&self) -> bool {
        match self {
            Self::Init { place, .. } => *place != InitPlace::Stdout,
            Self::Grants(GrantsAction::Revoke { .. }) => true,
            Self::Grants(GrantsAction::List { .. })
            | Self::Log { .. }
            | Self::Explain { .. }
            | Self::Show { .. }
            | Self::Test { .. }
            | Self::Validate { .. }
            | Self::Pull
            | Self::Schema
            | Self::Redact { .. }
            | Self::Check => false,
        }
    }
}

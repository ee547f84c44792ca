//! `aye sessions …` as clap reads it, and what it asks for.

use super::definition::session_id;
use super::invocation::SessionScope;
pub use crate::protocol::ExportForm;
use clap::{Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(super) enum SessionsSub {
    /// List the sessions of this project
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
        /// Those of all projects
        #[arg(long)]
        all: bool,
        /// Those that were put away, in the place of the others
        #[arg(long)]
        archived: bool,
    },
    /// Print what was said
    Show {
        #[arg(value_parser = session_id)]
        id: String,
        /// As events, one JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Look for a text in what was said: `aye sessions search TEXT`, or `/REGEX/`
    Search {
        /// Upper and lower case are the same
        text: String,
        /// In all projects
        #[arg(long)]
        all: bool,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Write a session as a file: JSON that `aye sessions import` takes, Markdown, or a page
    Export {
        #[arg(value_parser = session_id)]
        id: String,
        #[arg(long, value_enum, default_value = "json")]
        format: FormArg,
        /// Where to; stdout without it
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// With what is kept beside the session: long outputs, images (JSON)
        #[arg(long)]
        with_artifacts: bool,
    },
    /// Take in a session that was exported, for this project
    Import {
        /// The file, or `-` for stdin
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Make a session that begins with all that was said in this one
    Fork {
        #[arg(value_parser = session_id)]
        id: String,
    },
    /// Give a session another title
    Rename {
        #[arg(value_parser = session_id)]
        id: String,
        title: String,
    },
    /// Put a session away: it is not among those to go on with, and is kept as long as the others
    Archive {
        #[arg(value_parser = session_id)]
        id: String,
    },
    /// Take a session out again that was put away
    Unarchive {
        #[arg(value_parser = session_id)]
        id: String,
    },
    /// Forget a session
    Delete {
        #[arg(value_parser = session_id)]
        id: String,
    },
    /// Give up what is beyond the ages and sizes of `[retention]`
    Prune {
        /// Say what would be given up, and give up nothing
        #[arg(long)]
        dry_run: bool,
        /// Sessions of this project that nobody used for so many days, whatever is configured
        #[arg(long, value_name = "DAYS")]
        older_than: Option<u32>,
        /// With `--older-than`: those of all projects
        #[arg(long)]
        all: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FormArg {
    Json,
    Md,
    Html,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionsAction {
    List { json: bool, scope: SessionScope, archived: bool },
    Show { id: String, json: bool },
    Search { text: String, json: bool, scope: SessionScope },
    Export { id: String, form: ExportForm, output: Option<PathBuf>, artifacts: WithArtifacts },
    Import { file: PathBuf },
    Fork { id: String },
    Rename { id: String, title: String },
    Archive { id: String, archived: bool },
    Delete { id: String },
    Prune { run: PruneRun, older_than: Option<u32>, scope: SessionScope, json: bool },
}

/// Whether contents go with a session that only names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithArtifacts {
    No,
    Yes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneRun {
    /// `--dry-run`
    Say,
    Do,
}

impl SessionsSub {
    pub(super) fn check(self) -> Result<SessionsAction, String> {
        let scope = |all| if all { SessionScope::All } else { SessionScope::Project };
        Ok(match self {
            Self::List { json, all, archived } => SessionsAction::List { json, scope: scope(all), archived },
            Self::Show { id, json } => SessionsAction::Show { id, json },
            Self::Search { text, .. } if text.trim().is_empty() => {
                return Err("there is nothing to look for: expected `aye sessions search TEXT`".to_owned());
            }
            Self::Search { text, all, json } => SessionsAction::Search { text, json, scope: scope(all) },
            Self::Export { format: FormArg::Md | FormArg::Html, with_artifacts: true, .. } => {
                return Err("`--with-artifacts` is for `--format json`; the other formats name artifacts".to_owned());
            }
            Self::Export { id, format, output, with_artifacts } => SessionsAction::Export {
                id,
                form: match format {
                    FormArg::Json => ExportForm::Json,
                    FormArg::Md => ExportForm::Markdown,
                    FormArg::Html => ExportForm::Html,
                },
                output: output.filter(|path| path.as_os_str() != "-"),
                artifacts: if with_artifacts { WithArtifacts::Yes } else { WithArtifacts::No },
            },
            Self::Import { file } => SessionsAction::Import { file },
            Self::Fork { id } => SessionsAction::Fork { id },
            Self::Rename { title, .. } if title.trim().is_empty() => {
                return Err("the title is empty: expected `aye sessions rename ID TITLE`".to_owned());
            }
            Self::Rename { id, title } => SessionsAction::Rename { id, title },
            Self::Archive { id } => SessionsAction::Archive { id, archived: true },
            Self::Unarchive { id } => SessionsAction::Archive { id, archived: false },
            Self::Delete { id } => SessionsAction::Delete { id },
            Self::Prune { dry_run, older_than, all, json } => SessionsAction::Prune {
                run: if dry_run { PruneRun::Say } else { PruneRun::Do },
                older_than,
                scope: scope(all),
                json,
            },
        })
    }
}

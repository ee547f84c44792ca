//! `aye sessions …`: clap definition and checked action.

use crate::cli::session_ids::session_id;
pub(crate) use crate::protocol::ExportForm;
use crate::protocol::Problem;
use clap::{Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsSub {
    /// List the sessions of this project
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// List the sessions of all projects
        #[arg(long)]
        all: bool,
        /// Show archived sessions instead
        #[arg(long)]
        archived: bool,
    },
    /// Print the conversation of a session
    Show {
        /// Session ID, or its first 6 or more digits
        #[arg(value_parser = session_id)]
        id: String,
        /// Print events, one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Search sessions for text or a regular expression
    ///
    /// The search covers titles, prompts, responses, tool arguments and results. The exit code is 1 if nothing matches.
    Search {
        /// Text, or `/REGEX/`; case is ignored
        text: String,
        /// Search the sessions of all projects
        #[arg(long)]
        all: bool,
        /// Print one JSON object per match
        #[arg(long)]
        json: bool,
    },
    /// Export a session as JSON, Markdown or HTML
    Export {
        /// Session ID, or its first 6 or more digits
        #[arg(value_parser = session_id)]
        id: String,
        /// Choose the format of the file
        #[arg(long, value_enum, default_value = "json")]
        format: FormArg,
        /// Write to this file [default: stdout]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Include artifacts: long outputs and images (JSON only)
        #[arg(long)]
        with_artifacts: bool,
    },
    /// Import an exported session into this project
    Import {
        /// File to read, or `-` for stdin
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Push sessions to the object store
    ///
    /// The store is `services.workspace.url` in config.toml. Sessions are also pushed after each task.
    Push {
        /// Session ID [default: all sessions of this project]
        #[arg(value_parser = session_id)]
        id: Option<String>,
        /// Push a session even if another machine owns it
        #[arg(long, requires = "id")]
        take_over: bool,
    },
    /// Pull a session from the object store, to continue it here
    ///
    /// Without an ID, the sessions in the store are listed.
    Pull {
        /// Session ID, or its first 6 or more digits
        #[arg(value_parser = session_id)]
        id: Option<String>,
        /// Pull a session even if another machine is running its task
        #[arg(long, requires = "id")]
        take_over: bool,
        /// Import the session under a new ID
        #[arg(long, requires = "id")]
        fork: bool,
        /// Print the list as JSON
        #[arg(long, conflicts_with = "id")]
        json: bool,
    },
    /// Fork a session: start a new one with the same history
    Fork {
        /// Session ID, or its first 6 or more digits
        #[arg(value_parser = session_id)]
        id: String,
    },
    /// Rename a session
    Rename {
        /// Session ID, or its first 6 or more digits
        #[arg(value_parser = session_id)]
        id: String,
        /// New title
        title: String,
    },
    /// Archive a session: hide it from the resume list
    Archive {
        /// Session ID, or its first 6 or more digits
        #[arg(value_parser = session_id)]
        id: String,
    },
    /// Unarchive a session
    Unarchive {
        /// Session ID, or its first 6 or more digits
        #[arg(value_parser = session_id)]
        id: String,
    },
    /// Delete a session and its artifacts
    Delete {
        /// Session ID, or its first 6 or more digits
        #[arg(value_parser = session_id)]
        id: String,
    },
    /// Delete data beyond the `[retention]` limits
    Prune {
        /// Show what would be deleted, without deleting it
        #[arg(long)]
        dry_run: bool,
        /// Delete sessions of this project not used for this many days
        ///
        /// This overrides the session limits in `[retention]`.
        #[arg(long, value_name = "DAYS")]
        older_than: Option<u32>,
        /// With `--older-than`, delete sessions of all projects
        #[arg(long)]
        all: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormArg {
    /// JSON that `aye sessions import` reads
    Json,
    /// Markdown, to read or share
    Md,
    /// A single HTML page, to read or share
    Html,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionsAction {
    List { json: bool, scope: SessionScope, archived: bool },
    Show { id: String, json: bool },
    Search { text: String, json: bool, scope: SessionScope },
    Export { id: String, form: ExportForm, output: Option<PathBuf>, artifacts: WithArtifacts },
    Import { file: PathBuf },
    Push { id: Option<String>, take_over: bool },
    Pull { id: String, take_over: bool, fork: bool },
    ListStored { json: bool },
    Fork { id: String },
    Rename { id: String, title: String },
    Archive { id: String, archived: bool },
    Delete { id: String },
    Prune { run: PruneRun, older_than: Option<u32>, scope: SessionScope, json: bool },
}

/// Whether an export includes the content of artifacts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithArtifacts {
    No,
    Yes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PruneRun {
    /// Lists the sessions without deleting them (`--dry-run`).
    Say,
    Do,
}

impl SessionsSub {
    pub(crate) fn check(self) -> Result<SessionsAction, Problem> {
        let scope = |all| if all { SessionScope::All } else { SessionScope::Project };
        Ok(match self {
            Self::List { json, all, archived } => SessionsAction::List { json, scope: scope(all), archived },
            Self::Show { id, json } => SessionsAction::Show { id, json },
            Self::Search { text, .. } if text.trim().is_empty() => {
                return Err(Problem::new("nothing to search for: the text is empty").hint("run `aye sessions search TEXT`"));
            }
            Self::Search { text, all, json } => SessionsAction::Search { text, json, scope: scope(all) },
            Self::Export { format: FormArg::Md | FormArg::Html, with_artifacts: true, .. } => {
                return Err("`--with-artifacts` requires `--format json`".into());
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
            Self::Push { id, take_over } => SessionsAction::Push { id, take_over },
            Self::Pull { id: Some(id), take_over, fork, .. } => SessionsAction::Pull { id, take_over, fork },
            Self::Pull { id: None, json, .. } => SessionsAction::ListStored { json },
            Self::Fork { id } => SessionsAction::Fork { id },
            Self::Rename { title, .. } if title.trim().is_empty() => {
                let problem = Problem::new("cannot rename the session: the title is empty");
                return Err(problem.hint("run `aye sessions rename ID TITLE`"));
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionScope {
    Project,
    All,
}

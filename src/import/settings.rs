//! Settings of another agent as data, before they are evaluated.

use super::command_pattern::CommandPattern;
use crate::config::servers::NewServer;
use crate::config::{PATH_PUNCTUATION, instruction_imports};
use crate::protocol::VerdictKind;

/// All data that was found in the files of an agent.
#[derive(Debug, Default)]
pub(crate) struct AgentSettings {
    pub permissions: Vec<Permission>,
    pub servers: Vec<ServerEntry>,
    pub instructions: Vec<InstructionText>,
    pub commands: Vec<CommandFile>,
    /// Partly imported entries, each with the imported part.
    pub narrowed: Vec<(String, String)>,
    /// Entries without an equivalent in aye.
    pub unsupported: Vec<Unsupported>,
}

/// Owner of the file that contains an entry: the user or the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SettingsOwner {
    /// Files in the home directory, for all projects.
    User,
    /// Files of the workspace.
    Project,
}

/// A permission of another agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Permission {
    /// The file, as shown to users.
    pub place: String,
    /// Entry in its original form.
    pub text: String,
    pub level: SettingsOwner,
    pub verdict: VerdictKind,
    pub subject: Subject,
}

/// Subject of a permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    Command(CommandPattern),
    /// Reading files: path patterns of a policy.
    Read(Vec<String>),
    /// Creating, changing and deleting files.
    Write(Vec<String>),
    /// Requests to a host, or all requests if `None`.
    Web(Option<String>),
    /// Web searches.
    Search,
    /// Tools of an MCP server: the server, and optionally one of its tools.
    Server(String, Option<String>),
    /// aye's tools.
    Tools(Vec<&'static str>),
    /// Permission that rules of aye cannot express, with the reason.
    Other(String),
}

/// An MCP server of another agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerEntry {
    pub place: String,
    pub name: String,
    pub server: NewServer,
    /// Environment variables that the user must set, because the values in the file are secrets.
    pub variables: Vec<String>,
}

/// A file with instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InstructionText {
    pub place: String,
    pub text: String,
}

/// A command file, converted to aye's format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandFile {
    pub place: String,
    pub level: SettingsOwner,
    /// Name without the extension: `fix` or `git/commit`.
    pub name: String,
    pub text: String,
}

/// An entry that is not imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unsupported {
    pub place: String,
    pub entry: String,
    pub reason: String,
}

impl AgentSettings {
    /// Adds a file with instructions. Files that it imports are only reported, because they would apply to every
    /// project.
    pub(super) fn instruct(&mut self, place: String, text: String) {
        let imports: Vec<String> = instruction_imports(&text);
        let paths = imports.iter().map(|path| path.trim_end_matches(PATH_PUNCTUATION)).filter(|path| path.contains(['/', '.']));
        for path in paths {
            self.leave_out(&place, format!("@{path}"), "imports are followed only in workspace files; copy the text");
        }
        self.instructions.push(InstructionText { place, text });
    }

    /// Adds an entry that is not imported.
    pub(super) fn leave_out(&mut self, place: &str, entry: impl Into<String>, reason: impl Into<String>) {
        self.unsupported.push(Unsupported { place: place.to_owned(), entry: entry.into(), reason: reason.into() });
    }
}

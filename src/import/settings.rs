//! Settings of another agent, collected but not evaluated yet.

use super::command_pattern::CommandPattern;
use crate::config::servers::NewServer;
use crate::config::{PATH_PUNCTUATION, instruction_imports};
use crate::protocol::VerdictKind;

/// Everything that was found in an agent's files.
#[derive(Debug, Default)]
pub(crate) struct AgentSettings {
    pub permissions: Vec<Permission>,
    pub servers: Vec<ServerEntry>,
    pub instructions: Vec<InstructionText>,
    pub commands: Vec<CommandFile>,
    /// Entries that are imported only in part, each with a description of that part.
    pub narrowed: Vec<(String, String)>,
    /// Entries that have no equivalent in aye.
    pub unsupported: Vec<Unsupported>,
}

/// Owner of the file in which an entry was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SettingsOwner {
    /// The user, for files in the home directory that apply to all projects.
    User,
    /// The project, for files in the workspace.
    Project,
}

/// Permission in another agent's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Permission {
    /// File in which the permission was found, as shown to the user.
    pub place: String,
    /// The entry as written in the settings.
    pub text: String,
    pub level: SettingsOwner,
    pub verdict: VerdictKind,
    pub subject: Subject,
}

/// Scope of a permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    Command(CommandPattern),
    /// Reading of files that match these policy path patterns.
    Read(Vec<String>),
    /// Creating, changing and deleting of files that match these policy path patterns.
    Write(Vec<String>),
    /// Requests to this host, or to any host if it is `None`.
    Web(Option<String>),
    /// Web searches.
    Search,
    /// Tools of the named MCP server, or only the given tool.
    Server(String, Option<String>),
    /// These tools of aye.
    Tools(Vec<&'static str>),
    /// Something that aye's rules cannot express, for the given reason.
    Other(String),
}

/// MCP server in another agent's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerEntry {
    pub place: String,
    pub name: String,
    pub server: NewServer,
    /// Environment variables that the user must set, because they replace secrets that the file contains.
    pub variables: Vec<String>,
}

/// Instruction file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InstructionText {
    pub place: String,
    pub text: String,
}

/// Command file that has been converted to aye's format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandFile {
    pub place: String,
    pub level: SettingsOwner,
    /// File name without its extension, such as `fix` or `git/commit`.
    pub name: String,
    pub text: String,
}

/// Entry that will not be imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unsupported {
    pub place: String,
    pub entry: String,
    pub reason: String,
}

impl AgentSettings {
    /// Adds an instruction file. Files that it imports are only reported, because they would otherwise apply to all
    /// projects.
    pub(super) fn instruct(&mut self, place: String, text: String) {
        let imports: Vec<String> = instruction_imports(&text);
        let paths = imports.iter().map(|path| path.trim_end_matches(PATH_PUNCTUATION)).filter(|path| path.contains(['/', '.']));
        for path in paths {
            self.leave_out(&place, format!("@{path}"), "imports are followed only in workspace files; copy the text");
        }
        self.instructions.push(InstructionText { place, text });
    }

    /// Records an entry that will not be imported.
    pub(super) fn leave_out(&mut self, place: &str, entry: impl Into<String>, reason: impl Into<String>) {
        self.unsupported.push(Unsupported { place: place.to_owned(), entry: entry.into(), reason: reason.into() });
    }
}

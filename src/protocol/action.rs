//! Actions of a call, in terms that a policy can judge without reading a disk.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One thing a call would do to the world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Action {
    /// Read a file or list a directory.
    Read {
        target: Target,
    },
    /// Create or replace a file or directory.
    Write {
        target: Target,
    },
    Delete {
        target: Target,
    },
    /// Run a line in `bash`.
    Exec {
        command: String,
        cwd: Target,
    },
    /// Send a request and read the answer.
    Fetch {
        /// As the model wrote it; the policy and the tool read it with one parser.
        url: String,
        /// In upper case.
        method: String,
    },
    /// Run a program that the policy fixes, with arguments of the kinds it names.
    Named {
        name: String,
        argv: Vec<String>,
        cwd: Target,
        /// The places that its arguments name, only to be read.
        inputs: Vec<Target>,
        /// The same, to be read and written.
        paths: Vec<Target>,
    },
    /// Open what stands at a path with the program that the desktop has for it, outside the sandbox.
    Open {
        target: Target,
    },
    /// Hand a file to the person, as it is now.
    Upload {
        target: Target,
    },
    /// Run the program of a custom tool's manifest.
    Custom {
        name: String,
        argv: Vec<String>,
        cwd: Target,
        /// What it is given on its input.
        input: Option<String>,
        /// Of its manifest and of the programs it runs: another one is another tool.
        fingerprint: String,
        /// Whether a person knows it: their own, or one of the project with exactly these bytes.
        known: bool,
        /// It says that it changes nothing, and runs where nothing can be changed.
        reads_only: bool,
    },
    /// Use a tool of an MCP server.
    Invoke {
        server: String,
        tool: String,
        /// Of its description and schema: another one is another tool.
        fingerprint: String,
        /// It is another than the one that was let through last.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        changed: bool,
    },
}

/// Granted by the very entries of `[[named_commands]]`.
pub const NAMED: &str = "Command.Named";

impl Action {
    /// The capability of the bundle that grants it.
    pub fn capability(&self) -> &'static str {
        match self {
            Self::Read { .. } => "File.Read",
            Self::Write { .. } => "File.Write",
            Self::Delete { .. } => "File.Delete",
            Self::Open { .. } => "File.Read",
            Self::Upload { .. } => "Workspace.Upload",
            Self::Exec { .. } | Self::Custom { .. } => "Shell.Exec",
            Self::Fetch { .. } => "Network.Http",
            Self::Named { .. } => NAMED,
            Self::Invoke { .. } => "Mcp.Invoke",
        }
    }
}

/// A path as asked for and as it really is. Made by `sys`, which resolves links; judged by `policy`, which does not look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// As the model wrote it.
    pub given: String,
    /// Absolute, links resolved as far as the path exists, no `.` or `..`.
    pub real: PathBuf,
    pub place: Place,
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    File {
        bytes: u64,
    },
    Directory,
    /// Nothing yet; the deepest existing ancestor was resolved.
    Missing,
    /// Device, FIFO, socket: never opened.
    Special,
}

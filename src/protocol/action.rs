//! Tool call actions, described so that a policy can judge them without reading the disk.

use super::BACKEND_SERVER;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One effect that a tool call would have.
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
    /// Run a command line in `bash`.
    Exec {
        command: String,
        cwd: Target,
    },
    /// Send a request and read the response.
    Fetch {
        /// URL as the model wrote it. The policy and the tool parse it with the same parser.
        url: String,
        /// HTTP method, in upper case.
        method: String,
    },
    /// Send a query to a search service.
    Search {
        query: String,
        /// Domains to which the results are restricted. If empty, the whole web is searched.
        domains: Vec<String>,
        /// Name of the search service, such as `Brave`. Empty if no service is configured.
        service: String,
        /// Host that receives the query. Empty if no service is configured.
        host: String,
    },
    /// Run a program named in the policy, with arguments of the kinds that the policy allows.
    Named {
        name: String,
        argv: Vec<String>,
        cwd: Target,
        /// Paths in the arguments that the program can only read.
        inputs: Vec<Target>,
        /// Paths in the arguments that the program can read and write.
        paths: Vec<Target>,
    },
    /// Open a file or directory with its default desktop application, outside the sandbox.
    Open {
        target: Target,
    },
    /// Send the current content of a file to the user.
    Upload {
        target: Target,
    },
    /// Run the program of a custom tool.
    Custom {
        name: String,
        argv: Vec<String>,
        cwd: Target,
        /// Text passed to the program's standard input.
        input: Option<String>,
        /// Fingerprint of the manifest and of the programs that it runs. Any change to the tool changes the
        /// fingerprint.
        fingerprint: String,
        /// Whether this is one of the user's own tools, or a project tool whose exact content the user has seen.
        known: bool,
        /// Whether the tool declares that it changes nothing, so it runs with a read-only file system.
        reads_only: bool,
    },
    /// Call a tool of an MCP server.
    Invoke {
        server: String,
        tool: String,
        /// Fingerprint of the tool's description and schema. Any change to either changes the fingerprint.
        fingerprint: String,
        /// Whether the tool definition differs from the last approved one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        changed: bool,
    },
}

/// Policy capability for commands allowed by an entry in `[[named_commands]]`.
pub const NAMED: &str = "Command.Named";

impl Action {
    /// Returns whether the action runs a shell line, a named command or a custom tool.
    pub fn is_command(&self) -> bool {
        matches!(self, Self::Exec { .. } | Self::Named { .. } | Self::Custom { .. })
    }

    /// Returns the policy capability that grants this action.
    pub fn capability(&self) -> &'static str {
        match self {
            Self::Read { .. } => "File.Read",
            Self::Write { .. } => "File.Write",
            Self::Delete { .. } => "File.Delete",
            Self::Open { .. } => "File.Read",
            Self::Upload { .. } => "Workspace.Upload",
            Self::Exec { .. } | Self::Custom { .. } => "Shell.Exec",
            Self::Fetch { .. } => "Network.Http",
            Self::Search { .. } => "Network.Search",
            Self::Named { .. } => NAMED,
            Self::Invoke { server, .. } if server == BACKEND_SERVER => "BackendTool.Invoke",
            Self::Invoke { .. } => "Mcp.Invoke",
        }
    }
}

/// Path as requested and as resolved. `sys` resolves the symlinks, so `policy` can judge the path without reading the
/// disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Path as the model wrote it.
    pub given: String,
    /// Absolute path without `.` or `..`. Symlinks are resolved in the part that exists.
    #[serde(with = "super::path_text")]
    pub real: PathBuf,
    pub place: Place,
}

/// Type of the file at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    File {
        bytes: u64,
    },
    Directory,
    /// No file exists at the path; the deepest existing ancestor was resolved.
    Missing,
    /// Device, FIFO or socket, which is never opened.
    Special,
}

//! Library behind `aye`, a coding agent for the terminal.

// If only one of the features is enabled, the exports for the other one count as unreachable.
#![cfg_attr(all(feature = "conformance", feature = "fuzzing"), warn(unreachable_pub))]

/// Returns the path of a file in the shared test material, which `build.rs` locates. Tests that use it are ignored
/// unless `cfg(aye_shared)` is set.
#[cfg(test)]
macro_rules! shared {
    ($path:literal) => {
        std::path::Path::new(env!("AYE_SHARED_DIR")).join($path)
    };
}

mod acp;
mod agent;
mod cli;
mod cloud;
mod config;
mod headless;
mod hooks;
mod host;
mod import;
mod llm;
mod lsp;
mod mcp;
mod policy;
mod ports;
mod protocol;
mod serve;
mod services;
mod session;
mod skills;
mod store;
mod subagents;
mod sys;
mod text;
mod tools;
mod transfer;
mod tui;
mod workspace;

pub use cli::{Commit, main, parse_commit};

/// MCP client used by `tests/conformance/client.rs`. Not part of the public API.
#[cfg(feature = "conformance")]
#[doc(hidden)]
pub mod conformance {
    pub use crate::mcp::auth::{RegisteredClient, UnattendedLogin};
    pub use crate::mcp::{HttpKind, McpDeps, Reach, Servers, SignIn, Spec};
    pub use crate::ports::{BoxFuture, RemoteAsks, RemoteCall, RemoteContext, RemoteError, RemoteServers, RemoteTool};
    pub use crate::protocol::{Elicitation, ElicitationAnswer, ElicitationKind, FieldKind, ServerState};
}

/// Functions used by the targets in `fuzz/`. Not part of the public API.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing {
    use crate::tools;

    pub use crate::config::check_settings_text;
    pub use crate::llm::{Api, decode_events, response_bytes};
    pub use crate::tools::measure::{Bench, actions};
    pub use crate::tools::{apply_to_text, edit_text};
    pub use crate::tui::decode_inputs;

    pub mod journal {
        pub use crate::store::bench_support::{Measure, open};
    }

    pub mod screen {
        pub use crate::tui::bench_support::BenchScreen;
    }

    pub mod mcp {
        pub use crate::mcp::{McpDeps, Reach, Servers, Spec, decode_messages};
        pub use crate::ports::{BoxFuture, LaunchedProgram, Launcher, RemoteServers, ServerProgram};
    }

    pub mod policy {
        pub use crate::policy::*;
    }

    pub mod protocol {
        pub use crate::protocol::*;
    }

    pub fn tool_names() -> impl Iterator<Item = &'static str> {
        tools::built_in_names()
    }
}

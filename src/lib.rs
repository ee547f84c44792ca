//! aye: a coding agent for the terminal.

mod acp;
mod agent;
mod app;
mod config;
mod headless;
mod llm;
mod mcp;
mod policy;
mod ports;
mod protocol;
mod serve;
mod store;
mod sys;
mod text;
mod tools;
mod tui;

pub use app::main;

/// What the targets in `fuzz/` reach; no part of what the library promises.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing {
    use crate::{policy::redact::Redactor, protocol::Arguments, sys, tools};
    use std::sync::Arc;

    pub use crate::llm::{Api, events_in, heard_in};
    pub use crate::tools::patched;

    pub mod journal {
        pub use crate::store::measure::{Measure, open};
    }

    pub mod screen {
        pub use crate::tui::measure::Screen;
    }

    pub mod mcp {
        pub use crate::mcp::{Reach, Servers, Spec, Wires};
        pub use crate::ports::{BoxFuture, Launched, Launcher, RemoteCall, RemoteContext, RemoteServers, ServerProgram};
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

    /// What a call with this text for its arguments would touch, or what is wrong with it.
    pub fn actions(tool_name: &str, text: &str) -> Result<Vec<protocol::Action>, String> {
        let settings = tools::Settings {
            workspace: "/home/user/project".into(),
            home: Some("/home/user".into()),
            max_file_size_bytes: 1 << 20,
            max_output_bytes: 1 << 16,
            environment: sys::process::Environment::Core,
            secret_names: Vec::new(),
            may_read: Arc::new(|_| true),
            may_read_entry: None,
            may_write: Arc::new(|_| true),
            may_delete: Arc::new(|_| true),
            may_open: Arc::new(|_| true),
            relative_paths: true,
            follow_links: true,
            text: tools::TextTools::default(),
            helper: sys::process::Helper::default(),
            named: Vec::new(),
            custom: Vec::new(),
            remote: None,
            may_use: Arc::new(|_| Ok(())),
            checkpoints: None,
            changes: None,
            artifacts: None,
            commands: tools::Commands::default(),
            seen: tools::Seen::default(),
            shell: sys::process::Shell::Bash,
            holding: tools::Holding::nothing(),
            session: None,
            redactor: Arc::new(Redactor::new(Vec::new(), [], || [7; 32])),
            may_fetch: Arc::new(|url, _| policy::Explanation::unreadable(format!("nobody asks {url}"))),
            may_connect: Arc::new(|url, address| Err(format!("nobody connects to {address} for {url}"))),
            fetcher: sys::http::fetch::Fetcher::default(),
        };
        let arguments = serde_json::from_str(text).map_or_else(|_| Arguments::Malformed(text.to_owned()), Arguments::Object);
        tools::actions_for(tool_name, &arguments, &settings).map_err(|error| format!("{error:?}"))
    }
}

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
    use crate::tools;

    pub use crate::llm::{Api, events_in, heard_in};
    pub use crate::tools::measure::{Bench, actions};
    pub use crate::tools::patched;

    pub mod journal {
        pub use crate::store::measure::{Measure, open};
    }

    pub mod screen {
        pub use crate::tui::measure::Screen;
    }

    pub mod mcp {
        pub use crate::mcp::{Reach, Servers, Spec, Wires};
        pub use crate::ports::{BoxFuture, Launched, Launcher, RemoteServers, ServerProgram};
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

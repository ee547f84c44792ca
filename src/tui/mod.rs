//! Full-screen terminal UI.

mod agents;
mod approval;
mod attachments;
#[cfg(feature = "fuzzing")]
pub(crate) mod bench_support;
mod browse;
mod channels;
mod clipboard;
mod composer;
mod diff;
mod display;
mod draft_state;
mod drag_drop;
mod elicitation;
mod format;
mod frame_timer;
mod glyphs;
mod highlight;
mod history;
mod history_search;
mod host;
mod input;
mod interface;
mod keymap;
mod layers;
mod line_file;
mod listed_tasks;
mod markdown;
mod memory_proposals;
mod menu;
mod metrics;
mod model;
mod notifications;
mod onboarding;
mod picker;
mod plain;
mod pointer;
mod reviews;
mod rewind;
mod save_state;
mod screen;
mod servers;
mod session_info;
mod slash;
mod startup;
mod status;
mod status_items;
mod styled_text;
mod task;
mod terminal;
#[cfg(test)]
pub(crate) mod tests;
mod theme;
mod transcript;
mod typeahead_guard;
mod update;
mod view;
mod vim;
mod worktree;

pub(crate) use clipboard::{Clipboard, OuterMultiplexer};
pub(crate) use format::tokens;
pub(crate) use highlight::on_grammars_freed;
pub(crate) use history::{HistoryOptions, HistoryRedactor};
pub(crate) use host::run;
#[cfg(feature = "fuzzing")]
pub use input::decode_inputs;
pub(crate) use interface::{
    Background, Editor, EditorTarget, ExitReason, KeymapFile, LockAnswer, LockQuestion, ModelAccess, Notices, OpenInEditor,
    ProjectFile, RunTask, SessionHeader, SessionTarget, Start, StartupQuestion, TaskProgram, TerminalTraits, ThemeChoice,
    TrustAnswer, TrustQuestion, TuiHandles, TuiOutcome, UiOptions,
};
pub(crate) use keymap::problems as key_problems;
pub(crate) use onboarding::provider_of_key;
pub(crate) use plain::run as run_plain;
pub(crate) use slash::{COMMANDS, is_built_in as is_built_in_command};
pub(crate) use terminal::{Emulator, columns, restore_from_signal, set_contained_check};
pub(crate) use theme::ColourDepth;
pub(crate) use typeahead_guard::GuardTiming;

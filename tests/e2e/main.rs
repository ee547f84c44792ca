//! The built binary from outside, against a model that follows a script.
#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "../support/mod.rs"]
mod support;

mod amend;
mod approve;
mod artifacts;
mod attach;
mod auth;
mod bad_input;
mod bounds;
mod branches;
mod browse;
mod changes;
mod compaction;
mod confine;
mod crash;
mod crash_errors;
mod crash_many;
mod crash_points;
mod crash_screen;
mod crash_store;
mod custom_tools;
mod demo;
mod doctor;
mod editors;
mod effects;
mod exec;
mod gemini;
mod grants;
mod harness;
mod instructions;
mod keymap;
mod local;
mod logging;
mod manual;
mod mcp;
mod mcp_serve;
#[cfg(target_os = "linux")]
mod mcp_serve_faults;
mod mechanisms;
mod mentions;
mod models;
mod opening;
mod own_command;
mod patches;
mod paths;
mod pickers;
mod plain;
mod policy_cli;
mod preview;
mod reading;
mod recovery;
mod reload;
mod remote_tools;
mod resume;
mod rewind;
mod rewind_screen;
mod secrets;
mod security;
mod serve;
mod serve_faults;
mod session_files;
mod sessions;
mod setup;
mod spending;
mod start;
mod status_row;
mod terminals;
mod tool_input;
mod tools_cli;
mod trees;
mod trust;
mod typeahead;
mod waiting;

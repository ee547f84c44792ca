//! The built binary from outside, against a model that follows a script.
#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "../support/mod.rs"]
mod support;

mod approve;
mod artifacts;
mod auth;
mod bad_input;
mod bounds;
mod changes;
mod compaction;
mod confine;
mod crash;
mod custom_tools;
mod demo;
mod doctor;
mod effects;
mod exec;
mod gemini;
mod grants;
mod harness;
mod instructions;
mod local;
mod logging;
mod manual;
mod mechanisms;
mod mentions;
mod models;
mod opening;
mod patches;
mod paths;
mod policy_cli;
mod preview;
mod reading;
mod reload;
mod resume;
mod secrets;
mod security;
mod sessions;
mod spending;
mod tool_input;
mod tools_cli;
mod trees;
mod trust;
mod typeahead;
mod waiting;

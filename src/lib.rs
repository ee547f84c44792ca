//! aye: a coding agent for the terminal.

mod agent;
mod app;
mod config;
mod headless;
mod llm;
mod policy;
mod ports;
mod protocol;
mod store;
mod sys;
mod text;
mod tools;
mod tui;

pub use app::main;

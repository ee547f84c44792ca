//! Limits on what aye accepts from a server.

use std::time::Duration;

/// One message: a line, an event, a body.
pub(super) const MESSAGE_BYTES: usize = 10 * 1024 * 1024;
/// How deep JSON may be nested before what lies deeper is left out; the parser itself stops soon after.
pub(super) const MESSAGE_DEPTH: usize = 100;

pub(super) const TOOLS: usize = 2_000;
pub(super) const DEFINITION_BYTES: usize = 4 * 1024 * 1024;
/// Of one tool: its schemas and its description together.
pub(super) const TOOL_BYTES: usize = 256 * 1024;
pub(super) const SCHEMA_DEPTH: usize = 32;
pub(super) const DESCRIPTION_BYTES: usize = 16 * 1024;
pub(super) const NAME_BYTES: usize = 128;
pub(super) const PAGES: usize = 200;
/// What was left out is said by name, and no further than this.
pub(super) const NOTES: usize = 20;

pub(super) const RESOURCES: usize = 1_000;
pub(super) const PROMPTS: usize = 500;

/// Questions of the server inside one call, one round after the other.
pub(super) const ROUNDS: usize = 10;
pub(super) const FORM_FIELDS: usize = 50;
pub(super) const FORM_CHOICES: usize = 200;
/// Questions of one server that wait for the person; more are declined.
pub(super) const QUESTIONS: usize = 4;

/// What is kept of what a program writes beside.
pub(super) const ERROR_BYTES: usize = 4 * 1024;
/// Of a sentence of the server in one of ours.
pub(super) const SAID_CHARS: usize = 600;

/// Between two listings that the server asks for.
pub(super) const LISTING_PAUSE: Duration = Duration::from_secs(1);
/// For telling a server that a call is over.
pub(super) const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);
/// For a program to end by itself once its input is closed.
pub(super) const LEAVING: Duration = Duration::from_millis(1_500);
/// For all of them at the end.
pub(super) const ENDING: Duration = Duration::from_secs(2);

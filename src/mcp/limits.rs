//! Limits on the data that a server sends.

use std::time::Duration;

/// Maximum size in bytes of a message, which is a line, an event or a body.
pub(super) const MESSAGE_BYTES: usize = 10 * 1024 * 1024;
/// Maximum nesting depth of JSON. Anything deeper is removed. The parser itself would fail at a slightly greater depth.
pub(super) const MESSAGE_DEPTH: usize = 100;

pub(super) const TOOLS: usize = 2_000;
pub(super) const DEFINITION_BYTES: usize = 4 * 1024 * 1024;
/// Maximum size in bytes of a tool, including its schemas and description.
pub(super) const TOOL_BYTES: usize = 256 * 1024;
pub(super) const SCHEMA_DEPTH: usize = 32;
pub(super) const DESCRIPTION_BYTES: usize = 16 * 1024;
pub(super) const NAME_BYTES: usize = 128;
pub(super) const PAGES: usize = 200;
/// Maximum number of notes about content that was left out.
pub(super) const NOTES: usize = 20;

pub(super) const RESOURCES: usize = 1_000;
pub(super) const PROMPTS: usize = 500;

/// Maximum number of times that the server may ask for input during one call.
pub(super) const ROUNDS: usize = 10;
pub(super) const FORM_FIELDS: usize = 50;
pub(super) const FORM_CHOICES: usize = 200;
/// Maximum number of requests per server that wait for the user. Any others are declined.
pub(super) const QUESTIONS: usize = 4;

/// Number of bytes of a program's standard error to keep.
pub(super) const ERROR_BYTES: usize = 4 * 1024;
/// Maximum number of characters to quote from a server's message.
pub(super) const MAX_QUOTED_CHARS: usize = 600;

/// Minimum time between two tool list requests that the server causes.
pub(super) const LISTING_PAUSE: Duration = Duration::from_secs(1);
/// Maximum time for sending a cancellation to a server or for closing a connection.
pub(super) const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum time for a program to exit after its input has been closed.
pub(super) const INPUT_CLOSED_TIMEOUT: Duration = Duration::from_millis(1_500);
/// Maximum time for all servers to exit when the session ends.
pub(super) const TERMINATE_TIMEOUT: Duration = Duration::from_secs(2);

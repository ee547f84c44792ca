//! Limits on data from a server.

use std::time::Duration;

/// Maximum size in bytes of one message: a line, event or body.
pub(super) const MESSAGE_BYTES: usize = 10 * 1024 * 1024;
/// JSON depth beyond which content is omitted. The parser itself fails at a slightly larger depth.
pub(super) const MESSAGE_DEPTH: usize = 100;

pub(super) const TOOLS: usize = 2_000;
pub(super) const DEFINITION_BYTES: usize = 4 * 1024 * 1024;
/// Maximum size in bytes of one tool, with its schemas and description.
pub(super) const TOOL_BYTES: usize = 256 * 1024;
pub(super) const SCHEMA_DEPTH: usize = 32;
pub(super) const DESCRIPTION_BYTES: usize = 16 * 1024;
pub(super) const NAME_BYTES: usize = 128;
pub(super) const PAGES: usize = 200;
/// Maximum number of notes about omitted content.
pub(super) const NOTES: usize = 20;

pub(super) const RESOURCES: usize = 1_000;
pub(super) const PROMPTS: usize = 500;

/// Maximum rounds of requests to the user within one call.
pub(super) const ROUNDS: usize = 10;
pub(super) const FORM_FIELDS: usize = 50;
pub(super) const FORM_CHOICES: usize = 200;
/// Maximum number of a server's requests that wait for the user; more are declined.
pub(super) const QUESTIONS: usize = 4;

/// Number of bytes of a program's stderr that are stored.
pub(super) const ERROR_BYTES: usize = 4 * 1024;
/// Maximum length of a server's message that one of aye's messages quotes, in characters.
pub(super) const MAX_QUOTED_CHARS: usize = 600;

/// Minimum time between two tool lists that a server triggers.
pub(super) const LISTING_PAUSE: Duration = Duration::from_secs(1);
/// Maximum time to notify a server that a call is cancelled.
pub(super) const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum time for a program to exit after its input is closed.
pub(super) const INPUT_CLOSED_TIMEOUT: Duration = Duration::from_millis(1_500);
/// Maximum time for all servers to exit at the end.
pub(super) const TERMINATE_TIMEOUT: Duration = Duration::from_secs(2);

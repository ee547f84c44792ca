//! Limits on language servers: data that aye accepts and sends, and timeouts.

use std::time::Duration;

/// Time within which a query returns, with or without diagnostics.
pub(super) const QUERY_TIME: Duration = Duration::from_millis(500);
/// Number of consecutive queries without a response in time, after which queries do not wait until the server responds
/// again.
pub(super) const MISSES: u32 = 3;
/// Maximum time for the diagnostics of the text on disk. Later queries need them, so this query continues after
/// `QUERY_TIME`.
pub(super) const RESPONSE_TIME: Duration = Duration::from_secs(60);
/// Maximum time for the response to `initialize`.
pub(super) const START_TIME: Duration = Duration::from_secs(60);
/// Maximum time to load the project, for a server that reports it.
pub(super) const LOAD_TIME: Duration = Duration::from_secs(300);
/// Maximum time for a server to exit after it was asked to.
pub(super) const SHUTDOWN_TIME: Duration = Duration::from_millis(500);
/// Maximum time for the process to end after `SHUTDOWN_TIME`.
pub(super) const END_TIME: Duration = Duration::from_secs(2);
/// Pauses before the restarts. After the last one, the server stays off.
pub(super) const RESTART_PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30)];
/// Time after which diagnostics without a version count as complete if no others arrive.
pub(super) const SETTLE_TIME: Duration = Duration::from_millis(100);
/// Pause before a request is repeated at the server's request.
pub(super) const RETRY_PAUSE: Duration = Duration::from_millis(30);

/// Maximum size in bytes of one message.
pub(super) const MESSAGE_BYTES: usize = 4 << 20;
/// Maximum size in bytes of a message header.
pub(super) const HEADER_BYTES: usize = 4096;
/// Period of the limits on the rate of messages.
pub(super) const RATE_PERIOD: Duration = Duration::from_secs(10);
/// Maximum number of bytes in a period.
pub(super) const RATE_BYTES: usize = 32 << 20;
/// Maximum number of messages in a period.
pub(super) const RATE_MESSAGES: usize = 10_000;
/// Maximum number of messages to a server that it has not read yet.
pub(super) const UNREAD_MESSAGES: usize = 128;

/// Maximum size in bytes of a file that is sent.
pub(super) const FILE_BYTES: usize = 1 << 20;
/// Maximum number of files sent for one change.
pub(super) const FILES: usize = 20;
/// Maximum number of files that a server has open.
pub(super) const OPEN_FILES: usize = 40;
/// Maximum number of running and waiting queries for one server.
pub(super) const QUERIES: usize = 16;

/// Maximum number of errors that are compared per file.
pub(super) const ERRORS: usize = 1_000;
/// Maximum number of new errors listed per file.
pub(super) const LISTED_ERRORS: usize = 3;
/// Maximum width of an error message, in cells.
pub(super) const MESSAGE_CELLS: usize = 160;
/// Number of bytes of a message that are examined.
pub(super) const MESSAGE_START_BYTES: usize = 2_000;
/// Number of bytes of stderr that are stored.
pub(super) const STDERR_BYTES: usize = 1_000;
/// Maximum width of the reason why a server is off, in cells.
pub(super) const REASON_CELLS: usize = 200;

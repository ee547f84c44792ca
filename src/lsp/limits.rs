//! Limits on language servers, which apply to amounts of data and to time.

use std::time::Duration;

/// Time within which a query returns, whether or not there are diagnostics yet.
pub(super) const QUERY_TIME: Duration = Duration::from_millis(500);
/// Number of consecutive queries that may miss the deadline. After that, queries return immediately until the server
/// responds in time again.
pub(super) const MISSES: u32 = 3;
/// Maximum time to wait for diagnostics of the text on disk. Waiting continues in the background after `QUERY_TIME`,
/// because later queries need these diagnostics.
pub(super) const RESPONSE_TIME: Duration = Duration::from_secs(60);
/// Maximum time for a server to respond to `initialize`.
pub(super) const START_TIME: Duration = Duration::from_secs(60);
/// Maximum time for loading the project. Applies to servers that report when they have finished.
pub(super) const LOAD_TIME: Duration = Duration::from_secs(300);
/// Maximum time for a server to shut down when asked to.
pub(super) const SHUTDOWN_TIME: Duration = Duration::from_millis(500);
/// Maximum additional time for the process to exit after `SHUTDOWN_TIME`.
pub(super) const END_TIME: Duration = Duration::from_secs(2);
/// Pause before each restart of a server that failed. After the last restart, it is not started again.
pub(super) const RESTART_PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30)];
/// Time without further diagnostics after which those of a server that does not report versions are considered
/// complete.
pub(super) const SETTLE_TIME: Duration = Duration::from_millis(100);
/// Pause before repeating a request at the server's request.
pub(super) const RETRY_PAUSE: Duration = Duration::from_millis(30);

/// Maximum size of a message in bytes.
pub(super) const MESSAGE_BYTES: usize = 4 << 20;
/// Maximum size of a message header in bytes.
pub(super) const HEADER_BYTES: usize = 4096;
/// Period to which the limits on the message rate apply.
pub(super) const RATE_PERIOD: Duration = Duration::from_secs(10);
/// Maximum number of bytes that a server may send per period.
pub(super) const RATE_BYTES: usize = 32 << 20;
/// Maximum number of messages that a server may send per period.
pub(super) const RATE_MESSAGES: usize = 10_000;
/// Maximum number of messages that are queued until the server reads them.
pub(super) const UNREAD_MESSAGES: usize = 128;

/// Maximum size in bytes of a file to be sent to a server.
pub(super) const FILE_BYTES: usize = 1 << 20;
/// Maximum number of files to send for a change.
pub(super) const FILES: usize = 20;
/// Maximum number of files that are open in a server at the same time.
pub(super) const OPEN_FILES: usize = 40;
/// Maximum number of queries per server that are running or waiting.
pub(super) const QUERIES: usize = 16;

/// Maximum number of errors to compare per file.
pub(super) const ERRORS: usize = 1_000;
/// Maximum number of new errors to list per file.
pub(super) const LISTED_ERRORS: usize = 3;
/// Maximum width of an error message in terminal cells.
pub(super) const MESSAGE_CELLS: usize = 160;
/// Number of bytes at the start of a message to examine.
pub(super) const MESSAGE_START_BYTES: usize = 2_000;
/// Number of bytes of standard error output to keep.
pub(super) const STDERR_BYTES: usize = 1_000;
/// Maximum width in terminal cells of the reason why a server is off.
pub(super) const REASON_CELLS: usize = 200;

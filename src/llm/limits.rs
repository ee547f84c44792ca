//! Limits on the data in one response of a server. The limits for a single call are in `CallArguments` of the protocol.

/// Maximum size in bytes of one event. The longest response fits, even if its last event repeats all of it with double
/// escapes.
pub(crate) const EVENT_BYTES: usize = 32 << 20;
/// Maximum size in bytes of a body that is not an event stream.
pub(crate) const OTHER_BYTES: usize = 64 << 10;
/// Maximum size in bytes of text and reasoning together; no model writes more.
pub(crate) const TEXT_BYTES: usize = 16 << 20;
/// Maximum size in bytes of all events together. The longest response fits, even in the smallest
/// chunks.
pub(crate) const RESPONSE_BYTES: usize = 64 << 20;
/// Maximum number of calls, text parts, reasoning parts and other parts in one response.
pub(crate) const PARTS: usize = 4_096;
/// Maximum number of identical consecutive events with content.
pub(crate) const SAME_EVENTS: usize = 10_000;
/// Maximum size in bytes of an event that is compared with the previous one.
pub(crate) const SAME_EVENT_BYTES: usize = 512;
/// Maximum size in bytes of the arguments of all calls in a response. Further calls are not run.
pub(crate) const ALL_ARGUMENT_BYTES: usize = 16 << 20;
/// Maximum number of values in the JSON of one event; checked only in events larger than `SMALL_EVENT_BYTES`.
pub(crate) const EVENT_VALUES: usize = 200_000;
pub(crate) const SMALL_EVENT_BYTES: usize = 64 << 10;
/// Number of bytes of overlong arguments that are stored.
pub(crate) const ARGUMENT_HEAD_BYTES: usize = 1 << 10;

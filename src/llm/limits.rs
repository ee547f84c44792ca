//! Limits on the data in a single response from a server. Limits on individual calls are defined with `CallArguments`.

/// Maximum size of an event in bytes. Even the longest response fits, including a last event that repeats all of it
/// with doubled escapes.
pub(crate) const EVENT_BYTES: usize = 32 << 20;
/// Maximum size in bytes of a body that is not an event stream.
pub(crate) const OTHER_BYTES: usize = 64 << 10;
/// Maximum total size in bytes of text and reasoning, which is more than any model writes.
pub(crate) const TEXT_BYTES: usize = 16 << 20;
/// Maximum total size of all events in bytes. Even the longest response fits if it is sent in the smallest possible
/// chunks.
pub(crate) const RESPONSE_BYTES: usize = 64 << 20;
/// Maximum number of calls, text parts, reasoning parts and other parts in one response.
pub(crate) const PARTS: usize = 4_096;
/// Maximum number of consecutive identical events that add content.
pub(crate) const SAME_EVENTS: usize = 10_000;
/// Size in bytes below which an event is compared with the previous one.
pub(crate) const SAME_EVENT_BYTES: usize = 512;
/// Maximum total size in bytes of the arguments of all calls in a response. Calls beyond it are not run.
pub(crate) const ALL_ARGUMENT_BYTES: usize = 16 << 20;
/// Maximum number of JSON values in an event. Checked only for events larger than `SMALL_EVENT_BYTES`.
pub(crate) const EVENT_VALUES: usize = 200_000;
pub(crate) const SMALL_EVENT_BYTES: usize = 64 << 10;
/// Number of bytes to keep of arguments that are too long.
pub(crate) const ARGUMENT_HEAD_BYTES: usize = 1 << 10;

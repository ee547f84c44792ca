//! Limits on the data that a server may send in one response. The limits of one call are in `Arguments` of the protocol.

/// Maximum bytes of one event. The longest response is shorter, even if its last event repeats it with everything escaped twice.
pub(crate) const EVENT_BYTES: usize = 32 << 20;
/// Maximum bytes of a body that is not an event stream.
pub(crate) const OTHER_BYTES: usize = 64 << 10;
/// Maximum bytes of text and reasoning together; more than any model writes.
pub(crate) const TEXT_BYTES: usize = 16 << 20;
/// Maximum bytes of all events. The longest response in the smallest chunks is shorter.
pub(crate) const RESPONSE_BYTES: usize = 64 << 20;
/// Maximum number of calls, text parts, thoughts and other parts of one response.
pub(crate) const PARTS: usize = 4_096;
/// Maximum number of identical consecutive events with content.
pub(crate) const SAME_EVENTS: usize = 10_000;
/// Maximum bytes of an event that is compared with the previous one.
pub(crate) const SAME_EVENT_BYTES: usize = 512;
/// Maximum bytes of the arguments of all calls in a response; further calls are not run.
pub(crate) const ALL_ARGUMENT_BYTES: usize = 16 << 20;
/// Maximum number of values in the JSON of one event; checked only in events larger than `SMALL_EVENT_BYTES`.
pub(crate) const EVENT_VALUES: usize = 200_000;
pub(crate) const SMALL_EVENT_BYTES: usize = 64 << 10;
/// Bytes kept of overlong arguments.
pub(crate) const ARGUMENT_HEAD_BYTES: usize = 1 << 10;
